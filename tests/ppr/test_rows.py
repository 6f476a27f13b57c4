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


@given(counts=st.lists(st.integers(0, 5), min_size=1), data=st.data())
def test_consecutive_rows_are_those_of_the_whole(counts, data):
    rows = rows_of(counts)
    start = data.draw(st.integers(0, len(counts)))
    stop = data.draw(st.integers(start, len(counts)))
    part = rows.consecutive(slice(start, stop))
    assert part.row_ptr.tolist() == np.cumsum([0, *counts[start:stop]]).tolist()
    entries = slice(rows.row_ptr[start], rows.row_ptr[stop])
    np.testing.assert_array_equal(part.ids, rows.ids[entries], strict=True)
    np.testing.assert_array_equal(part.weights, rows.weights[entries], strict=True)
    for name in ("missing_mass", "cut_mass"):
        expected = getattr(rows, name)[start:stop]
        np.testing.assert_array_equal(getattr(part, name), expected, strict=True)


def test_rows_may_have_no_clusters():
    rows = rows_of([1, 0, 2], num_clusters=0)
    assert rows.consecutive(slice(1, 3)).cut_mass.shape == (2, 0)


def test_rows_are_not_to_be_changed():
    with pytest.raises(AttributeError):
        rows_of([1]).ids = np.zeros(1)
