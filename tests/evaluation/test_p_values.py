"""P-values are valid whatever the scores, and their sums stay valid without independence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.evaluation.p_values import PValues, calibration_p, conformal_p, mean_surprise

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


def known_p(first, second):
    """The p-value of the first node by both scores, with the others as calibration nodes."""
    scores = (first, second)
    calibration = mean_surprise([calibration_p(score[1:]) for score in scores])
    own = mean_surprise([conformal_p(np.sort(score[1:]), score[:1]) for score in scores])
    return conformal_p(np.sort(calibration), own - 1e-9)[0]  # equal up to round-off is equal


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=10))
def test_a_joined_p_value_is_never_below_that_of_the_ranking_of_all_nodes(pairs):
    first, second = np.array(pairs).T
    assert known_p(first, second) >= joint_p(first, second, 0) - 1e-6


def test_joined_p_values_of_dependent_scores_are_uniform():
    rng = np.random.default_rng(5)
    p_known = []
    for _ in range(400):
        first = rng.normal(size=60)
        p_known.append(known_p(first, first + 0.3 * rng.normal(size=60)))
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


def test_continued_p_values_only_change_nodes_beyond_the_calibration():
    known = np.array([0.05, 0.05, 0.5], np.float32)
    p = PValues(known=known, beyond=np.array([0.0, 1.0, 0.0], np.float32))
    np.testing.assert_allclose(p.continued, known * np.exp([0.0, -1.0, 0.0]), rtol=1e-6)
    np.testing.assert_allclose(PValues(known=known).continued, known)
    assert p.rows(np.array([1])).continued == pytest.approx(p.continued[1:2])
