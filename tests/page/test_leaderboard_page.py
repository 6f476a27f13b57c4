from xml.etree import ElementTree

from gpn_scale.experiments.leaderboard import Leaderboard
from gpn_scale.page.leaderboard_page import rank_chart, write_leaderboard_page, write_pictures
from tests.experiments.boards import all_classes, small_board
from tests.page.browser import chromium, opened
from tests.page.drawings import texts_in
from tests.page.outline import Outline, headings


def test_the_page_has_a_section_per_graph_and_every_chart_is_a_file(tmp_path):
    write_leaderboard_page(tmp_path / "page" / "leaderboard.html", small_board())
    text = (tmp_path / "page" / "leaderboard.html").read_text()
    outline = Outline(text)
    assert headings(text) == ["overview", "A", "B", "scores"]
    assert len(set(outline.ids)) == len(outline.ids)
    assert not [each for each in outline.references if not each.startswith("#")]
    assert "<strong>85.5\u00a0±\u00a00.5</strong>" in text
    files = list((tmp_path / "page" / "plots").glob("*.svg"))
    assert len(files) == 1 + 2 * 7
    for file in files:
        ElementTree.fromstring(file.read_text())


def test_the_page_opens_in_a_browser(tmp_path):
    write_leaderboard_page(tmp_path / "leaderboard.html", small_board())
    with chromium() as browser, opened(browser, tmp_path / "leaderboard.html") as tab:
        assert "APPNP has the best mean rank" in tab.text("#overview")
        tab.page.set_viewport_size({"width": 400, "height": 800})
        assert tab.page.evaluate("document.documentElement.scrollWidth") == 400


def test_names_from_outside_are_escaped(tmp_path):
    cells = all_classes("<b>", "M<i>", 1)
    write_leaderboard_page(tmp_path / "page.html", Leaderboard(cells))
    text = (tmp_path / "page.html").read_text()
    assert "&lt;b&gt;" in text
    assert "<i>" not in text


def test_nothing_run_is_a_page_too(tmp_path):
    write_leaderboard_page(tmp_path / "page.html", Leaderboard({}))
    assert "no ranks" in (tmp_path / "page.html").read_text()


def test_pictures_of_the_markdown_page(tmp_path):
    names = write_pictures(tmp_path, small_board())
    assert list(names) == [
        "Mean rank over all tasks",
        "A: left-out, AUC-ROC",
        "B: left-out, AUC-ROC",
    ]
    assert {path.name for path in tmp_path.iterdir()} == set(names.values())


def test_models_without_a_rank_are_not_drawn():
    cells = {**small_board().cells, **all_classes("A", "GKDE", 1)}
    texts = texts_in(rank_chart(Leaderboard(cells)))
    assert "GKDE" not in texts
    assert "APPNP" in texts
