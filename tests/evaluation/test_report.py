import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from gpn_scale.config import RunConfig
from gpn_scale.data.splits import leave_out_classes
from gpn_scale.evaluation import prediction as prediction_module
from gpn_scale.evaluation.prediction import SCORES, Prediction
from gpn_scale.evaluation.prediction_metrics import (
    classification_metrics,
    out_of_distribution_metrics,
)
from gpn_scale.evaluation.prediction_table import write_predictions
from gpn_scale.evaluation.report import make_report

SECONDS = {"precompute": 0.0, "train": 1.0, "inference": 0.5}


def prediction_for(graph, rng_seed=0) -> Prediction:
    rng = np.random.default_rng(rng_seed)
    draws = [rng.dirichlet(np.ones(graph.num_classes), graph.num_nodes) for _ in range(2)]
    totals = [rng.gamma(2.0, size=graph.num_nodes) for _ in range(2)]
    return Prediction(
        probabilities=draws[0].astype(np.float32),
        probabilities_no_network=draws[1].astype(np.float32),
        alpha_0=totals[0].astype(np.float32),
        alpha_0_no_network=totals[1].astype(np.float32),
    )


def report_of(graph, prediction):
    return make_report(prediction, graph, RunConfig(), seconds=SECONDS, epochs=7, best_epoch=3)


def test_a_perfect_score_finds_all_marked_nodes(small_graph):
    prediction = prediction_for(small_graph)
    alpha_0 = np.ones(small_graph.num_nodes, np.float32)
    alpha_0[small_graph.marked] = 0.0
    metrics = out_of_distribution_metrics(replace(prediction, alpha_0=alpha_0), small_graph)
    assert metrics["auroc_epistemic"] == 1.0
    assert metrics["aupr_epistemic"] == 1.0
    assert 0.3 < metrics["auroc_epistemic_no_network"] < 0.7
    assert set(metrics["marks"]) == set(small_graph.marks)
    assert metrics["ood_nodes"] == len(small_graph.marked)


def test_marked_nodes_do_not_count_as_known(small_graph):
    prediction = prediction_for(small_graph)
    ordinary = np.setdiff1d(small_graph.split.test, small_graph.marked)
    correct = prediction.predicted_class[ordinary] == small_graph.labels[ordinary]
    metrics = out_of_distribution_metrics(prediction, small_graph)
    assert metrics["id_accuracy"] == pytest.approx(correct.mean())
    assert metrics["id_nodes"] == len(ordinary)


def test_left_out_classes_are_positives_and_no_test_nodes(small_graph):
    reduced = leave_out_classes(small_graph, 1)
    prediction = prediction_for(reduced)
    metrics = out_of_distribution_metrics(prediction, reduced)
    in_test = np.isin(np.flatnonzero(small_graph.labels == 2), small_graph.split.test)
    assert metrics["marks"]["left_out_classes"]["ood_nodes"] == in_test.sum()


def test_misclassified_nodes_are_the_positives(small_graph):
    prediction = prediction_for(small_graph)
    wrong = prediction.predicted_class != small_graph.labels
    sharp = replace(prediction, alpha_0=(~wrong).astype(np.float32))
    metrics = classification_metrics(sharp, small_graph, small_graph.split.test)
    assert metrics["misclassification_auroc_epistemic"] == 1.0


def test_a_graph_without_marks_has_no_detection(small_graph):
    plain = replace(small_graph, marks={})
    assert out_of_distribution_metrics(prediction_for(plain), plain) == {}
    assert "Detection" not in report_of(plain, prediction_for(plain)).to_markdown()


def test_report_holds_the_contract(small_graph, tmp_path):
    report = report_of(small_graph, prediction_for(small_graph))
    report.write(tmp_path / "report.json", tmp_path / "report.md")
    values = json.loads((tmp_path / "report.json").read_text())
    for key in ("dataset", "mode", "config", "fingerprint", "seconds", "peak_rss_bytes", "epochs"):
        assert key in values
    for part in ("test", "val"):
        for kind in ("auroc", "aupr"):
            for score in SCORES:
                assert 0 <= values["metrics"][part][f"misclassification_{kind}_{score}"] <= 1
        assert {"accuracy", "ece", "brier"} <= set(values["metrics"][part])
    assert "unseen class" in (tmp_path / "report.md").read_text()


