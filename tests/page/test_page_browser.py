"""The page of a run in a browser, used as a reader would: by mouse, keyboard and links."""

import csv
import re
from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.page.run_page import write_page
from gpn_scale.train.run_directory import RunDirectory
from tests.page.browser import chromium, opened
from tests.page.samples import run_facts

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&\x00\u202e"
COUNT = re.compile(r"([\d,]+) of 30 nodes are selected")


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A page with names that try to be markup and formulas."""
    folder = tmp_path_factory.mktemp("page")
    write_page(RunDirectory(folder), run_facts(node_name=HOSTILE, class_name="=1+1"))
    return folder / "report.html"


@pytest.fixture
def tab(browser, path):
    with opened(browser, path) as tab:
        tab.wait_until_drawn()
        yield tab


def selected(tab):
    return int(COUNT.search(tab.text("#node-count"))[1])


def names(tab):
    return tab.page.locator("#node-table tbody th").all_inner_texts()


def test_names_from_the_data_stay_text(tab):
    assert tab.page.locator("canvas").count() == 1
    assert tab.page.locator("img").count() == 0
    assert tab.page.locator("#node-table tbody th").first.inner_text() == HOSTILE.replace(
        "\x00", "\ufffd"
    )


def test_search_filter_order_and_pages(tab):
    page = tab.page
    assert (len(names(tab)), tab.text("#node-page")) == (25, "page 1 of 2")
    page.get_by_role("button", name="Next").click()
    assert (len(names(tab)), tab.text("#node-page")) == (5, "page 2 of 2")
    page.get_by_role("searchbox").fill("N12")
    assert names(tab) == ["n12"]
    page.get_by_role("searchbox").fill("")
    page.locator("select[name=predicted]").select_option("1")
    assert selected(tab) == 10
    page.get_by_role("button", name="Select all").click()
    assert selected(tab) == 30
    order = page.get_by_role("button", name="probability")
    order.focus()
    for direction in ("ascending", "descending"):
        page.keyboard.press("Enter")  # the button keeps the focus
        cells = page.locator("#node-table tbody td:nth-child(3)").all_inner_texts()
        shown = [float(cell.rstrip(" %")) for cell in cells]
        assert shown == sorted(shown, reverse=direction == "descending")
        heading = page.locator("#node-table thead th:nth-child(3)")
        assert heading.get_attribute("aria-sort") == direction


def drag(page, selector, start, end):
    """Drag the mouse over an element, between two points that are fractions of its size."""
    page.locator(selector).scroll_into_view_if_needed()
    box = page.locator(selector).bounding_box()
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in (start, end)]
    page.mouse.move(*places[0])
    page.mouse.down()
    page.mouse.move(*places[1], steps=5)
    page.mouse.up()


def shown_on_map(page):
    return page.evaluate('views.map.view.data("shown").length')


def test_a_range_on_a_histogram_selects_on_table_and_map(tab):
    page = tab.page
    drag(page, "#node-p_known svg", (0.3, 0.3), (0.7, 0.4))
    tab.wait_until("state.ranges.p_known && state.selected.length < 30")
    low, high = page.evaluate("state.ranges.p_known")
    p_known = np.linspace(0.0, 1.0, 30)
    expected = int(((p_known >= low - 1e-4) & (p_known <= high + 1e-4)).sum())
    assert 0 < selected(tab) == expected < 30
    assert len(names(tab)) == min(expected, 25)
    assert shown_on_map(page) == expected
    page.locator("#node-p_known svg").dblclick(position={"x": 200, "y": 30})
    tab.wait_until("state.selected.length === 30")
    assert shown_on_map(page) == 30


def test_an_area_on_the_map_selects_in_table_and_histograms(tab):
    page = tab.page
    drag(page, "#node-map canvas", (0.1, 0.1), (0.5, 0.9))
    tab.wait_until("state.area !== null && state.selected.length < 30")
    bars = 'views.p_known.view.data("shown").reduce((sum, bar) => sum + bar.count, 0)'
    tab.wait_until(f"{bars} === state.selected.length")
    assert 0 < selected(tab) < 30


def test_the_map_names_the_node_under_the_pointer(tab):
    page = tab.page
    page.locator("#node-map canvas").scroll_into_view_if_needed()
    place = page.evaluate(
        """() => {
          const {view} = views.map;
          const point = view.data("shown").find((each) => each.name === "n5");
          const box = document.querySelector("#node-map canvas").getBoundingClientRect();
          const left = box.x + view.padding().left + view.origin()[0];
          const top = box.y + view.padding().top + view.origin()[1];
          return [left + view.scale("x")(point.x), top + view.scale("y")(point.y)];
        }"""
    )
    page.mouse.move(*place)
    page.wait_for_selector("#tip:not([hidden])")
    assert "n5" in tab.text("#tip")
    page.mouse.move(1, 1)
    page.wait_for_selector("#tip", state="hidden")


def test_a_name_opens_its_entry_and_contributors_lead_on(tab):
    page = tab.page
    page.locator("#node-table").get_by_role("link", name="n3", exact=True).click()
    tab.wait_until("state.picked === 3")
    assert tab.text("#node-card h3").startswith("Node n3 split: test")
    assert page.locator("#node-table tr.picked th").inner_text() == "n3"
    card = page.locator("#node-card")
    table = card.get_by_role("region", name="Where the evidence comes from")
    assert "50.0 %" in table.inner_text()
    assert "≥" not in table.inner_text()  # the sample has bounds for even rows alone
    table.get_by_role("link").click()
    tab.wait_until(
        'document.querySelector("#node-card h3").textContent.startsWith("Node </script>")'
    )
    assert page.evaluate("window.location.hash") == "#node-0"
    page.go_back()
    tab.wait_until('document.querySelector("#node-card h3").textContent.startsWith("Node n3")')
    page.locator("#node-table").get_by_role("link", name="n4", exact=True).click()
    tab.wait_until("state.picked === 4")
    assert "≥ 50.0 %" in table.inner_text()
    assert "≤ 50.0 %" in table.inner_text()


def test_the_export_is_a_file_without_formulas(tab):
    page = tab.page
    page.locator("select[name=predicted]").select_option("0")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export as CSV").click()
    assert download.value.suggested_filename == "nodes.csv"
    text = download.value.path().read_text(encoding="utf-8-sig")
    lines = list(csv.DictReader(text.splitlines()))
    assert len(lines) == selected(tab) == 10
    assert {line["predicted"] for line in lines} == {"'=1+1"}
    cells = [cell for line in lines for cell in line.values()]
    assert not [cell for cell in cells if re.match(r"[=+@\t\r]|-\D", cell)]


def test_cells_that_are_formulas_get_an_apostrophe(tab):
    cells = ["=1", "+1", "-1", "@a", "\ta", "\ra", "a=1", -1, 'q"']
    assert tab.page.evaluate("(cells) => cells.map(csvCell)", cells) == [
        *("'=1", "'+1", "'-1", "'@a", "'\ta", '"\'\ra"', "a=1", "-1", '"q"""')
    ]


