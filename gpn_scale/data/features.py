"""Selection and scaling of feature rows; dense features stay dense, sparse ones stay sparse.

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
    """Return bag-of-words rows divided by their sum; rows that sum to 0 stay unchanged.

    The input is never changed. With `none` it is returned unchanged, so that a memory map is not
    read; otherwise the result is a new float32 array of the same shape and kind.

    >>> scale_features(np.array([[1.0, 3.0], [0.0, 0.0]]), "row_sum").tolist()
    [[0.25, 0.75], [0.0, 0.0]]

    Raises:
        ConfigError: `scaling` is not one of `FeatureScaling`.
        GraphError: an entry is negative, so a row sum would not be a word count.
    """
    if scaling not in get_args(FeatureScaling):
        raise ConfigError(
            f"feature scaling is {scaling!r}, expected {' or '.join(get_args(FeatureScaling))}",
            arguments=("data.feature_scaling",),
        )
    if scaling == "none":
        return features
    binary = scaling == "binary_row_sum"
    if not isinstance(features, CSRFeatures):
        counts = _word_counts(features, binary, scaling)
        sums = counts.sum(axis=1, dtype=np.float64)
        return np.divide(counts, _divisors(sums)[:, None], dtype=np.float32)
    counts = _word_counts(features.values, binary, scaling)
    row_of_value = np.repeat(np.arange(features.shape[0]), np.diff(features.indptr))
    sums = np.bincount(row_of_value, weights=counts, minlength=features.shape[0])
    return CSRFeatures(
        indptr=features.indptr,
        indices=features.indices,
        values=np.divide(counts, _divisors(sums)[row_of_value], dtype=np.float32),
        num_columns=features.num_columns,
    )


def take_rows(features: Features, nodes: NodeIds) -> Features:
    """Return a copy of the rows of `nodes`, in this order; reads no other rows of a memory map.

    >>> take_rows(np.array([[0.5], [1.5], [2.5]]), np.array([2, 0])).tolist()
    [[2.5], [0.5]]
    """
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


def take_columns(features: Features, columns: NDArray[np.int64]) -> Features:
    """Return a copy of some columns, in this order; each is taken once.

    >>> take_columns(np.array([[0.5, 1.5, 2.5]]), np.array([2, 0])).tolist()
    [[2.5, 0.5]]
    """
    if not isinstance(features, CSRFeatures):
        chosen: Features = features[:, columns]
        return chosen
    place = np.full(features.num_columns, -1, np.int64)
    place[columns] = np.arange(len(columns))
    kept = place[features.indices] >= 0
    row_of_value = np.repeat(np.arange(features.shape[0]), np.diff(features.indptr))[kept]
    indices = place[features.indices[kept]]
    order = np.lexsort((indices, row_of_value))
    return CSRFeatures(
        indptr=np.searchsorted(row_of_value, np.arange(features.shape[0] + 1)).astype(np.int64),
        indices=indices[order].astype(np.int32),
        values=features.values[kept][order],
        num_columns=len(columns),
    )


def _word_counts(values: NDArray[Any], binary: bool, scaling: str) -> NDArray[np.float32]:
    """Return `values` as float32, with nonzeros set to 1 if `binary`; refuse negative numbers."""
    if values.min(initial=0) < 0:
        raise GraphError(
            f"feature scaling {scaling!r}: an entry is {values.min()}, expected word counts of at "
            "least 0: use the scaling 'none' for features that are not bags of words",
            arguments=("data.feature_scaling",),
        )
    return (values != 0).astype(np.float32) if binary else values.astype(np.float32, copy=False)


def _divisors(sums: NDArray[Any]) -> NDArray[np.float32]:
    return np.where(sums == 0, 1, sums).astype(np.float32)
