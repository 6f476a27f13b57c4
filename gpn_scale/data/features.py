"""Picking and scaling feature rows for the encoder; dense stays dense, sparse stays sparse.

Shapes: N nodes, F feature columns.
"""

from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from gpn_scale.config import FeatureScaling
from gpn_scale.csr import entries_of
from gpn_scale.data.graph import CSRFeatures, Features, NodeIds
from gpn_scale.errors import ConfigError, GraphError


def scale_features(features: Features, scaling: FeatureScaling) -> Features:
    """Bag-of-words rows divided by their sum; rows that sum to 0 stay as they are.

    The input is never written to. `none` hands it back, so that a memory map stays lazy; else the
    result is a new float32 array of the same shape and kind.

    Raises:
        ConfigError: `scaling` is not one of `FeatureScaling`.
        GraphError: an entry is negative, so that a row sum is no longer a word count.
    """
    if scaling not in get_args(FeatureScaling):
        raise ConfigError(
            f"feature scaling must be one of {', '.join(get_args(FeatureScaling))}, got {scaling!r}"
        )
    if scaling == "none":
        return features
    binary = scaling == "binary_row_sum"
    if not isinstance(features, CSRFeatures):
        words = _word_counts(features, binary, scaling)
        sums = words.sum(axis=1, dtype=np.float64)
        return np.divide(words, _divisors(sums)[:, None], dtype=np.float32)
    words = _word_counts(features.values, binary, scaling)
    row_of_value = np.repeat(np.arange(features.shape[0]), np.diff(features.indptr))
    sums = np.bincount(row_of_value, weights=words, minlength=features.shape[0])
    return CSRFeatures(
        indptr=features.indptr,
        indices=features.indices,
        values=np.divide(words, _divisors(sums)[row_of_value], dtype=np.float32),
        num_columns=features.num_columns,
    )


def take_rows(features: Features, nodes: NodeIds) -> Features:
    """A copy of the rows of `nodes`, in their order; of a memory map, only these are read."""
    if not isinstance(features, CSRFeatures):
        rows: Features = features[nodes]
        return rows
    indptr, source = entries_of(features.indptr, nodes)
    return CSRFeatures(
        indptr=indptr,
        indices=features.indices[source],
        values=features.values[source],
        num_columns=features.num_columns,
    )


def _word_counts(values: NDArray[Any], binary: bool, scaling: str) -> NDArray[np.float32]:
    """`values` as float32, with nonzeros made 1 if `binary`; refuses negative numbers."""
    if values.min(initial=0) < 0:
        raise GraphError(
            f"feature scaling {scaling!r}: found the negative entry {values.min()}, expected word "
            "counts of at least 0: use the scaling 'none' for features that are not bags of words"
        )
    return (values != 0).astype(np.float32) if binary else values.astype(np.float32, copy=False)


def _divisors(sums: NDArray[Any]) -> NDArray[np.float32]:
    return np.where(sums == 0, 1, sums).astype(np.float32)
