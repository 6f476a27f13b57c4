"""Sparse scipy matrices made from arrays of rows, without copies."""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

SparseRows = Any
"""A `scipy.sparse.csr_array`; scipy ships no types."""


def csr_rows(
    values: NDArray[Any], columns: NDArray[Any], offsets: NDArray[Any], width: int
) -> SparseRows:
    """Return sparse rows of `width` columns from their three arrays, which are not copied.

    >>> csr_rows(np.array([5, 6]), np.array([1, 0]), np.array([0, 1, 2]), width=3).toarray()
    array([[0, 5, 0],
           [6, 0, 0]])
    """
    return scipy.sparse.csr_array((values, columns, offsets), shape=(len(offsets) - 1, width))


def entries_where(rows: SparseRows, mask: NDArray[np.bool_]) -> SparseRows:
    """Return the entries where `mask` holds; the others are no longer stored.

    >>> rows = csr_rows(np.array([5, 6]), np.array([1, 0]), np.array([0, 1, 2]), width=3)
    >>> entries_where(rows, rows.data > 5).toarray()
    array([[0, 0, 0],
           [6, 0, 0]])
    """
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(mask)])[rows.indptr]
    offsets = offsets.astype(rows.indptr.dtype, copy=False)
    return csr_rows(rows.data[mask], rows.indices[mask], offsets, rows.shape[1])
