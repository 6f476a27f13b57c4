import pytest

from gpn_scale.page.drift_page import drift_sections, write_drift_page
from tests.page.browser import chromium, opened
from tests.page.drift_samples import moved_drift, still_drift
from tests.page.outline import Outline, headings


def test_the_page_has_all_sections_and_loads_nothing(tmp_path):
    path = write_drift_page(tmp_path, moved_drift())
    text = path.read_text()
    assert path.name == "drift.html"
    assert headings(text) == ["overview", "known", "classes", "columns", "nodes"]
    outline = Outline(text)
    assert all(reference.startswith("#") for reference in outline.references)
    assert len(outline.ids) == len(set(outline.ids))
    assert not outline.handlers
    assert len(text) < 1 << 20


def test_sections_without_figures_are_left_out():
    assert [each.name for each in drift_sections(still_drift())] == ["overview", "classes", "nodes"]


@pytest.mark.slow
def test_a_browser_shows_it_without_complaints(tmp_path):
    path = write_drift_page(tmp_path, moved_drift(name="<b>", node="<script>alert(1)</script>"))
    with chromium() as browser, opened(browser, path) as tab:
        assert tab.page.locator("svg").count() == 4 + 1 + 4
