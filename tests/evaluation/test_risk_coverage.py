import math
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.evaluation.risk_coverage import risk_coverage


def brute_force(score, wrong):
    """Mean over all orders of equal scores of the risk at every coverage."""
    nodes, risks = range(len(score)), []
    for order in permutations(nodes):
        if all(score[a] <= score[b] for a, b in pairwise(order)):
            errors = np.cumsum([wrong[node] for node in order])
            risks.append(errors / np.arange(1, len(score) + 1))
    return np.mean(risks, axis=0)


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=6))
def test_risk_is_the_mean_over_all_orders(nodes):
    score, wrong = (np.array(column) for column in zip(*nodes, strict=True))
    curve = risk_coverage(score, wrong)
    np.testing.assert_allclose(curve.risk_N, brute_force(score, wrong))
    np.testing.assert_allclose(curve.accuracy_N, 1.0 - curve.risk_N)
    np.testing.assert_allclose(curve.coverage_N, np.arange(1, len(nodes) + 1) / len(nodes))


def test_a_score_that_puts_errors_last_has_the_smallest_area():
    wrong = np.array([False, False, False, True, True])
    best = risk_coverage(np.arange(5), wrong).area
    assert best == pytest.approx((1 / 4 + 2 / 5) / 5)
    for order in permutations(range(5)):
        assert risk_coverage(np.array(order), wrong).area >= best - 1e-12
    assert risk_coverage(-np.arange(5), wrong).area > best + 0.3


def test_no_nodes_have_no_area():
    assert math.isnan(risk_coverage(np.zeros(0), np.zeros(0, bool)).area)


def test_a_thinned_curve_keeps_its_ends():
    curve = risk_coverage(np.arange(100), np.arange(100) > 60)
    thin = curve.thinned(7)
    assert len(thin.risk_N) == 7
    assert (thin.risk_N[0], thin.risk_N[-1]) == (curve.risk_N[0], curve.risk_N[-1])
