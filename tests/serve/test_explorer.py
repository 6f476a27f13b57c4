"""What can be done in the explorer, with the mouse and by keyboard alone."""

import re
from urllib.parse import quote


def test_search_suggests_ids_while_typing(explorer):
    explorer.open()
    explorer.press("/")
    explorer.page.keyboard.type("acc-05")
    options = explorer.page.locator("#search [role=option]")
    expected = [f"acc-05{digit}" for digit in range(10)]
    explorer.expect(options.locator("bdi")).to_have_text(expected)
    explorer.press("ArrowDown", "ArrowDown")
    assert options.nth(1).get_attribute("aria-selected") == "true"
    explorer.press("Escape")
    assert options.count() == 0
    explorer.page.keyboard.type("4")
    options.first.wait_for()
    options.first.click()
    explorer.wait_for_node("acc-054")
    assert explorer.page.url.endswith("#node=acc-054")


def test_search_says_when_nothing_is_found(explorer):
    explorer.open()
    explorer.search_field().fill("no such beginning")
    explorer.page.get_by_text("Nothing that begins so is known.").wait_for()


def test_a_node_opens_by_its_address_and_back_leads_back(explorer):
    explorer.open("#node=acc-012")
    explorer.wait_for_node("acc-012")
    explorer.page.goto(f"{explorer.service.address}/#node=acc-013")
    explorer.wait_for_node("acc-013")
    assert explorer.page.title().startswith("Node acc-013")
    explorer.page.go_back()
    explorer.wait_for_node("acc-012")
    explorer.page.go_forward()
    explorer.wait_for_node("acc-013")


def test_the_entry_has_the_numbers_of_the_service(explorer):
    node = explorer.service.get("/nodes/acc-020")
    explorer.open_node("acc-020")
    text = explorer.page.locator("main").inner_text()
    assert f"with a probability of {100 * node['probability']:.1f} %" in text
    assert f"{100 * node['p_known']:.1f} % of the known nodes look at least as strange" in text
    assert node["reason"] in text
    parts = explorer.column("P-values of the parts: small ones are strange", "part")
    assert len(parts) == len(explorer.service.get("/graph")["parts"])
    shares = explorer.column("The most probable classes", "probability")
    assert shares[0] == f"{100 * node['probability']:.1f} %"


def test_nodes_are_sorted_and_filtered_by_the_service(explorer):
    explorer.open()
    explorer.page.get_by_role("button", name="probability").click()
    explorer.settle()
    expected = explorer.service.get("/nodes", sort="probability", limit=25)["nodes"]
    assert explorer.column("Nodes", "probability") == [
        f"{100 * node['probability']:.1f} %" for node in expected
    ]
    assert explorer.page.locator("th[aria-sort=ascending]").inner_text().startswith("probability")
    explorer.page.get_by_label("Predicted class").select_option("bad")
    explorer.page.get_by_label("Split").select_option("test")
    explorer.settle()
    chosen = {"predicted_class": "bad", "split": "test", "sort": "probability", "limit": 25}
    answer = explorer.service.get("/nodes", **chosen)
    sentence = explorer.page.locator("main .note").first.inner_text()
    assert sentence.startswith(f"{answer['total']} nodes pass the filters.")
    assert explorer.ids("Nodes") == [node["id"] for node in answer["nodes"]]
    assert set(explorer.column("Nodes", "split")) == {"test"}
    explorer.page.go_back()  # the filter of the split alone is gone
    explorer.settle()
    assert explorer.page.get_by_label("Predicted class").input_value() == "bad"
    assert explorer.page.get_by_label("Split").input_value() == ""


def test_pages_follow_each_other(explorer):
    explorer.open("#view=nodes&sort=id")
    first = explorer.column("Nodes", "node")
    explorer.page.get_by_role("button", name="Next").click()
    explorer.page.get_by_text("26 to 50 of").wait_for()
    assert not set(first) & set(explorer.column("Nodes", "node"))
    explorer.page.get_by_role("button", name="Previous").click()
    explorer.page.get_by_text("1 to 25 of").wait_for()
    assert explorer.column("Nodes", "node") == first


def test_arrow_keys_move_in_a_table(explorer):
    explorer.open("#view=nodes&sort=id")
    ids = explorer.ids("Nodes")
    explorer.rows("Nodes").first.get_by_role("link").focus()
    for key, place in (("ArrowDown", 1), ("End", -1), ("ArrowDown", 0), ("ArrowUp", -1)):
        explorer.press(key)
        assert explorer.focused() == ids[place]
    explorer.press("Home", "Enter")
    explorer.wait_for_node(ids[0])


def test_filters_that_no_node_passes(explorer):
    explorer.open("#view=nodes&search=nobody")
    explorer.page.get_by_text("No node passes these filters.", exact=True).last.wait_for()
    explorer.page.get_by_role("button", name="Show all nodes").click()
    explorer.page.get_by_text("1 to 25 of").wait_for()


