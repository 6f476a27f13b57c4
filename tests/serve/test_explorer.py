"""The explorer in a real browser: what can be done there, with the mouse and by keyboard alone."""

import re
import shutil
from pathlib import Path
from urllib.parse import quote

import pytest

from gpn_scale.page.palette import DARK, LIGHT
from tests.serve.explored import HOSTILE_IDS, running, trained_run

STATIC = Path(__file__).parents[2] / "gpn_scale" / "serve" / "static"
FILES = sorted(STATIC.iterdir())
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
VIEWS = ("", "#view=review", "#view=label_next", "#view=graph")
LEAST_CONTRAST = 4.5
"""Contrast of text to its ground that WCAG 2 asks for at level AA."""


@pytest.fixture(scope="module")
def service(browser, tmp_path_factory):
    with running(trained_run(tmp_path_factory.mktemp("explored"))) as started:
        yield started


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("no Chromium here")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=path, args=OPTIONS)
        yield opened
        opened.close()


class Explorer:
    """A page of the explorer, the service behind it, and what the browser complained of."""

    def __init__(self, page, service):
        # Playwright is optional, so that the module can be imported without it.
        self.expect = pytest.importorskip("playwright.sync_api").expect
        self.page, self.service = page, service
        self.complaints = []
        page.set_default_timeout(15_000)
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _note(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def open(self, address=""):
        self.page.goto(f"{self.service.address}/{address}")
        self.settle()

    def settle(self):
        """Wait until everything that was asked for is shown."""
        self.page.evaluate("new Promise((resolve) => setTimeout(resolve))")
        self.expect(self.page.locator("[aria-busy=true]")).to_have_count(0)

    def open_node(self, node_id):
        self.open(f"#node={quote(node_id, safe='')}")

    def heading(self):
        return self.page.locator("main h2").first

    def wait_for_node(self, node_id):
        self.page.locator("#entry-title bdi").get_by_text(node_id, exact=True).wait_for()
        self.settle()

    def search_field(self):
        return self.page.get_by_role("combobox", name="Search a node by its id")

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def focused(self, expression="document.activeElement.textContent"):
        return self.page.evaluate(expression)

    def expect_failed_requests(self):
        """Drop the browser's own messages about requests that failed, as a test intended."""
        self.complaints = [each for each in self.complaints if "Failed to load" not in each]


@pytest.fixture
def explorer(browser, service):
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    made = Explorer(context.new_page(), service)
    yield made
    made.settle()
    context.close()
    assert not made.complaints  # neither errors nor violations of the content security policy


def rows(explorer, caption):
    table = explorer.page.locator("table", has=explorer.page.get_by_text(caption, exact=True))
    return table.first.locator("tbody tr")


def column(explorer, caption, title):
    cells = rows(explorer, caption).locator(f"[data-title='{title}']")
    return [text.strip() for text in cells.all_inner_texts()]


def test_search_suggests_ids_while_typing(explorer):
    explorer.open()
    explorer.press("/")
    explorer.page.keyboard.type("n00")
    options = explorer.page.locator("#search [role=option]")
    options.first.wait_for()
    suggested = options.locator("bdi").all_inner_texts()
    assert suggested == [f"n{number:03d}" for number in range(10)]
    explorer.press("ArrowDown", "ArrowDown")
    assert options.nth(1).get_attribute("aria-selected") == "true"
    explorer.press("Escape")
    assert options.count() == 0
    explorer.page.keyboard.type("4")
    options.first.wait_for()
    options.first.click()
    explorer.wait_for_node("n004")
    assert explorer.page.url.endswith("#node=n004")


def test_search_says_when_nothing_is_found(explorer):
    explorer.open()
    explorer.search_field().fill("no such beginning")
    explorer.page.get_by_text("Nothing that begins so is known.").wait_for()


def test_a_node_opens_by_its_address_and_back_leads_back(explorer):
    explorer.open("#node=n012")
    explorer.wait_for_node("n012")
    explorer.page.goto(f"{explorer.service.address}/#node=n013")
    explorer.wait_for_node("n013")
    assert explorer.page.title().startswith("Node n013")
    explorer.page.go_back()
    explorer.wait_for_node("n012")
    explorer.page.go_forward()
    explorer.wait_for_node("n013")


def test_the_entry_has_the_numbers_of_the_service(explorer):
    node = explorer.service.get("/nodes/n020")
    explorer.open_node("n020")
    text = explorer.page.locator("main").inner_text()
    assert f"with a probability of {100 * node['probability']:.1f} %" in text
    assert f"{100 * node['p_known']:.1f} % of the known nodes look at least as strange" in text
    assert node["reason"] in text
    parts = column(explorer, "P-values of the parts: small ones are strange", "part")
    assert len(parts) == len(explorer.service.get("/graph")["parts"])
    shares = column(explorer, "The most probable classes", "probability")
    assert shares[0] == f"{100 * node['probability']:.1f} %"


def test_nodes_are_sorted_and_filtered_by_the_service(explorer):
    explorer.open()
    explorer.page.get_by_role("button", name="probability").click()
    explorer.settle()
    expected = explorer.service.get("/nodes", sort="probability", limit=25)["nodes"]
    assert column(explorer, "Nodes", "probability") == [
        f"{100 * node['probability']:.1f} %" for node in expected
    ]
    assert explorer.page.locator("th[aria-sort=ascending]").inner_text().startswith("probability")
    explorer.page.get_by_label("Predicted class").select_option("mule")
    explorer.page.get_by_label("Split").select_option("test")
    explorer.settle()
    chosen = {"predicted_class": "mule", "split": "test", "sort": "probability", "limit": 25}
    answer = explorer.service.get("/nodes", **chosen)
    sentence = explorer.page.locator("main .note").first.inner_text()
    assert sentence.startswith(f"{answer['total']} nodes pass the filters.")
    ids = [name.removeprefix("◆").strip() for name in column(explorer, "Nodes", "node")]
    assert ids == [node["id"] for node in answer["nodes"]]
    assert set(column(explorer, "Nodes", "split")) == {"test"}
    explorer.page.go_back()  # the filter of the split alone is gone
    explorer.settle()
    assert explorer.page.get_by_label("Predicted class").input_value() == "mule"
    assert explorer.page.get_by_label("Split").input_value() == ""


def test_pages_follow_each_other(explorer):
    explorer.open("#view=nodes&sort=id")
    first = column(explorer, "Nodes", "node")
    explorer.page.get_by_role("button", name="Next").click()
    explorer.page.get_by_text("26 to 50 of").wait_for()
    assert not set(first) & set(column(explorer, "Nodes", "node"))
    explorer.page.get_by_role("button", name="Previous").click()
    explorer.page.get_by_text("1 to 25 of").wait_for()
    assert column(explorer, "Nodes", "node") == first


def test_filters_that_no_node_passes(explorer):
    explorer.open("#view=nodes&search=nobody")
    explorer.page.get_by_text("No node passes these filters.", exact=True).last.wait_for()
    explorer.page.get_by_role("button", name="Show all nodes").click()
    explorer.page.get_by_text("1 to 25 of").wait_for()


def test_a_neighbour_in_the_drawing_leads_to_its_entry(explorer):
    explorer.open_node("n030")
    discs = explorer.page.locator("svg.neighbourhood a")
    answer = explorer.service.get("/neighbourhood", id="n030", hops=2, limit=40)
    assert discs.count() == len(answer["nodes"])
    neighbour = next(node["id"] for node in answer["nodes"] if node["hop"] == 1)
    explorer.page.locator(f"svg.neighbourhood a[href='#node={neighbour}']").click()
    explorer.wait_for_node(neighbour)
    explorer.page.get_by_label("Edges away: up to").select_option("1")
    explorer.settle()
    answer = explorer.service.get("/neighbourhood", id=neighbour, hops=1, limit=40)
    assert discs.count() == len(answer["nodes"])


def test_contributors_and_similar_nodes_are_listed(explorer):
    explorer.open_node("n030")
    answer = explorer.service.get("/contributors", id="n030", count=8)
    shares = column(explorer, "Contributors, by share of the evidence", "share")
    assert [share.removeprefix("< ") for share in shares] == [
        f"{max(100 * each['share'], 0.1):.1f} %" for each in answer["contributors"]
    ]
    similar = explorer.service.get("/similar", id="n030", count=8)["nodes"]
    names = column(explorer, "Nearest nodes in latent space", "node")
    assert [name.removeprefix("◆").strip() for name in names] == [node["id"] for node in similar]


def what_if_number(value):
    """A number with two digits, as the explorer writes those between 0.001 and 100,000."""
    return f"{value:,.{max(1 - int(f'{value:e}'.split('e')[1]), 0)}f}"


def test_what_if_shows_what_the_service_computes(explorer):
    neighbour = explorer.service.get("/neighbours", id="n040")["neighbours"][0]["id"]
    explorer.open_node("n040")
    page = explorer.page
    assert page.get_by_role("button", name="Try", exact=True).is_disabled()
    page.get_by_role("combobox", name="Add an edge to").fill("n00")
    page.locator(".what-if [role=option]").first.wait_for()
    explorer.press("ArrowDown", "Enter")
    page.get_by_role("combobox", name="Remove the edge to").click()
    page.get_by_role("option", name=re.compile(f"^{neighbour} ")).click()
    page.get_by_role("combobox", name="Change the column").fill("amount")
    explorer.press("Escape")
    page.get_by_label("to the value").fill("not a number")
    page.get_by_role("button", name="Set", exact=True).click()
    page.get_by_text("This column takes a number").wait_for()
    page.get_by_label("to the value").fill("-30.5")
    explorer.press("Enter")
    changes = page.locator(".changes li > span").all_inner_texts()
    assert changes == [
        "add an edge to n000", f"remove the edge to {neighbour}", "set amount to -30.5",
    ]  # fmt: skip
    page.get_by_role("button", name="Try", exact=True).click()
    page.locator(".comparison").wait_for()
    body = {"id": "n040", "columns": {"amount": -30.5}, "add_edges": [{"id": "n000"}]}
    answer = explorer.service.post("/what_if", {**body, "remove_edges": [neighbour]})
    assert answer["before"]["p_known"] != answer["after"]["p_known"]
    for moment in ("before", "after"):
        shown = dict(
            zip(
                column(explorer, "Before and after", ""),
                column(explorer, "Before and after", moment),
                strict=True,
            )
        )
        assert shown["probability"] == f"{100 * answer[moment]['probability']:.1f} %"
        assert shown["p known"] == what_if_number(answer[moment]["p_known"])
        assert shown["p of own features"] == what_if_number(answer[moment]["p_features"])
    page.get_by_role("button", name="Reset").click()
    assert page.locator(".comparison").count() == 0
    page.get_by_text("No change yet. Add one above.").wait_for()


def test_review_by_keyboard_keeps_decisions(explorer):
    review = explorer.service.get("/triage", list="review")["rows"]
    first, second, third = [row["id"] for row in review if row["decision"] is None][:3]
    explorer.open("#view=review")
    explorer.wait_for_node(first)
    explorer.press("a")
    explorer.wait_for_node(second)
    explorer.page.get_by_label("Note").fill("seen twice")
    explorer.press("Escape", "r")
    assert explorer.focused("document.activeElement.tagName") == "SELECT"
    explorer.page.keyboard.type("C")
    explorer.press("Enter")
    explorer.wait_for_node(third)
    explorer.press("s")
    explorer.page.locator("#entry-title bdi").get_by_text(third, exact=True).wait_for(
        state="detached"
    )
    kept = {each["id"]: each for each in explorer.service.decisions()}
    assert kept[first]["decision"] == "accept"
    assert (kept[second]["decision"], kept[second]["note"]) == ("relabel", "seen twice")
    assert kept[second]["label"] == explorer.service.get("/graph")["classes"][2]
    assert kept[third]["decision"] == "skip"
    for _ in range(3):  # back to the first: a later decision replaces the earlier one
        explorer.page.go_back()
        explorer.settle()
    explorer.wait_for_node(first)
    explorer.page.get_by_text("Decided: accepted").wait_for()
    explorer.page.get_by_role("button", name="Skip").click()
    explorer.page.locator("#entry-title bdi").get_by_text(first, exact=True).wait_for(
        state="detached"
    )
    kept = {each["id"]: each for each in explorer.service.decisions()}
    assert kept[first]["decision"] == "skip"
    review = explorer.service.get("/triage", list="review", limit=500)["rows"]
    decided = len(kept.keys() & {row["id"] for row in review})
    assert explorer.page.get_by_text(re.compile(f"^ *{decided} of .* decided$")).is_visible()


def test_letters_in_text_fields_decide_nothing(explorer):
    before = len(explorer.service.decisions())
    explorer.open("#view=review")
    explorer.page.get_by_label("Note").fill("")
    explorer.page.get_by_label("Note").press_sequentially("as/r")
    assert explorer.page.get_by_label("Note").input_value() == "as/r"
    assert len(explorer.service.decisions()) == before


def test_from_search_to_decision_by_keyboard_alone(explorer):
    explorer.open()
    explorer.press("/")
    explorer.page.keyboard.type("n05")
    explorer.page.locator("#search [role=option]").first.wait_for()
    explorer.press("ArrowDown", "Enter")
    explorer.wait_for_node("n050")
    explorer.settle()
    for _ in range(20):  # the drawing is one stop in the order of tabs
        explorer.press("Tab")
        if explorer.focused("Boolean(document.activeElement.closest('svg.neighbourhood'))"):
            break
    explorer.press("ArrowRight")
    target = explorer.focused("document.activeElement.getAttribute('href')")
    neighbours = explorer.service.get("/neighbours", id="n050")["neighbours"]
    assert target in {f"#node={quote(each['id'], safe='')}" for each in neighbours}
    explorer.press("Enter")
    explorer.page.wait_for_url(f"**/{target}")
    explorer.settle()
    assert explorer.focused("document.activeElement.getAttribute('href')") == target
    explorer.press("a")  # decides in a review alone
    for _ in range(80):
        explorer.press("Tab")
        if explorer.focused() == "Skip":
            break
    explorer.press("Enter")
    explorer.page.get_by_text("Decided: skipped").wait_for()
    assert target == f"#node={quote(explorer.service.decisions()[-1]['id'], safe='')}"
    explorer.open("#node=n051")
    explorer.wait_for_node("n051")
    explorer.open(target)
    explorer.page.get_by_text("Decided: skipped").wait_for()


@pytest.mark.parametrize("node_id", HOSTILE_IDS, ids=ascii)
def test_hostile_ids_are_texts(explorer, node_id):
    explorer.open_node(node_id)
    explorer.wait_for_node(node_id)
    assert explorer.page.evaluate("document.querySelectorAll('main script, main img').length") == 0
    assert explorer.page.evaluate("window.wasRun") is None
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
    explorer.open("#node=n0166")
    notice = explorer.page.get_by_role("alert")
    notice.wait_for()
    nearest = notice.locator("a").all_inner_texts()
    assert "n016" in nearest
    notice.get_by_role("link", name="n016", exact=True).click()
    explorer.wait_for_node("n016")
    explorer.expect_failed_requests()


def test_a_broken_escape_in_the_address_is_an_unknown_id(explorer):
    explorer.open("#node=%E0%A4%A")
    explorer.page.get_by_role("alert").wait_for()
    explorer.expect_failed_requests()


def test_a_busy_server_can_be_asked_again(explorer):
    busy = {"status": 503, "json": {"error": "the service is busy, ask again"}}
    explorer.page.route("**/similar*", lambda route: route.fulfill(**busy))
    explorer.open_node("n010")
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


@pytest.mark.parametrize("view", [*VIEWS, "#node=n030", f"#node={'long' * 60}"])
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


COLOURS_OF_TEXT = """
[...document.querySelectorAll("h1, h2, h3, p, a, dt, dd, th, td, label, button, input, select, .strange")]
  .filter((each) => each.checkVisibility() && !each.disabled)
  .map((each) => {
    let ground = each;
    const colourOf = (at) => getComputedStyle(at).backgroundColor;
    while (ground.parentElement && /, 0\\)$|transparent/.test(colourOf(ground))) ground = ground.parentElement;
    return [each.tagName, getComputedStyle(each).color, colourOf(ground)];
  })
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(explorer, scheme):
    explorer.page.emulate_media(color_scheme=scheme)
    explorer.open_node("n030")
    colours = {tuple(each) for each in explorer.page.evaluate(COLOURS_OF_TEXT)}
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
    names = column(explorer, "The labelling list", "node")
    assert [name.removeprefix("◆").strip() for name in names] == [row["id"] for row in listed]


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
