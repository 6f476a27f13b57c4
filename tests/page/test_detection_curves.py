from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_curve, roc_curve

from gpn_scale.evaluation.scores import PAGE_SCORES
from gpn_scale.page.detection_curves import detection_curve, error_curves, unknown_curves
from tests.page.test_run_facts import with_test_nodes


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=40))
def test_curves_are_those_of_scikit_learn(pairs):
    score = np.array([value for value, _ in pairs], np.float64)
    positive = np.array([flag for _, flag in pairs])
    if positive.all() or not positive.any():
        return
    curve = detection_curve("s", score, positive)
    false_alarms, recall, _ = roc_curve(positive, score, drop_intermediate=False)
    np.testing.assert_allclose(curve.false_alarms, false_alarms)
    np.testing.assert_allclose(curve.recall, recall)
    precision, _, _ = precision_recall_curve(positive, score)
    np.testing.assert_allclose(curve.precision[1:], precision[:-1][::-1])


def test_long_curves_are_thinned_and_keep_their_ends():
    rng = np.random.default_rng(0)
    curve = detection_curve("s", rng.normal(size=5000), rng.uniform(size=5000) < 0.3)
    assert len(curve.recall) <= 201
    assert (curve.recall[0], curve.recall[-1], curve.false_alarms[-1]) == (0.0, 1.0, 1.0)


def test_every_score_has_a_curve(prediction, small_graph):
    curves = unknown_curves(prediction, small_graph)
    assert [curve.score for curve in curves] == list(PAGE_SCORES)  # a GPN has no p-values
    for curve in error_curves(prediction, small_graph):
        area = np.trapezoid(curve.recall, curve.false_alarms)
        assert area == pytest.approx(curve.auroc, abs=0.01)


def test_few_nodes_of_a_kind_have_no_curve(prediction, small_graph):
    assert unknown_curves(prediction, replace(small_graph, marks={})) == ()
    few = {"few": small_graph.marked[:9]}
    assert unknown_curves(prediction, replace(small_graph, marks=few)) == ()
    assert error_curves(prediction, with_test_nodes(small_graph, 0, marks=True)) == ()