def test_a_neighbour_in_the_drawing_leads_to_its_entry(explorer):
    explorer.open_node("acc-030")
    discs = explorer.page.locator("svg.neighbourhood a")
    answer = explorer.service.get("/neighbourhood", id="acc-030", hops=2, limit=40)
    assert discs.count() == len(answer["nodes"])
    neighbour = next(node["id"] for node in answer["nodes"] if node["hop"] == 1)
    link = explorer.page.locator(f"svg.neighbourhood a[href='#node={neighbour}']")
    link.hover()
    assert explorer.page.locator(".caption").inner_text().startswith(f"{neighbour}: predicted ")
    link.click()
    explorer.wait_for_node(neighbour)
    explorer.page.get_by_label("Edges away: up to").select_option("1")
    explorer.settle()
    answer = explorer.service.get("/neighbourhood", id=neighbour, hops=1, limit=40)
    assert discs.count() == len(answer["nodes"])


def test_contributors_and_similar_nodes_are_listed(explorer):
    explorer.open_node("acc-030")
    answer = explorer.service.get("/contributors", id="acc-030", count=8)
    shares = explorer.column("Contributors, by share of the evidence", "share")
    assert [share.removeprefix("< ") for share in shares] == [
        f"{max(100 * each['share'], 0.1):.1f} %" for each in answer["contributors"]
    ]
    similar = explorer.service.get("/similar", id="acc-030", count=8)["nodes"]
    assert explorer.ids("Nearest nodes in latent space") == [node["id"] for node in similar]


def what_if_number(value):
    """A number with two digits, as the explorer writes those between 0.001 and 100,000."""
    return f"{value:,.{max(1 - int(f'{value:e}'.split('e')[1]), 0)}f}"


def test_what_if_shows_what_the_service_computes(explorer):
    neighbours = [
        each["id"] for each in explorer.service.get("/neighbours", id="acc-040")["neighbours"]
    ]
    neighbour = neighbours[0]
    other = next(f"acc-05{digit}" for digit in range(10) if f"acc-05{digit}" not in neighbours)
    explorer.open_node("acc-040")
    page = explorer.page
    assert page.get_by_role("button", name="Try", exact=True).is_disabled()
    page.get_by_role("combobox", name="Add an edge to").fill(other)
    page.locator(".what-if [role=option]").first.wait_for()
    explorer.press("ArrowDown", "Enter")
    page.get_by_role("combobox", name="Remove the edge to").click()
    page.get_by_role("option", name=re.compile(f"^{neighbour} ")).click()
    page.get_by_role("combobox", name="Change the column").fill("size")
    explorer.press("Escape")
    page.get_by_label("to the value").fill("not a number")
    page.get_by_role("button", name="Set", exact=True).click()
    page.get_by_text("This column takes a number").wait_for()
    page.get_by_label("to the value").fill("-30.5")
    explorer.press("Enter")
    changes = page.locator(".changes li > span").all_inner_texts()
    assert changes == [
        f"add an edge to {other}", f"remove the edge to {neighbour}", "set size to -30.5",
    ]  # fmt: skip
    page.get_by_role("button", name="Try", exact=True).click()
    page.locator(".comparison").wait_for()
    body = {"id": "acc-040", "columns": {"size": -30.5}, "add_edges": [{"id": other}]}
    answer = explorer.service.post("/what_if", {**body, "remove_edges": [neighbour]})
    assert answer["before"]["p_known"] != answer["after"]["p_known"]
    for moment in ("before", "after"):
        shown = dict(
            zip(
                explorer.column("Before and after", ""),
                explorer.column("Before and after", moment),
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
    explorer.page.keyboard.type("B")
    explorer.press("Enter")
    explorer.wait_for_node(third)
    explorer.press("s")
    explorer.page.locator("#entry-title bdi").get_by_text(third, exact=True).wait_for(
        state="detached"
    )
    kept = {each["id"]: each for each in explorer.service.decisions()}
    assert kept[first]["decision"] == "accept"
    assert (kept[second]["decision"], kept[second]["note"]) == ("relabel", "seen twice")
    assert kept[second]["label"] == explorer.service.get("/graph")["classes"][1]
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
    explorer.page.get_by_text(re.compile(f"^ *{decided} of .* decided$")).wait_for()


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
    explorer.page.keyboard.type("acc-05")
    first = explorer.page.locator("#search [role=option] bdi").first
    explorer.expect(first).to_have_text("acc-050")
    explorer.press("ArrowDown", "Enter")
    explorer.wait_for_node("acc-050")
    explorer.settle()
    for _ in range(20):  # the drawing is one stop in the order of tabs
        explorer.press("Tab")
        if explorer.focused("Boolean(document.activeElement.closest('svg.neighbourhood'))"):
            break
    explorer.press("ArrowRight")
    target = explorer.focused("document.activeElement.getAttribute('href')")
    neighbours = explorer.service.get("/neighbours", id="acc-050")["neighbours"]
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
    explorer.open("#node=acc-051")
    explorer.wait_for_node("acc-051")
    explorer.open(target)
    explorer.page.get_by_text("Decided: skipped").wait_for()
