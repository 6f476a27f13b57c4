"""The explorer with hostile ids, failing servers, narrow and dark screens; its files."""

import re
from pathlib import Path
from urllib.parse import quote

import pytest

from gpn_scale.page.palette import DARK, LIGHT
from tests.serve.conftest import HOSTILE

STATIC = Path(__file__).parents[2] / "gpn_scale" / "serve" / "static"
FILES = sorted(STATIC.iterdir())
VIEWS = ("", "#view=review", "#view=label_next", "#view=graph")
LEAST_CONTRAST = 4.5
"""Contrast of text to its ground that WCAG 2 asks for at level AA."""


@pytest.mark.parametrize("node_id", HOSTILE, ids=ascii)
def test_hostile_ids_are_texts(explorer, node_id):
    explorer.open_node(node_id)
    explorer.wait_for_node(node_id)
    assert explorer.page.evaluate("document.querySelectorAll('main script').length") == 0
    explorer.search_field().fill(node_id)
    option = explorer.page.locator("#search [role=option] bdi").get_by_text(node_id, exact=True)
    option.click()
    explorer.wait_for_node(node_id)
    neighbour = explorer.service.get("/neighbours", id=node_id)["neighbours"][0]["id"]
    explorer.open_node(neighbour)
    link = f"svg.neighbourhood a[href='#node={encoded(node_id)}']"
    explorer.page.locator(link).dispatch_event("click")
    explorer.wait_for_node(node_id)


def encoded(text):
    """The text as encodeURIComponent of JavaScript writes it, for use between single quotes."""
    return quote(text, safe="!*()'").replace("'", "\\'")


def test_an_unknown_id_leads_to_the_nearest_ones(explorer):
    explorer.open("#node=acc-0166")
    notice = explorer.page.get_by_role("alert")
    notice.wait_for()
    nearest = notice.locator("a").all_inner_texts()
    assert "acc-016" in nearest
    notice.get_by_role("link", name="acc-016", exact=True).click()
    explorer.wait_for_node("acc-016")
    explorer.expect_failed_requests()


def test_a_broken_escape_in_the_address_is_an_unknown_id(explorer):
    explorer.open("#node=%E0%A4%A")
    explorer.page.get_by_role("alert").wait_for()
    explorer.expect_failed_requests()


def test_a_busy_server_can_be_asked_again(explorer):
    busy = {"status": 503, "json": {"error": "the service is busy, ask again"}}
    explorer.page.route("**/similar*", lambda route: route.fulfill(**busy))
    explorer.open_node("acc-010")
    explorer.page.get_by_text("The service is busy, ask again.").wait_for()
    explorer.page.unroute("**/similar*")
    explorer.page.get_by_role("button", name="Try again").click()
    explorer.page.get_by_text("Nearest nodes in latent space").wait_for()
    explorer.expect_failed_requests()


def test_a_server_that_is_gone_is_said_so(explorer):
    explorer.page.route("**/graph", lambda route: route.abort())
    explorer.open()
    explorer.page.get_by_text("The server does not answer.").wait_for()
    explorer.page.unroute("**/graph")
    explorer.page.get_by_role("button", name="Try again").click()
    explorer.page.get_by_text("1 to 25 of").wait_for()
    explorer.expect_failed_requests()


def test_the_token_is_asked_for_and_kept(explorer):
    def guard(route):
        if route.request.headers.get("authorization") == "Bearer the right token":
            route.continue_()
        else:
            route.fulfill(status=401, json={"error": "the request needs the token"})

    for pattern in ("**/graph", "**/nodes*"):
        explorer.page.route(pattern, guard)
    explorer.page.goto(explorer.service.address)
    field = explorer.page.get_by_label("Token", exact=True)
    field.fill("a wrong one")
    explorer.press("Enter")
    explorer.page.get_by_text("The server does not accept this token.").wait_for()
    field.fill("the right token")
    explorer.page.get_by_role("button", name="Use this token").click()
    explorer.page.get_by_text("1 to 25 of").wait_for()
    explorer.page.reload()
    explorer.page.get_by_text("1 to 25 of").wait_for()
    assert not field.is_visible()
    explorer.expect_failed_requests()


