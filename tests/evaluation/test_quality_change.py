"""Quality before and after, on the nodes that both have in the same role."""

import numpy as np
import pytest

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Split
from gpn_scale.evaluation.metrics import expected_calibration_error
from gpn_scale.evaluation.prediction_metrics import classification_metrics
from gpn_scale.evaluation.quality_change import (
    QualityChange,
    compared_graph,
    compared_nodes,
    quality,
)
from gpn_scale.evaluation.scored_prediction import ScoredPrediction

COUNT = 160


def graph_of(split, marks=None):
    return build_graph([], [], labels=np.arange(COUNT) % 2, split=split, marks=marks or {})


@pytest.fixture
def prediction():
    rng = np.random.default_rng(2)
    probabilities = rng.dirichlet([1, 1], COUNT)
    return ScoredPrediction(
        model="GCN", probabilities=probabilities, epistemic_score=rng.random(COUNT)
    )


def test_only_nodes_with_the_same_role_are_compared():
    split = Split(train=[0, 1], val=[2, 3], test=[4, 5, 6, 7])
    graph = graph_of(split, {"odd": [6, 8, 9]})
    earlier = Split(train=[0], val=[2, 4], test=[5, 6, 7])
    compared = compared_graph(graph, earlier, marked=np.array([7, 8]))
    assert compared.split.val.tolist() == [2]
    assert compared.split.test.tolist() == [5]  # 6 is marked now, 7 was marked before
    assert {name: ids.tolist() for name, ids in compared.marks.items()} == {"odd": [8]}
    assert compared_nodes(compared) == {"test": 1, "val": 1, "unknown": 1}


def test_metrics_are_those_of_a_report(prediction):
    split = Split(train=[0, 1], val=[2, 3], test=np.arange(4, 130))
    graph = graph_of(split, {"odd": np.arange(130, 160)})
    measured = quality(prediction, graph)
    expected = classification_metrics(prediction, graph, split.test)
    names = ("accuracy", "ece", "misclassification_auroc_aleatoric")
    assert measured["test"] == {name: expected[name] for name in names}
    assert list(measured["val"]) == ["accuracy"]  # two nodes are too few for the others
    assert list(measured["unknown"]) == ["auroc_epistemic"]  # a GCN has no p-values
    label = graph.labels[split.test]
    ece = expected_calibration_error(prediction.probabilities[split.test], label)
    assert measured["test"]["ece"] == ece


def test_a_change_lists_what_both_have():
    before = {"test": {"accuracy": 0.5, "ece": 0.1}, "unknown": {"auroc_epistemic": 0.9}}
    after = {"test": {"accuracy": 0.75}}
    change = QualityChange(run="runs/a", model="f", nodes={"test": 8}, before=before, after=after)
    assert change.rows() == [("test", "accuracy", 0.5, 0.75)]
    assert "8 test" in change.sentence
    assert QualityChange(**change.to_dict()) == change
    other = QualityChange(run="runs/a", model="f", nodes={}, before={}, after={})
    assert other.sentence.endswith("on another graph.")