def test_an_address_opens_its_entry(browser, path):
    page = browser.new_page()
    page.goto(f"{path.as_uri()}#node-7")
    assert page.locator("#node-card h3").inner_text().startswith("Node n7")
    page.close()


def test_a_dark_screen_and_a_narrow_one(browser, path):
    with opened(browser, path, color_scheme="dark", viewport={"width": 400, "height": 800}) as tab:
        tab.wait_until_drawn()
        assert tab.page.evaluate("document.documentElement.scrollWidth") == 400
        columns = tab.page.evaluate("columns.length")
        row = tab.page.locator("#node-table tbody tr").first
        cells = row.locator("th, td")
        assert cells.count() == columns
        boxes = [cells.nth(place).bounding_box() for place in range(columns)]
        assert all(box["x"] >= 0 and box["x"] + box["width"] <= 400 for box in boxes)
        ground = "getComputedStyle(document.documentElement).backgroundColor"
        assert tab.page.evaluate(ground) == "rgb(12, 16, 20)"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_print_is_light_without_controls_and_nothing_is_cut_off(browser, path, scheme):
    width = 680  # of A4 without its margins
    settings = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    with opened(browser, path, **settings) as tab:
        tab.wait_until_drawn()
        tab.page.emulate_media(media="print", color_scheme=scheme)
        visible = "(each) => each.checkVisibility()"
        for selector in ("nav", "#node-filters", ".bar button", ".on-screen", "#tip"):
            elements = tab.page.locator(selector)
            assert elements.count()
            for place in range(elements.count()):
                assert not elements.nth(place).evaluate(visible), selector
        ink = tab.page.evaluate("getComputedStyle(document.body).color")
        assert max(map(int, re.findall(r"\d+", ink))) < 60
        tables = "[...document.querySelectorAll('table')].filter((each) => each.checkVisibility())"
        ends = tab.page.evaluate(f"{tables}.map((each) => each.getBoundingClientRect().right)")
        assert ends
        assert max(ends) <= width
        assert tab.page.pdf(format="A4").startswith(b"%PDF")


def test_a_model_without_p_values_has_a_page_too(browser, tmp_path):
    facts = run_facts()
    rows = replace(facts.prediction.nodes, p_known=None, p_parts={}, reasons=("", "", ""))
    plain = replace(facts, prediction=replace(facts.prediction, nodes=rows))
    write_page(RunDirectory(tmp_path), plain)
    with opened(browser, tmp_path / "report.html") as tab:
        tab.wait_until_drawn()
        assert tab.page.locator("#node-p_known").count() == 0
        tab.page.locator("#node-table tbody a").first.click()
        assert tab.text("#node-card h3").startswith("Node 7")