@pytest.mark.parametrize("view", [*VIEWS, "#node=acc-030", f"#node={'long' * 60}"])
def test_a_screen_of_400_pixels_is_enough(explorer, view):
    explorer.page.set_viewport_size({"width": 400, "height": 800})
    explorer.open(view)
    if "long" in view:
        explorer.expect_failed_requests()
    width = explorer.page.evaluate("document.documentElement.scrollWidth")
    assert width == 400
    hidden = "[...document.querySelectorAll('main td, main tbody th')].filter("
    hidden += "(cell) => !cell.closest('details') && cell.getBoundingClientRect().right > 400)"
    assert explorer.page.evaluate(f"{hidden}.length") == 0


def luminance(colour):
    """Relative luminance after WCAG 2, of rgb(r, g, b)."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(first, second):
    bright, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


TEXTS = "h1, h2, h3, p, a, dt, dd, th, td, label, button, input, select, .strange"
COLOURS_OF_TEXT = """
(selector) => [...document.querySelectorAll(selector)]
  .filter((each) => each.checkVisibility() && !each.disabled)
  .map((each) => {
    let ground = each;
    const colourOf = (at) => getComputedStyle(at).backgroundColor;
    const isClear = () => /, 0\\)$|transparent/.test(colourOf(ground));
    while (ground.parentElement && isClear()) ground = ground.parentElement;
    return [each.tagName, getComputedStyle(each).color, colourOf(ground)];
  })
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(explorer, scheme):
    explorer.page.emulate_media(color_scheme=scheme)
    explorer.open_node("acc-030")
    colours = {tuple(each) for each in explorer.page.evaluate(COLOURS_OF_TEXT, TEXTS)}
    paper = next(ground for tag, _, ground in colours if tag == "H3")
    assert (luminance(paper) < 0.1) is (scheme == "dark")
    faint = {each: contrast(*each[1:]) for each in colours}
    assert not {each: ratio for each, ratio in faint.items() if ratio < LEAST_CONTRAST}


def test_the_facts_of_the_graph_are_shown(explorer):
    graph = explorer.service.get("/graph")
    explorer.open("#view=graph")
    text = explorer.page.locator("main").inner_text()
    assert f"{graph['num_nodes']:,}" in text
    assert f"{graph['num_edges'] // 2:,}" in text  # stored once in each direction
    assert graph["condition"] in text
    for address in ("docs", "metrics"):
        link = explorer.page.locator(f"main a[href='{address}']")
        assert link.count() == 1


def test_the_labelling_list_is_that_of_the_service(explorer):
    explorer.open("#view=label_next")
    listed = explorer.service.get("/triage", list="label_next", limit=25)["rows"]
    assert explorer.ids("The labelling list") == [row["id"] for row in listed]


def test_a_model_without_p_values_has_no_such_columns(explorer):
    def without(route):
        graph = route.fetch().json()
        route.fulfill(json={**graph, "parts": [], "promise": None})

    explorer.page.route("**/graph", without)
    explorer.open()
    titles = explorer.page.locator("main thead th").all_inner_texts()
    assert "p known" not in titles
    assert "reason" not in titles


@pytest.mark.parametrize(("scheme", "palette"), [("light", LIGHT), ("dark", DARK)])
def test_colours_are_those_of_the_pages(scheme, palette):
    text = (STATIC / "explorer.css").read_text(encoding="utf-8")
    light, dark = text.split("prefers-color-scheme: dark", maxsplit=1)
    given = dict(re.findall(r"--([\w-]+): (#\w+);", light if scheme == "light" else dark))
    ground = given.pop("ground")
    assert re.fullmatch("#[0-9a-f]{6}", ground)
    assert given == {name: palette[name] for name in given}
    assert {f"hue-{place}" for place in range(7)} <= given.keys()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_load_nothing_from_elsewhere_and_write_no_markup(path):
    text = path.read_text(encoding="utf-8")
    addresses = set(re.findall(r"https?://[^\s\"')]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text)
    assert not re.search(r"<[^>]+\s(style|on\w+)=", text)
    assert len(text.splitlines()) <= 400
