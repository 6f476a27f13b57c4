import math
from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.evaluation.detection import (
    detect_unknown,
    detection_metrics,
    known_and_unknown,
    known_test_nodes,
)
from gpn_scale.evaluation.metrics import aupr, auroc
from gpn_scale.evaluation.scores import PAGE_SCORES, SCORES
from tests.evaluation.samples import prediction_for, scored_prediction


@pytest.mark.parametrize("scores", [SCORES, PAGE_SCORES], ids=["report", "page"])
def test_every_mark_and_all_together_are_told_from_known_test_nodes(small_graph, scores):
    prediction = prediction_for(small_graph)
    detection = detect_unknown(prediction, small_graph, scores)
    known = np.setdiff1d(small_graph.split.test, small_graph.marked)
    assert detection.known_nodes == len(known)
    assert list(detection.marks) == list(small_graph.marks)
    groups = [(detection.together, small_graph.marked)]
    groups += [(detection.marks[mark], nodes) for mark, nodes in small_graph.marks.items()]
    for metrics, unknown in groups:
        assert metrics["ood_nodes"] == len(unknown)
        nodes = np.append(known, unknown)
        positive = np.arange(len(nodes)) >= len(known)
        for name in scores:
            values = getattr(prediction, name)[nodes]
            assert metrics[f"auroc_{name}"] == auroc(positive, values)
            assert metrics[f"aupr_{name}"] == aupr(positive, values)


def test_without_marks_or_split_there_is_nothing_to_detect(small_graph):
    prediction = prediction_for(small_graph)
    assert detect_unknown(prediction, replace(small_graph, marks={})) is None
    assert detect_unknown(prediction, replace(small_graph, split=None)) is None


def test_known_nodes_come_first_and_have_no_mark(small_graph):
    nodes, is_unknown = known_and_unknown(small_graph)
    np.testing.assert_array_equal(nodes[is_unknown], small_graph.marked)
    np.testing.assert_array_equal(nodes[~is_unknown], known_test_nodes(small_graph))
    assert not np.isin(nodes[~is_unknown], small_graph.marked).any()
    some = small_graph.marks["isolated"]
    nodes, is_unknown = known_and_unknown(small_graph, some)
    np.testing.assert_array_equal(nodes[is_unknown], some)


def test_scores_that_are_missing_get_nan():
    positive = np.array([True, False])
    metrics = detection_metrics({"a": np.array([1.0, 0.0]), "b": None}, positive, prefix="x_")
    assert list(metrics) == ["x_auroc_a", "x_aupr_a", "x_auroc_b", "x_aupr_b"]
    assert metrics["x_auroc_a"] == metrics["x_aupr_a"] == 1.0
    assert math.isnan(metrics["x_auroc_b"])
    assert math.isnan(metrics["x_aupr_b"])


def test_comparison_models_are_measured_by_the_scores_they_have(small_graph):
    prediction = scored_prediction(small_graph.num_nodes)
    together = detect_unknown(prediction, small_graph).together
    assert 0 <= together["auroc_epistemic"] <= 1
    assert math.isnan(together["auroc_epistemic_no_network"])
