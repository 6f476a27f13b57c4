"""Answers have the numbers of the table of predictions, and nothing that JSON does not have."""

import json
import math
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from gpn_scale.cli.predict import main as predict
from gpn_scale.serve.answers import (
    MOST_CLASSES,
    briefs,
    finite,
    json_bytes,
    node_answer,
    node_brief,
    predicted_answers,
    probabilities,
    with_fields,
)
from gpn_scale.triage.promise import Promise


@pytest.fixture(scope="module")
def command_table(served_run, tmp_path_factory):
    """What gpn-predict writes."""
    out = tmp_path_factory.mktemp("command") / "x.parquet"
    assert predict(["--run", str(served_run), "--out", str(out), "--threads", "1"]) == 0
    return pq.read_table(out).to_pylist()


def test_answers_are_the_rows_that_the_command_writes(model, command_table):
    for node, row in enumerate(command_table):
        answer = node_answer(model, node)
        assert answer["id"] == row["node_name"]
        assert answer["predicted_class"] == row["predicted_class_name"]
        for label, name in enumerate(model.classes):
            assert answer["probabilities"][name] == row[f"probability_{label}"]
        assert answer["label"] == (None if row["label"] is None else model.classes[row["label"]])
        others = set(row) - {
            "node",
            "node_name",
            "predicted_class",
            "predicted_class_name",
            "label",
        }
        for name in others - {f"probability_{label}" for label in range(2)}:
            if not name.startswith("mark_"):
                assert answer[name] == row[name], name
        assert answer["probability"] == max(answer["probabilities"].values())
        assert answer["degree"] == model.graph.out_degree[node]
        assert answer["abstain"] is None
        brief = node_brief(model, node)
        assert brief.items() <= answer.items()


def test_trust_decides_with_a_promise(model):
    counts = {"held_out_nodes": 200, "answered_nodes": 150, "answered_errors": 3}
    median = float(np.median(model.table.column("trust")))
    promise = Promise(error=0.05, confidence=0.9, threshold=median, **counts)
    promised = replace(model, promise=promise)
    abstains = promise.abstains(model.classifier.predict(model.graph))
    assert [node_answer(promised, node)["abstain"] for node in range(40)] == abstains[:40].tolist()
    assert 0 < abstains.sum() < len(abstains)


def test_predictions_beside_the_table_have_the_same_fields(model):
    nodes = np.array([3, 60])
    prediction = model.classifier.predict(model.graph).rows(nodes)
    ids = [model.ids.text(node) for node in nodes]
    further = {"label": ["x", None], "share": np.array([0.5, np.nan]), "count": np.array([1, 2])}
    answers = predicted_answers(prediction, ids, model.classes, further=further)
    for node, answer in zip(nodes, answers, strict=True):
        known = node_answer(model, node)
        same = set(known) - {"label", "split", "degree"}
        assert {name: answer[name] for name in same} == {name: known[name] for name in same}
    assert [answer["share"] for answer in answers] == [0.5, None]
    assert [answer["count"] for answer in answers] == [1, 2]


def test_of_many_classes_the_most_probable_ones_are_named():
    values = np.arange(300, dtype=np.float32)
    named = probabilities(values, [str(label) for label in range(300)])
    assert list(named) == [str(label) for label in range(299, 299 - MOST_CLASSES, -1)]


def test_json_has_no_numbers_that_are_not_finite():
    assert [finite(value) for value in (1.5, math.nan, math.inf, -math.inf)] == [1.5, *[None] * 3]
    assert json.loads(json_bytes({"a": "日<"})) == {"a": "日<"}
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_bytes(math.nan)


def test_further_fields_follow_the_place(model):
    answers = with_fields(briefs(model, [4, 2]), {"hop": lambda i: 10 * i})
    assert [answer["hop"] for answer in answers] == [0, 10]
    assert answers[1]["id"] == model.ids.text(2)
