"""Comparison of sparse rows, against dense rows."""

import numpy as np
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from precompute.difference_kernels import count_row_differences, row_differences_into


@st.composite
def pairs(draw):
    rows, columns = draw(st.integers(0, 5)), draw(st.integers(1, 6))
    entry = st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0])
    size = rows * columns
    return [
        np.array(draw(st.lists(entry, min_size=size, max_size=size))).reshape(rows, columns)
        for _ in range(2)
    ]


def sparse(dense):
    matrix = scipy.sparse.csr_array(dense)
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data


@given(pair=pairs())
def test_rows_are_compared_entry_by_entry(pair):
    before, after = pair
    arrays = (*sparse(before), *sparse(after))
    counts = count_row_differences(*arrays)
    expected = [
        (before != 0) & (after == 0),
        (before == 0) & (after != 0),
        (before != 0) & (after != 0) & (before != after),
    ]
    assert np.array_equal(counts, np.stack([each.sum(1) for each in expected], 1))
    indptr = np.concatenate([[0], np.cumsum(counts.sum(1))]).astype(np.int64)
    column, value = np.empty(indptr[-1], np.int32), np.empty(indptr[-1])
    row_differences_into(*arrays, indptr, column, value)
    got = scipy.sparse.csr_array((value, column, indptr), shape=before.shape).toarray()
    exact = np.abs(after - before)
    assert (got >= exact).all()
    assert np.allclose(got, exact, rtol=1e-12)
