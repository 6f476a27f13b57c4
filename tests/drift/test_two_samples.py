import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, ks_2samp

from gpn_scale.drift.two_samples import (
    LEAST_MOVE,
    Movement,
    Share,
    category_movement,
    distribution_movement,
    share_movement,
    share_p_values,
)

SAMPLES = st.lists(st.integers(-3, 3), min_size=1, max_size=30).map(lambda v: np.array(v, float))
COUNTS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=6).filter(
    lambda pairs: sum(a for a, _ in pairs) and sum(b for _, b in pairs)
)


def largest_gap(a, b):
    """The Kolmogorov-Smirnov distance by its definition, with the sign of F_A - F_B."""
    points = sorted({*a.tolist(), *b.tolist()})
    gaps = [(a <= x).mean() - (b <= x).mean() for x in points]
    return max(gaps, key=abs)


@given(SAMPLES, SAMPLES)
def test_the_distance_of_distributions_is_the_largest_gap(a, b):
    movement = distribution_movement(a, b)
    gap = largest_gap(a, b)
    assert movement.distance == pytest.approx(abs(gap))
    assert 0 <= movement.p_value <= 1


@pytest.mark.parametrize("count", [40, 300, 5000])
def test_the_p_value_is_about_that_of_scipy(count):
    rng = np.random.default_rng(count)
    a, b = rng.normal(size=count), rng.normal(0.1, 1.0, size=2 * count)
    expected = ks_2samp(a, b, method="asymp")
    movement = distribution_movement(a, b)
    assert movement.distance == pytest.approx(expected.statistic)
    assert movement.direction == expected.statistic_sign
    assert movement.p_value == pytest.approx(expected.pvalue, rel=0.15)


@given(SAMPLES)
def test_a_sample_has_not_moved_against_itself(a):
    movement = distribution_movement(a, a)
    assert movement == Movement(0.0, 1.0, 0)
    assert not movement.is_notable()


def test_directions():
    low, high = np.arange(50.0), np.arange(50.0) + 30
    assert distribution_movement(low, high).direction == 1
    assert distribution_movement(high, low).direction == -1


@given(COUNTS)
def test_the_distance_of_categories_is_what_has_to_change(pairs):
    a, b = (np.array(each, np.int64) for each in zip(*pairs, strict=True))
    share_a, share_b = a / a.sum(), b / b.sum()
    largest = max(
        abs(share_a[list(chosen)].sum() - share_b[list(chosen)].sum())
        for chosen in _subsets(len(pairs))
    )
    movement = category_movement(a, b)
    assert movement.distance == pytest.approx(largest)
    assert 0 <= movement.p_value <= 1
    same = category_movement(a, a)
    assert same.distance == 0
    assert same.p_value == pytest.approx(1.0)


def _subsets(size):
    return [[i for i in range(size) if chosen >> i & 1] for chosen in range(2**size)]


def test_frequent_categories_have_the_test_of_scipy():
    a, b = np.array([50, 60, 40]), np.array([70, 40, 40])
    assert category_movement(a, b).p_value == chi2_contingency(np.stack([a, b])).pvalue


def test_rare_categories_are_tested_as_one():
    a = np.concatenate([[1000], np.zeros(40, np.int64)])
    b = np.concatenate([[960], np.ones(40, np.int64)])
    assert category_movement(a, b).exceeds_chance
    only_rare = np.eye(2, dtype=np.int64)
    assert category_movement(only_rare[0], only_rare[1]) == Movement(1.0, 1.0)


@given(st.integers(0, 80), st.integers(0, 120))
def test_shares_are_tested_as_by_scipy(a, b):
    p = share_p_values(np.array([a]), 80, np.array([b]), 120)[0]
    table = np.array([[a, 80 - a], [b, 120 - b]])
    if (table.sum(0) == 0).any():
        assert p == 1
    else:
        assert p == pytest.approx(chi2_contingency(table).pvalue, abs=1e-9)


def test_shares_without_nodes_have_not_moved():
    assert share_movement(Share(0, 0), Share(3, 9)).distance == 0
    assert Share(0, 0).interval == (0.0, 1.0)
    assert Share(0, 0).to_dict()["share"] is None


@pytest.mark.parametrize(
    ("movement", "comparisons", "notable"),
    [
        (Movement(LEAST_MOVE, 0.01), 1, True),
        (Movement(LEAST_MOVE / 2, 1e-9), 1, False),
        (Movement(0.5, 0.011), 1, False),
        (Movement(0.5, 0.004), 3, False),
        (Movement(0.5, 0.003), 3, True),
    ],
)
def test_what_is_notable(movement, comparisons, notable):
    assert movement.is_notable(comparisons) is notable


def test_chance_rarely_moves_anything():
    """Of independent draws, at most about 1 % of comparisons exceed chance."""
    rng = np.random.default_rng(5)
    draws = [distribution_movement(rng.random(300), rng.random(300)) for _ in range(400)]
    assert sum(each.exceeds_chance for each in draws) <= 12
