import numpy as np
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.diffusion.sparse_rows import csr_rows, entries_where


@given(seed=st.integers(0, 10_000), rows=st.integers(0, 5), columns=st.integers(1, 5))
def test_entries_are_those_of_the_dense_matrix(seed, rows, columns):
    rng = np.random.default_rng(seed)
    dense = rng.integers(0, 4, (rows, columns)).astype(np.float64)
    sparse = scipy.sparse.csr_array(dense)
    made = csr_rows(sparse.data, sparse.indices, sparse.indptr, columns)
    np.testing.assert_array_equal(made.toarray(), dense)
    kept = entries_where(made, made.data >= 2)
    np.testing.assert_array_equal(kept.toarray(), np.where(dense >= 2, dense, 0))
    assert kept.nnz == (dense >= 2).sum()
    assert kept.indptr.dtype == made.indptr.dtype


def test_arrays_are_not_copied():
    values = np.ones(2)
    rows = csr_rows(values, np.array([0, 1]), np.array([0, 2]), 2)
    assert np.shares_memory(rows.data, values)
