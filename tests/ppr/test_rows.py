import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.ppr.rows import Rows


def rows_of(counts, num_clusters=2, rng_seed=0):
    rng, total = np.random.default_rng(rng_seed), sum(counts)
    return Rows(
        row_ptr=np.cumsum([0, *counts]),
        ids=rng.integers(100, size=total).astype(np.int32),
        weights=rng.random(total).astype(np.float32),
        missing_mass=rng.random(len(counts)).astype(np.float32),
        cut_mass=rng.random((len(counts), num_clusters)).astype(np.float16),
    )


@given(counts=st.lists(st.integers(0, 5)))
def test_sizes_and_rows_of_entries(counts):
    rows = rows_of(counts)
    assert (rows.num_rows, rows.num_entries) == (len(counts), sum(counts))
    expected = [row for row, count in enumerate(counts) for _ in range(count)]
    assert rows.row_of_entry().tolist() == expected
    assert rows.row_of_entry().dtype == np.int64


@given(counts=st.lists(st.integers(0, 5)), data=st.data())
def test_entries_within_a_range_are_those_of_a_loop_over_all(counts, data):
    rows = rows_of(counts)
    last = int(max(rows.ids, default=0))
    start = data.draw(st.integers(0, last + 1))
    stop = data.draw(st.integers(start, last + 2))
    part = rows.within(slice(start, stop))
    for row in range(rows.num_rows):
        own, all_own = (slice(*each.row_ptr[row : row + 2]) for each in (part, rows))
        pairs = zip(rows.ids[all_own].tolist(), rows.weights[all_own].tolist(), strict=True)
        expected = [(node - start, weight) for node, weight in pairs if start <= node < stop]
        got = zip(part.ids[own].tolist(), part.weights[own].tolist(), strict=True)
        assert list(got) == expected
    for name in ("missing_mass", "cut_mass"):
        np.testing.assert_array_equal(getattr(part, name), getattr(rows, name), strict=True)


def test_rows_are_not_to_be_changed():
    with pytest.raises(AttributeError):
        rows_of([1]).ids = np.zeros(1)
