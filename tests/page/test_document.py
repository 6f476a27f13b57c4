import base64
import hashlib
import html
import re
import xml.etree.ElementTree as ElementTree

from gpn_scale.page.components import Section
from gpn_scale.page.document import document, write_plots
from gpn_scale.page.svg import Plot
from tests.page.outline import Outline, headings

PLOT = Plot(name="p", title="P", description="", width=10, height=10, body="")
SECTIONS = [Section("first", "The first", "body", (PLOT,)), Section("second", "A & B", "")]
TEXT = document("title <1>", "above", "<h1>Heading</h1>", SECTIONS)


def test_sections_are_linked_in_their_order():
    assert headings(TEXT) == ["first", "second"]
    assert Outline(TEXT).references == ["#first", "#second"]
    assert "<title>title &lt;1&gt;</title>" in TEXT
    assert "A &amp; B" in TEXT


def test_the_policy_allows_the_page_s_own_script_alone():
    script = re.search("<script>(.*)</script>", TEXT, re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = html.unescape(
        re.search('http-equiv="Content-Security-Policy" content="(.*?)"', TEXT)[1]
    )
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_plots_are_files_with_their_style(tmp_path):
    write_plots(tmp_path / "plots", SECTIONS)
    (path,) = (tmp_path / "plots").iterdir()
    assert path.name == "p.svg"
    root = ElementTree.parse(path).getroot()
    assert [part.tag.rpartition("}")[2] for part in root] == ["style", "title", "desc"]
