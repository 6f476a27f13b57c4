"""P-values are valid whatever the scores, and their sums stay valid without independence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.evaluation.p_values import PValues, calibration_p, conformal_p, fisher_sum

SCORES = st.lists(st.integers(0, 6), min_size=1, max_size=12).map(np.array)


def counted(calibration, score):
    """The definition, by a loop."""
    return (1 + sum(other >= score for other in calibration)) / (1 + len(calibration))


@given(SCORES, SCORES)
def test_p_values_count_the_nodes_that_are_at_least_as_strange(calibration, scores):
    expected = [counted(calibration, score) for score in scores]
    np.testing.assert_allclose(conformal_p(np.sort(calibration), scores), expected, rtol=1e-6)


@given(SCORES)
def test_a_calibration_node_counts_itself_once(calibration):
    at_least = (calibration[:, None] <= calibration).sum(1)
    np.testing.assert_allclose(
        calibration_p(calibration), at_least / (1 + len(calibration)), rtol=1e-6
    )


def joint_p(first, second, node):
    """The p-value of one of several nodes by Fisher's sums of ranks among all of them."""
    ranks = [(score[:, None] <= score).sum(1) / len(score) for score in (first, second)]
    sums = -np.log(ranks).sum(0)
    return (sums >= sums[node] - 1e-12).mean()


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=10))
def test_a_joined_p_value_is_never_below_that_of_the_ranking_of_all_nodes(pairs):
    first, second = np.array(pairs).T
    rest = {"a": first[1:], "b": second[1:]}
    calibration = {name: calibration_p(score) for name, score in rest.items()}
    own = {
        "a": conformal_p(np.sort(first[1:]), first[:1]),
        "b": conformal_p(np.sort(second[1:]), second[:1]),
    }
    known = conformal_p(np.sort(fisher_sum(calibration)), fisher_sum(own) - 1e-6)
    assert known[0] >= joint_p(first, second, 0) - 1e-6


def test_joined_p_values_of_dependent_scores_are_uniform():
    rng = np.random.default_rng(5)
    p_known = []
    for _ in range(400):
        first = rng.normal(size=60)
        second = first + 0.3 * rng.normal(size=60)
        calibration = {"a": calibration_p(first[1:]), "b": calibration_p(second[1:])}
        own = {
            "a": conformal_p(np.sort(first[1:]), first[:1]),
            "b": conformal_p(np.sort(second[1:]), second[:1]),
        }
        p_known.append(conformal_p(np.sort(fisher_sum(calibration)), fisher_sum(own))[0])
    distance = np.abs(np.sort(p_known) - (np.arange(400) + 0.5) / 400).max()
    assert distance < 0.08  # the 1 % point of Kolmogorov-Smirnov


def test_loudest_names_the_smallest_part():
    p = PValues(
        features=np.array([0.5, 0.1]), opinion=np.array([0.2, 0.9]), known=np.array([0.3, 0.2])
    )
    assert p.parts == ("features", "opinion")
    assert [p.parts[place] for place in p.loudest] == ["opinion", "features"]
    one = p.rows(np.array([1]))
    assert one.features == pytest.approx([0.1])
    assert one.labels is None
