import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, log_loss
from torchmetrics.functional.classification import multiclass_accuracy, multiclass_calibration_error

from gpn_scale.evaluation import metrics


@st.composite
def classifications(draw):
    rows, classes = draw(st.integers(1, 60)), draw(st.integers(2, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    probability = rng.dirichlet(np.full(classes, 0.5), rows)
    return probability, rng.integers(classes, size=rows)


@given(classifications())
def test_accuracy_and_calibration_are_those_of_torchmetrics(case):
    probability, label = case
    classes = probability.shape[1]
    probability = 0.999 * probability + 0.001 / classes  # torchmetrics puts 1.0 in a bin of its own
    tensors = torch.from_numpy(probability), torch.from_numpy(label)
    accuracy = multiclass_accuracy(*tensors, num_classes=classes, average="micro")
    assert metrics.accuracy(probability, label) == pytest.approx(accuracy.item(), abs=1e-6)
    ece = multiclass_calibration_error(*tensors, num_classes=classes, n_bins=10, norm="l1")
    got = metrics.expected_calibration_error(probability, label)
    assert got == pytest.approx(ece.item(), abs=1e-5)
    mce = multiclass_calibration_error(*tensors, num_classes=classes, n_bins=10, norm="max")
    got = metrics.maximum_calibration_error(probability, label)
    assert got == pytest.approx(mce.item(), abs=1e-5)


@given(classifications())
def test_brier_is_that_of_scikit_learn(case):
    probability, label = case
    expected = brier_score_loss(
        label, probability, labels=range(probability.shape[1]), scale_by_half=True
    )
    assert metrics.brier_score(probability, label) == pytest.approx(expected)
    assert 0 <= expected <= 1


@given(classifications())
def test_log_likelihood_is_that_of_scikit_learn(case):
    probability, label = case
    expected = log_loss(label, probability, labels=range(probability.shape[1]))
    assert metrics.negative_log_likelihood(probability, label) == pytest.approx(expected)


@given(classifications())
def test_a_reliability_diagram_has_every_node_once(case):
    probability, label = case
    bins = metrics.reliability(probability, label)
    assert bins.count_B.sum() == len(label)
    full = bins.count_B > 0
    right = (bins.count_B * np.nan_to_num(bins.accuracy_B)).sum() / len(label)
    assert right == pytest.approx(metrics.accuracy(probability, label))
    edge = np.arange(metrics.CALIBRATION_BINS) / metrics.CALIBRATION_BINS
    assert (bins.confidence_B[full] >= edge[full]).all()
    assert (bins.confidence_B[full] <= edge[full] + 0.1 + 1e-9).all()


def test_confidence_on_a_bin_edge_belongs_to_the_lower_bin():
    probability = np.array([[0.5, 0.5], [0.55, 0.45]])
    assert metrics.expected_calibration_error(probability, np.array([0, 1])) == pytest.approx(
        (0.5 + 0.55) / 2
    )


def test_auroc_is_the_share_of_ordered_pairs():
    positive = np.array([True, False, True, False, False])
    score = np.array([3.0, 1.0, 2.0, 2.0, 0.0])
    pairs = [(p, n) for p in score[positive] for n in score[~positive]]
    share = np.mean([1.0 if p > n else 0.5 if p == n else 0.0 for p, n in pairs])
    assert metrics.auroc(positive, score) == pytest.approx(share)


def test_aupr_of_a_perfect_and_of_a_constant_score():
    positive = np.array([True, True, False, False, False])
    assert metrics.aupr(positive, positive.astype(float)) == 1.0
    assert metrics.aupr(positive, np.zeros(5)) == pytest.approx(0.4)


@pytest.mark.parametrize("positive", [[], [True], [False, False]])
def test_detection_without_both_kinds_is_not_a_number(positive):
    positive = np.array(positive, bool)
    assert math.isnan(metrics.auroc(positive, np.zeros(len(positive))))
    assert math.isnan(metrics.aupr(positive, np.zeros(len(positive))))
    assert math.isnan(metrics.false_positive_rate(positive, np.zeros(len(positive))))


def test_no_nodes_have_no_accuracy():
    none, label = np.zeros((0, 3)), np.zeros(0, int)
    for metric in (
        metrics.accuracy,
        metrics.expected_calibration_error,
        metrics.maximum_calibration_error,
        metrics.brier_score,
        metrics.negative_log_likelihood,
    ):
        assert math.isnan(metric(none, label))


def slow_false_positive_rate(positive, score):
    """The smallest rate of any threshold that at least 19 of 20 positive nodes reach."""
    rates = [
        np.mean(score[~positive] >= threshold)
        for threshold in score
        if 20 * np.sum(score[positive] >= threshold) >= 19 * positive.sum()
    ]
    return min(rates)


@given(st.integers(0, 2**32), st.integers(2, 130), st.integers(1, 12))
def test_false_positive_rate_is_the_smallest_of_all_thresholds(seed, count, values):
    rng = np.random.default_rng(seed)
    positive = rng.permutation(np.arange(count) < rng.integers(1, count))
    score = rng.integers(values, size=count) + positive  # with ties
    expected = slow_false_positive_rate(positive, score)
    assert metrics.false_positive_rate(positive, score.astype(float)) == expected


def test_false_positive_rate_by_hand():
    positive = np.arange(40) < 20
    score = np.where(positive, 1.0, 0.0)
    assert metrics.false_positive_rate(positive, score) == 0.0
    score[0] = -5.0  # one of 20 may be missed
    assert metrics.false_positive_rate(positive, score) == 0.0
    score[1] = 0.0
    assert metrics.false_positive_rate(positive, score) == 1.0
