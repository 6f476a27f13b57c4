"""Features of several columns side by side, dense or sparse.

Shapes: N rows, F features, W features of one column.
"""

from collections.abc import Sequence

import numpy as np
import scipy.sparse

from gpn_scale.data.graph import CSRFeatures, Features

SPARSE_FEATURES = 128
"""Number of features above which they may be sparse."""
SPARSE_FRACTION = 0.25
"""Largest fraction of features that a usual row of sparse features fills."""

_CHUNK_ROWS = 1 << 16


def is_sparse(num_features: int, filled: int) -> bool:
    """Return whether features are stored as compressed rows.

    >>> is_sparse(1024, filled=16), is_sparse(100, filled=1), is_sparse(200, filled=100)
    (True, False, False)

    Args:
        num_features: F.
        filled: Number of features that are not 0 in a usual row.
    """
    return num_features > SPARSE_FEATURES and filled <= SPARSE_FRACTION * num_features


def joined_features(
    blocks: Sequence[scipy.sparse.csr_array], num_rows: int, *, sparse: bool
) -> Features:
    """Return blocks of shape (N, W) side by side, (N, F).

    >>> block = scipy.sparse.csr_array(np.array([[0.0, 2.0]], np.float32))
    >>> joined_features([block, block], 1, sparse=False).tolist()
    [[0.0, 2.0, 0.0, 2.0]]
    """
    width = sum(block.shape[1] for block in blocks)
    if sparse:
        return _sparse(blocks, num_rows, width)
    features = np.zeros((num_rows, width), np.float32)
    start = 0
    for block in blocks:
        columns = slice(start, start + block.shape[1])
        for first in range(0, num_rows, _CHUNK_ROWS):
            features[first : first + _CHUNK_ROWS, columns] = block[
                first : first + _CHUNK_ROWS
            ].toarray()
        start = columns.stop
    return features


def _sparse(blocks: Sequence[scipy.sparse.csr_array], num_rows: int, width: int) -> CSRFeatures:
    counts = np.zeros(num_rows, np.int64)
    for block in blocks:
        counts += np.diff(block.indptr)
    indptr = np.append(0, np.cumsum(counts))
    indices = np.empty(indptr[-1], np.int32)
    values = np.empty(indptr[-1], np.float32)
    for first in range(0, num_rows, _CHUNK_ROWS):
        last = min(first + _CHUNK_ROWS, num_rows)
        rows = scipy.sparse.hstack([block[first:last] for block in blocks], format="csr")
        entries = slice(indptr[first], indptr[last])
        indices[entries], values[entries] = rows.indices, rows.data
    return CSRFeatures(indptr=indptr, indices=indices, values=values, num_columns=width)
