"""Every metric that rests on enough nodes has an interval around it, and no other has one."""

from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.data.graph import Split
from gpn_scale.evaluation.intervals import auroc_interval, exact_interval
from gpn_scale.evaluation.metric_intervals import (
    classification_intervals,
    detection_intervals,
    out_of_distribution_intervals,
)
from gpn_scale.evaluation.prediction_metrics import (
    classification_metrics,
    out_of_distribution_metrics,
)
from tests.evaluation.samples import prediction_for


@pytest.fixture
def prediction(small_graph):
    return prediction_for(small_graph)


def test_accuracy_is_exact_and_metrics_lie_within(small_graph, prediction):
    test = small_graph.split.test
    metrics = classification_metrics(prediction, small_graph, test)
    intervals = classification_intervals(prediction, small_graph, test)
    correct = sum(prediction.probabilities[v].argmax() == small_graph.labels[v] for v in test)
    assert intervals["accuracy"] == list(exact_interval(correct, len(test)))
    largest = np.bincount(small_graph.labels[small_graph.split.train]).argmax()
    of_largest = sum(small_graph.labels[v] == largest for v in test)
    assert intervals["accuracy_largest_class"] == list(exact_interval(of_largest, len(test)))
    for name, (low, high) in intervals.items():
        if name != "accuracy_largest_class":
            assert low <= metrics[name] <= high
    assert {"ece", "brier"} <= intervals.keys()


@pytest.mark.parametrize(("count", "names"), [(0, set()), (1, set()), (19, set()), (20, {"brier"})])
def test_few_nodes_have_fewer_intervals(small_graph, prediction, count, names):
    perfect = replace(prediction, probabilities=np.eye(3)[np.maximum(small_graph.labels, 0)])
    intervals = classification_intervals(perfect, small_graph, small_graph.split.test[:count])
    accuracies = {"accuracy", "accuracy_largest_class"} if count else set()
    assert intervals.keys() == names | accuracies


def test_calibration_needs_a_hundred_nodes(small_graph, prediction):
    test = small_graph.split.test
    assert "ece" in classification_intervals(prediction, small_graph, test[:100])
    assert "ece" not in classification_intervals(prediction, small_graph, test[:99])


def test_unknown_nodes_have_intervals_by_mark(small_graph, prediction):
    some = {"many": np.arange(0, 40), "few": np.arange(40, 49)}
    test = np.setdiff1d(small_graph.split.test, np.arange(49))
    split = Split(train=small_graph.split.train, val=small_graph.split.val, test=test)
    graph = replace(small_graph, marks=some, split=split)
    intervals = out_of_distribution_intervals(prediction, graph)
    metrics = out_of_distribution_metrics(prediction, graph)
    assert intervals["marks"]["few"] == {}
    for name, (low, high) in intervals["marks"]["many"].items():
        assert low <= metrics["marks"]["many"][name] <= high
    nodes = np.concatenate([test, np.arange(40)])
    expected = auroc_interval(np.arange(len(nodes)) >= len(test), prediction.epistemic[nodes])
    assert intervals["marks"]["many"]["auroc_epistemic"] == list(expected)
    low, high = intervals["id_accuracy"]
    assert low <= metrics["id_accuracy"] <= high
    assert out_of_distribution_intervals(prediction, replace(graph, marks={})) == {}
    assert out_of_distribution_intervals(prediction, replace(graph, split=None)) == {}


def test_scores_that_a_model_lacks_have_no_interval():
    positive = np.arange(40) < 20
    scores = {"epistemic": np.arange(40.0), "p_known": None}
    assert detection_intervals(scores, positive, prefix="x_").keys() == {
        "x_auroc_epistemic",
        "x_aupr_epistemic",
    }
    assert detection_intervals(scores, np.arange(40) < 9) == {}
