"""Intervals against slow versions of them, and how often they contain the truth."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, norm, t

from gpn_scale.evaluation.intervals import (
    aupr_interval,
    auroc_interval,
    ece_interval,
    exact_interval,
    mean_interval,
)
from gpn_scale.evaluation.metrics import Reliability, aupr, auroc, reliability

DRAWS = 200
"""Samples of a simulation; of 200 with a chance of 95 %, at least 181 succeed in 99 % of cases."""


@given(st.integers(1, 200), st.data())
def test_the_exact_interval_is_that_of_scipy(count, data):
    successes = data.draw(st.integers(0, count))
    expected = binomtest(successes, count).proportion_ci(0.95, method="exact")
    assert exact_interval(successes, count) == pytest.approx((expected.low, expected.high))


def slow_delong_variance(positive, score):
    """Variance of the AUC-ROC by a loop over all pairs (DeLong et al., 1988)."""
    above = [[_wins(p, n) for n in score[~positive]] for p in score[positive]]
    by_positive, by_negative = np.mean(above, axis=1), np.mean(above, axis=0)
    return np.var(by_positive, ddof=1) / len(by_positive) + np.var(by_negative, ddof=1) / len(
        by_negative
    )


def _wins(first, second):
    return 1.0 if first > second else 0.5 if first == second else 0.0


@given(
    st.lists(st.integers(0, 5), min_size=2, max_size=12),
    st.lists(st.integers(0, 5), min_size=2, max_size=12),
)
def test_the_interval_of_an_auroc_has_the_variance_of_delong(positives, negatives):
    positive = np.arange(len(positives) + len(negatives)) < len(positives)
    score = np.array(positives + negatives, np.float64)
    value, variance = auroc(positive, score), slow_delong_variance(positive, score)
    most = 3 / (1 / len(positives) + 1 / len(negatives))
    size = max(most if variance == 0 else min(value * (1 - value) / variance, most), 1.0)
    lower, upper = auroc_interval(positive, score)
    assert (lower, upper) == pytest.approx(exact_interval(value * size, size))
    assert lower <= value + 1e-12
    assert value <= upper + 1e-12


def test_one_kind_of_nodes_has_no_interval():
    for positive in (np.zeros(3, bool), np.ones(3, bool), np.empty(0, bool)):
        assert auroc_interval(positive, np.zeros(len(positive))) is None


def test_one_node_of_a_kind_says_next_to_nothing():
    lower, upper = auroc_interval(np.arange(50) == 0, np.arange(50.0) * -1)
    assert lower < 0.3
    assert upper == 1.0


@pytest.mark.parametrize(("positives", "negatives"), [(10, 10), (10, 60), (40, 40)])
@pytest.mark.parametrize("distance", [0.0, 1.5, 2.5])
def test_intervals_of_areas_contain_the_truth(positives, negatives, distance):
    rng = np.random.default_rng(4)
    positive = np.arange(positives + negatives) < positives
    many = np.arange(200_000) < 200_000 * positives / len(positive)
    roc = norm.cdf(distance / math.sqrt(2))
    pr = aupr(many, rng.normal(size=len(many)) + distance * many)
    inside = np.zeros(2)
    for _ in range(DRAWS):
        score = rng.normal(size=len(positive)) + distance * positive
        intervals = (
            auroc_interval(positive, score),
            aupr_interval(aupr(positive, score), positives),
        )
        inside += [
            low <= truth <= high for (low, high), truth in zip(intervals, (roc, pr), strict=True)
        ]
    assert (inside >= 0.9 * DRAWS).all()


@pytest.mark.parametrize("count", [0, 1, 2, 30])
def test_a_mean_has_students_interval(count):
    values = np.random.default_rng(1).uniform(0.3, 0.4, size=count)
    if count < 2:
        assert mean_interval(values) is None
    else:
        error = values.std(ddof=1) / math.sqrt(count)
        low, high = t.interval(0.95, count - 1, values.mean(), error)
        assert mean_interval(values) == pytest.approx((max(low, 0.0), min(high, 1.0)))


LEVELS = np.array([0.45, 0.55, 0.65, 0.75, 0.85, 0.95])


def predictions(rng, count, overconfidence):
    """Probabilities of three classes with the largest first, and labels, with a known error."""
    confidence = rng.choice(LEVELS, count)
    correct = rng.random(count) < confidence - overconfidence
    rest = (1 - confidence) / 2
    return np.stack([confidence, rest, rest], 1), np.where(correct, 0, rng.integers(1, 3, count))


@pytest.mark.parametrize("count", [100, 1000])
@pytest.mark.parametrize("overconfidence", [0.0, 0.05, 0.2])
def test_intervals_of_calibration_errors_contain_the_truth(count, overconfidence):
    rng = np.random.default_rng(2)
    inside = 0
    for _ in range(DRAWS // 2):
        binned = reliability(*predictions(rng, count, overconfidence))
        low, high = ece_interval(binned)
        inside += low <= overconfidence <= high
    assert inside >= 0.85 * DRAWS / 2


@given(st.lists(st.tuples(st.integers(0, 40), st.floats(0, 1), st.floats(0, 1)), max_size=10))
def test_any_calibration_error_lies_in_its_interval(bins):
    count, fraction, confidence = np.array(bins).reshape(-1, 3).T
    count = count.astype(np.int64)
    with np.errstate(invalid="ignore"):
        accuracy = np.round(fraction * count) / np.where(count, count, np.nan)
    binned = Reliability(count, accuracy, np.where(count, confidence, np.nan))
    if count.sum() == 0:
        assert ece_interval(binned) is None
        return
    error = (count * binned.gap_B).sum() / count.sum()
    low, high = ece_interval(binned)
    assert 0 <= low <= error + 1e-12
    assert error - 1e-12 <= high <= 1 + 1e-12
    assert ece_interval(binned) == (low, high), "the same seed gives the same interval"


def test_nothing_but_correct_nodes_is_no_proof():
    all_correct = Reliability(np.array([100]), np.array([1.0]), np.array([1.0]))
    low, high = ece_interval(all_correct)
    assert low == 0.0
    assert 0.005 < high < 0.06
