"""Lazy greedy coverage against plain greedy coverage, which computes every gain every time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.triage.coverage import (
    AbstractColumns,
    ScaledColumns,
    StoredColumns,
    greedy_cover,
)


def plain_greedy(candidates, dense_KN, open_N, count):
    """The oracle: all gains, the largest, the smallest id among equals; again and again."""
    open_N, left, chosen = open_N.copy(), list(range(len(candidates))), []
    for _ in range(count):
        gains = [float((dense_KN[k] * open_N).sum()) for k in left]
        best = left[int(np.argmax(gains))]
        left.remove(best)
        chosen.append(candidates[best])
        open_N *= 1.0 - dense_KN[best]
    return chosen


def columns_of(dense_KN):
    ids = [np.flatnonzero(row) for row in dense_KN]
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in ids])]).astype(np.int64)
    weights = [row[own] for row, own in zip(dense_KN, ids, strict=True)]
    empty = np.empty(0)
    return StoredColumns(
        offsets,
        np.concatenate([np.empty(0, np.int64), *ids]).astype(np.int64),
        np.concatenate([empty, *weights]),
    )


class LooseBounds(AbstractColumns):
    """Columns whose bounds are far above the gains."""

    def __init__(self, columns):
        self.columns = columns

    def bounds(self, open_N):
        return 3.0 * self.columns.bounds(open_N) + 1.0

    def column(self, position):
        return self.columns.column(position)


@st.composite
def instances(draw):
    """Multiples of 1/4 as weights and amounts, so that sums are exact and ties are common."""
    num_nodes, num_candidates = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    quarter = st.integers(0, 4).map(lambda number: number / 4)
    row = st.lists(quarter, min_size=num_nodes, max_size=num_nodes)
    dense = draw(st.lists(row, min_size=num_candidates, max_size=num_candidates))
    amounts = draw(st.lists(st.integers(0, 2), min_size=num_nodes, max_size=num_nodes))
    ids = draw(st.permutations(range(20)).map(lambda order: sorted(order[:num_candidates])))
    return np.array(ids), np.array(dense, float), np.array(amounts, float)


@given(instance=instances(), loose=st.booleans())
def test_lazy_greedy_is_plain_greedy(instance, loose):
    candidates, dense_KN, open_N = instance
    columns = columns_of(dense_KN)
    columns = LooseBounds(columns) if loose else columns
    cover = greedy_cover(candidates, columns, open_N, len(candidates))
    assert cover.node.tolist() == plain_greedy(candidates, dense_KN, open_N, len(candidates))


@given(instance=instances(), data=st.data())
def test_factors_of_candidates_multiply_their_columns(instance, data):
    candidates, dense_KN, open_N = instance
    halves = st.lists(st.integers(0, 2), min_size=len(candidates), max_size=len(candidates))
    factor = np.array(data.draw(halves)) / 2
    columns = ScaledColumns(columns_of(dense_KN), factor)
    cover = greedy_cover(candidates, columns, open_N, len(candidates))
    scaled_KN = dense_KN * factor[:, None]
    assert cover.node.tolist() == plain_greedy(candidates, scaled_KN, open_N, len(candidates))


@given(instance=instances())
def test_a_batch_is_the_beginning_of_a_larger_one(instance):
    candidates, dense_KN, open_N = instance
    batches = [
        greedy_cover(candidates, columns_of(dense_KN), open_N, count)
        for count in range(len(candidates) + 1)
    ]
    for smaller in batches:
        assert smaller.node.tolist() == batches[-1].node[: len(smaller.node)].tolist()
        assert smaller.gain.tolist() == batches[-1].gain[: len(smaller.gain)].tolist()


@given(instance=instances())
def test_gains_fall_and_never_exceed_what_is_open(instance):
    candidates, dense_KN, open_N = instance
    gain = greedy_cover(candidates, columns_of(dense_KN), open_N, len(candidates)).gain
    assert (np.diff(gain) <= 0).all()
    assert 0 <= gain.sum() <= open_N.sum() + 1e-12


def test_equal_weights_of_any_size_are_ties():
    rng = np.random.default_rng(1)
    row = rng.random(50)
    dense = np.stack([row, row[::-1], row, rng.random(50) * 0.1])
    open_N = np.ones(50)
    cover = greedy_cover(np.array([4, 6, 9, 11]), columns_of(dense), open_N, 4)
    assert cover.node.tolist() == plain_greedy([4, 6, 9, 11], dense, open_N, 4)


def test_candidates_without_gain_come_last_by_id():
    dense = np.array([[0.0, 0.0], [0.0, 0.5], [0.0, 0.0]])
    cover = greedy_cover(np.array([1, 2, 3]), columns_of(dense), np.ones(2), 3)
    assert cover.node.tolist() == [2, 1, 3]
    assert cover.gain.tolist() == [0.5, 0.0, 0.0]


def test_few_columns_are_looked_at_again():
    rng = np.random.default_rng(2)
    count = 2_000
    ids = rng.integers(count, size=(count, 8))
    columns = StoredColumns(np.arange(count + 1) * 8, ids.ravel(), rng.random(count * 8))
    looked_at = []

    class Counted(LooseBounds):
        def bounds(self, open_N):
            return self.columns.bounds(open_N)

        def column(self, position):
            looked_at.append(position)
            return self.columns.column(position)

    greedy_cover(np.arange(count), Counted(columns), np.ones(count), 20)
    assert len(set(looked_at)) < count / 4


@pytest.mark.parametrize("count", [0, 1])
def test_one_candidate(count):
    cover = greedy_cover(np.array([5]), columns_of(np.ones((1, 1))), np.ones(1), count)
    assert cover.node.tolist() == [5][:count]
