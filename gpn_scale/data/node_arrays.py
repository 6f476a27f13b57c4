"""Conversion of features and labels from arrays, frames, sparse matrices and tensors.

Shapes: N nodes, F feature columns, C classes.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import scipy.sparse
from numpy.typing import NDArray

from gpn_scale.data.graph import MISSING_LABEL, CSRFeatures
from gpn_scale.data.pyg import numpy_of
from gpn_scale.errors import GraphError

_WHOLE_FLOATS = 2.0**53


class NodeFeatures(NamedTuple):
    """Features of nodes, and the names of their columns.

    >>> NodeFeatures(np.ones((2, 1)), ("age",)).names
    ('age',)
    """

    values: NDArray[Any] | CSRFeatures
    """Dense (N, F) or sparse."""
    names: tuple[str, ...] | None
    """Names of the columns, (F,); None if they have none."""


class NodeLabels(NamedTuple):
    """Classes of nodes, and their names.

    >>> NodeLabels(np.array([0, 1]), np.array(["cat", "dog"])).class_names[1]
    np.str_('dog')
    """

    labels: NDArray[np.int64]
    """Class indices, `MISSING_LABEL` where a label is missing, (N,)."""
    class_names: NDArray[np.str_] | None
    """Names of the classes, sorted, (C,); None if labels were class indices."""


def features_of(values: Any) -> NodeFeatures:
    """Return features as an array or as sparse rows, and the names of their columns.

    >>> import scipy.sparse
    >>> features_of(scipy.sparse.eye(3)).values.shape
    (3, 3)
    >>> features_of([[1.0, 2.0]]).names is None
    True

    Args:
        values: An array or nested lists (N, F), a scipy sparse matrix, a tensor, or a frame of
            pandas or polars, whose columns must be numbers.

    Raises:
        GraphError: a column of a frame does not hold numbers.
    """
    if isinstance(values, CSRFeatures):
        return NodeFeatures(values, None)
    if scipy.sparse.issparse(values):
        return NodeFeatures(_sparse_rows(values), None)
    if is_frame(values):
        return _frame_features(values)
    return NodeFeatures(numpy_of(values, "features"), None)


def labels_of(values: Any) -> NodeLabels:
    """Return labels as class indices, and the names of the classes if the labels are texts.

    Integers are class indices. None, NaN, an empty text and -1 mean that a label is missing.

    >>> labels_of(["dog", None, "cat"])
    NodeLabels(labels=array([ 1, -1,  0]), class_names=array(['cat', 'dog'], dtype='<U3'))

    Args:
        values: A list, an array, a tensor or a column of a frame, (N,) or (N, 1).

    Raises:
        GraphError: labels are neither integers nor texts, or have the wrong shape.
    """
    array = numpy_of(values, "labels")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise GraphError(f"labels have shape {array.shape}, expected (N,)")
    try:
        column = pa.array(array, from_pandas=True)
    except (pa.ArrowException, OverflowError) as error:
        raise GraphError(
            f"labels are of several types or cannot be read ({error}), expected integers or texts"
        ) from error
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return _named_labels(np.array([text or "" for text in column.to_pylist()], np.str_))
    return NodeLabels(_numbered_labels(column), None)


def is_frame(values: Any) -> bool:
    """Return whether `values` is a frame of pandas or polars, or anything with the same methods.

    >>> is_frame([[1.0]])
    False
    """
    return hasattr(values, "columns") and hasattr(values, "to_numpy")


def _sparse_rows(matrix: Any) -> CSRFeatures:
    rows = scipy.sparse.csr_array(matrix, copy=True)
    rows.sum_duplicates()
    return CSRFeatures(
        indptr=rows.indptr.astype(np.int64),
        indices=rows.indices.astype(np.int32),
        values=rows.data,
        num_columns=rows.shape[1],
    )


def _frame_features(frame: Any) -> NodeFeatures:
    columns = list(frame.columns)
    arrays = [np.asarray(frame[column].to_numpy()) for column in columns]
    for column, array in zip(columns, arrays, strict=True):
        if array.ndim != 1 or array.dtype.kind not in "fiub":
            raise GraphError(
                f"the feature column {column!r} is {array.dtype}, expected numbers: encode or drop "
                "it, or let Graph.from_tables prepare the columns of your tables"
            )
    named = bool(columns) and all(isinstance(column, str) for column in columns)
    empty = np.empty((len(frame), 0), np.float32)
    return NodeFeatures(
        np.stack(arrays, axis=1) if arrays else empty, tuple(columns) if named else None
    )


def _named_labels(texts: NDArray[np.str_]) -> NodeLabels:
    """Return the labels of texts, of which empty ones are missing."""
    labels = np.full(len(texts), MISSING_LABEL, np.int64)
    given = texts != ""
    class_names, labels[given] = np.unique(texts[given], return_inverse=True)
    return NodeLabels(labels, class_names)


def _numbered_labels(column: Any) -> NDArray[np.int64]:
    kind, missing = column.type, np.asarray(column.is_null())
    known_kind = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)
    if not known_kind and not pa.types.is_floating(kind):
        raise GraphError(f"labels are of the type {kind}, expected integers or texts")
    labels = np.full(len(column), MISSING_LABEL, np.int64)
    numbers = column.drop_null().to_numpy(zero_copy_only=False)
    if pa.types.is_floating(kind):  # integers with gaps
        whole = (np.abs(numbers) < _WHOLE_FLOATS) & (numbers == np.floor(numbers))
        if not whole.all():
            raise GraphError(
                f"labels hold {numbers[~whole][0]}, expected integers or texts (None or NaN where "
                "a label is missing)"
            )
    labels[~missing] = numbers.astype(np.int64)
    return labels
