import base64
import hashlib
import html
import re
import xml.etree.ElementTree as ElementTree

from markupsafe import Markup

from gpn_scale.page.document import document, write_charts
from gpn_scale.page.section import Section
from tests.page.outline import Outline, headings
from tests.page.test_chart import chart

SECTIONS = [Section("first", "The first", Markup("<p>a</p>"), (chart("p"),))]
SECTIONS += [Section("second", "A & B", Markup(""))]
SCRIPT = "window.answer = 42;"
TEXT = document(
    "title <1>",
    "above",
    SECTIONS,
    heading="About ",
    subject="<b>",
    scripts=[SCRIPT],
    data={"facts": "[1]"},
)


def test_sections_are_linked_in_their_order():
    assert headings(TEXT) == ["first", "second"]
    assert Outline(TEXT).references == ["#first", "#second"]
    assert "<title>title &lt;1&gt;</title>" in TEXT
    assert "A &amp; B" in TEXT
    assert "<h1>About <bdi>&lt;b&gt;</bdi></h1>" in TEXT
    assert "<p>a</p>" in TEXT


def test_the_policy_allows_the_page_s_own_scripts_alone():
    scripts = re.findall("<script>(.*?)</script>", TEXT, re.DOTALL)
    assert scripts[-1] == SCRIPT
    digests = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    policy = html.unescape(
        re.search('http-equiv="Content-Security-Policy" content="(.*?)"', TEXT)[1]
    )
    assert policy.endswith("script-src " + " ".join(f"'sha256-{each}'" for each in digests))
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert '<script type="application/json" id="facts">[1]</script>' in TEXT


def test_charts_are_files_with_their_style(tmp_path):
    write_charts(tmp_path / "plots", SECTIONS)
    (path,) = (tmp_path / "plots").iterdir()
    assert path.name == "p.svg"
    root = ElementTree.parse(path).getroot()
    assert [part.tag.rpartition("}")[2] for part in root][:3] == ["style", "title", "desc"]
    write_charts(tmp_path / "plots", SECTIONS, png=True)
    assert (tmp_path / "plots" / "p.png").read_bytes().startswith(b"\x89PNG")
