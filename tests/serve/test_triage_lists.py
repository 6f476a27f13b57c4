"""The lists are those of gpn-triage, page by page, with decisions."""

import csv

import pytest

from gpn_scale.cli.triage import main as triage
from gpn_scale.serve.decisions import DecisionLog
from gpn_scale.serve.triage_lists import nodes_to_label, triage_page


@pytest.fixture(scope="module")
def command_lists(served_run, tmp_path_factory):
    out = tmp_path_factory.mktemp("lists")
    options = ["--review", "60", "--label-next", "50", "--threads", "1"]
    assert triage(["--run", str(served_run), "--out", str(out), *options]) == 0
    lists = {}
    for name in ("review", "label_next"):
        with (out / f"{name}.csv").open(newline="", encoding="utf-8") as file:
            lists[name] = list(csv.DictReader(file))
    return lists


@pytest.mark.parametrize("name", ["review", "label_next"])
def test_lists_are_those_of_the_command(model, command_lists, name, tmp_path):
    log = DecisionLog(tmp_path / "d.jsonl", "run", "bank")
    rows = triage_page(model, log, name, 0, 25)["rows"]
    rows += triage_page(model, log, name, 25, 25)["rows"]
    expected = command_lists[name][:50]
    assert [row["id"].lstrip("'") for row in rows] == [row["id"].lstrip("'") for row in expected]
    for own, row in zip(rows, expected, strict=True):
        assert own["reason"] == row["reason"]
        assert own["detail"] == row["detail"]
        assert own["trust"] == pytest.approx(float(row["trust"]), abs=1e-6)
        assert own["decision"] is None


def test_the_latest_decision_stands_beside_its_node(model, tmp_path):
    log = DecisionLog(tmp_path / "d.jsonl", "run", "bank")
    page = triage_page(model, log, "review", 3, 2)
    node_id = page["rows"][1]["id"]
    DecisionLog(log.path, "run", "bank").append(
        node_id, "skip", label=None, note="later", model="m"
    )
    again = triage_page(model, log, "review", 3, 2)
    assert again["rows"][0]["decision"] is None
    assert again["rows"][1]["decision"]["note"] == "later"
    assert again["total"] == page["total"] == len(model.unused_by_trust())
    assert triage_page(model, log, "review", 10_000, 2)["rows"] == []


def test_decided_nodes_of_a_list_are_counted_once(model, tmp_path):
    log = DecisionLog(tmp_path / "d.jsonl", "run", "bank")
    review = [row["id"] for row in triage_page(model, log, "review", 0, 3)["rows"]]
    label_next = triage_page(model, log, "label_next", 0, 1)["rows"][0]["id"]
    trained = model.ids.text(int(model.graph.split.train[0]))
    gone = "an id of an earlier graph"
    for node_id in (review[0], review[0], review[1], trained, gone):
        log.append(node_id, "skip", label=None, note=None, model="m")
    before = triage_page(model, log, "label_next", 0, 1)["decided"]
    assert triage_page(model, log, "review", 0, 1)["decided"] == 2
    log.append(label_next, "accept", label=None, note=None, model="m")
    is_new = label_next not in review[:2]
    assert triage_page(model, log, "label_next", 0, 1)["decided"] == before + is_new


def test_nodes_to_label_are_chosen_once(model):
    assert nodes_to_label(model) is nodes_to_label(model)