def test_undefined_numbers_become_null(small_graph, tmp_path):
    prediction = prediction_for(small_graph)
    perfect = np.eye(3, dtype=np.float32)[np.maximum(small_graph.labels, 0)]
    report = report_of(small_graph, replace(prediction, probabilities=perfect))
    report.write(tmp_path / "report.json", tmp_path / "report.md")
    values = json.loads((tmp_path / "report.json").read_text())
    assert values["metrics"]["test"]["accuracy"] == 1.0
    assert values["metrics"]["test"]["misclassification_auroc_epistemic"] is None
    assert "n.a." in (tmp_path / "report.md").read_text()


def test_predictions_have_one_row_per_node(small_graph, tmp_path):
    names = np.array([f"node {i}" for i in range(small_graph.num_nodes)])
    graph = replace(small_graph, node_names=names)
    prediction = prediction_for(graph)
    write_predictions(tmp_path / "p.parquet", prediction, graph)
    table = pq.read_table(tmp_path / "p.parquet")
    assert table.num_rows == graph.num_nodes
    assert table["node_name"][5].as_py() == "node 5"
    np.testing.assert_array_equal(table["alpha_0"].to_numpy(), prediction.alpha_0)
    np.testing.assert_array_equal(table["epistemic"].to_numpy(), -prediction.alpha_0)
    columns = np.stack([table[f"probability_{c}"].to_numpy() for c in range(3)], axis=1)
    np.testing.assert_array_equal(columns, prediction.probabilities)
    split = np.array(table["split"].to_pylist(), object)
    np.testing.assert_array_equal(np.flatnonzero(split == "train"), graph.split.train)
    unlabelled = np.flatnonzero([label is None for label in table["label"].to_pylist()])
    np.testing.assert_array_equal(unlabelled, np.flatnonzero(graph.labels < 0))
    assert table["mark_isolated"].to_numpy().sum() == len(graph.marks["isolated"])


def test_the_types_of_columns_are_a_contract(small_graph, tmp_path):
    graph = replace(
        small_graph,
        node_names=np.array([f"node {i}" for i in range(small_graph.num_nodes)]),
        class_names=np.array(["a", "b", "c"]),
    )
    write_predictions(tmp_path / "p.parquet", prediction_for(graph), graph)
    schema = pq.read_schema(tmp_path / "p.parquet")
    floats = ["alpha_0", "alpha_0_no_network", "aleatoric", "aleatoric_entropy"]
    floats += ["aleatoric_no_network", "epistemic", "epistemic_no_network"]
    expected = {"node": "int64", "node_name": "string", "predicted_class": "int64"}
    expected |= {"predicted_class_name": "string"} | dict.fromkeys(floats, "float")
    expected |= {"label": "int32"}
    expected |= {"split": "dictionary<values=string, indices=int32, ordered=0>"}
    expected |= {f"mark_{name}": "bool" for name in graph.marks}
    expected |= {f"probability_{c}": "float" for c in range(3)}
    assert {field.name: str(field.type) for field in schema} == expected
    assert schema.names == list(expected)


def test_groups_of_rows_make_the_same_table(small_graph, tmp_path, monkeypatch):
    graph = replace(small_graph, class_names=np.array(["a", "b", "c"]))
    prediction = prediction_for(graph)
    write_predictions(tmp_path / "whole.parquet", prediction, graph)
    monkeypatch.setattr(prediction_module, "ROW_BLOCK", 64)
    write_predictions(tmp_path / "groups.parquet", prediction, graph)
    assert pq.read_metadata(tmp_path / "whole.parquet").num_row_groups == 1
    assert pq.read_metadata(tmp_path / "groups.parquet").num_row_groups == 5
    whole, groups = (pq.read_table(tmp_path / f"{name}.parquet") for name in ("whole", "groups"))
    assert groups.schema == whole.schema
    assert groups.to_pylist() == whole.to_pylist()


def test_a_graph_without_a_split_has_predictions_too(small_graph, tmp_path):
    graph = replace(small_graph, split=None)
    write_predictions(tmp_path / "p.parquet", prediction_for(graph), graph)
    assert set(pq.read_table(tmp_path / "p.parquet")["split"].to_pylist()) == {None}


@pytest.mark.parametrize("block", [1, 7, 1 << 17])
def test_scores_of_some_nodes_are_those_of_all(small_graph, block, monkeypatch):
    prediction = prediction_for(small_graph)
    entropy = prediction.aleatoric_entropy
    monkeypatch.setattr(prediction_module, "ROW_BLOCK", block)
    np.testing.assert_array_equal(prediction.aleatoric_entropy, entropy)
    for nodes in (np.array([], np.int64), np.array([5]), np.array([40, 2, 2, 299, 17, 8, 1, 3])):
        scores = prediction.scores(nodes)
        assert list(scores) == list(SCORES)
        for name, score in scores.items():
            np.testing.assert_array_equal(score, getattr(prediction, name)[nodes])


def test_large_predictions_are_worked_through_in_blocks(small_graph, tmp_path, monkeypatch):
    num_nodes, num_classes = 20_000, 50
    graph = replace(
        small_graph,
        indptr=np.zeros(num_nodes + 1, np.int64),
        indices=np.empty(0, np.int32),
        features=None,
        labels=np.zeros(num_nodes, np.int32),
        num_classes=num_classes,
        marks={},
    )
    prediction = prediction_for(graph)
    monkeypatch.setattr(prediction_module, "ROW_BLOCK", 256)
    nodes = np.arange(num_nodes)
    tracemalloc.start()
    try:
        prediction.aleatoric_entropy, prediction.scores(nodes)
        write_predictions(tmp_path / "p.parquet", prediction, graph)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < prediction.probabilities.nbytes / 2


def test_scores_follow_their_definitions(small_graph):
    prediction = prediction_for(small_graph)
    p = prediction.probabilities.astype(np.float64)
    np.testing.assert_allclose(prediction.aleatoric, -p.max(1), rtol=1e-6)
    np.testing.assert_allclose(prediction.aleatoric_entropy, -(p * np.log(p)).sum(1), rtol=1e-4)
    np.testing.assert_array_equal(prediction.epistemic_no_network, -prediction.alpha_0_no_network)
    q = prediction.probabilities_no_network
    np.testing.assert_array_equal(prediction.aleatoric_no_network, -q.max(1))


def dissonance_of(alpha):
    """By the definition, for one node."""
    belief = (np.asarray(alpha, float) - 1) / np.sum(alpha)
    total = 0.0
    for k, own in enumerate(belief):
        others = [b for j, b in enumerate(belief) if j != k]
        if sum(others) > 0:
            balance = [1 - abs(own - b) / (own + b) if own + b > 0 else 0.0 for b in others]
            total += own * np.dot(others, balance) / sum(others)
    return total


@pytest.mark.parametrize("alpha", [[1, 1, 1], [9, 1, 1], [9, 9, 1], [4, 2.5, 1.5], [50, 50, 50]])
def test_vacuity_and_dissonance_tell_lack_of_evidence_from_conflict(alpha):
    alpha = np.array([alpha], np.float32)
    zeros = np.zeros(1, np.float32)
    prediction = Prediction(
        probabilities=alpha / alpha.sum(),
        probabilities_no_network=alpha / alpha.sum(),
        alpha_0=alpha.sum(1),
        alpha_0_no_network=zeros,
    )
    assert prediction.vacuity == pytest.approx(3 / alpha.sum())
    assert prediction.dissonance == pytest.approx(dissonance_of(alpha[0]), abs=1e-6)
