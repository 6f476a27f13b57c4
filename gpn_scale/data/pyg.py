"""Graphs from PyTorch Geometric's `Data` objects.

Shapes: N nodes, E edges, F feature columns.
"""

import warnings
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import MISSING_LABEL, CSRFeatures, Graph, Split, as_array
from gpn_scale.errors import GraphError

SPARSE_BELOW = 0.2
"""Fraction of nonzero features below which sparse rows are smaller and faster than an array."""

_WHOLE_FLOATS = 2.0**53


def graph_from_pyg(
    data: Any, name: str = "graph", *, split: int | None = None, directed: bool = False
) -> Graph:
    """Return the graph in a `torch_geometric.data.Data`.

    These attributes are read: `edge_index` (2, E), `x` (dense or sparse tensor), `y` (N,) or
    (N, 1), `edge_weight` (or a one-dimensional `edge_attr`), and the masks `train_mask`,
    `val_mask`, `test_mask`. NaN in floating-point labels means a missing label.

    >>> from types import SimpleNamespace
    >>> graph_from_pyg(SimpleNamespace(edge_index=[[0, 1], [1, 2]], y=[0, 1, 0]), "path")
    Graph('path', nodes=3, edges=4, features=0, classes=2)

    Args:
        data: The object; its class does not matter.
        name: Name of the graph in messages and reports.
        split: Column of masks that hold several splits, one per column; a mask without columns
            belongs to all of them. None for masks that hold one split.
        directed: Keep edges as given instead of adding the reverse ones.

    Raises:
        GraphError: `edge_index` is missing, an array has a wrong shape or type, or masks hold
            several splits and `split` is None, or they have no such column.
    """
    edge_index = _array(data, "edge_index")
    if edge_index is None or edge_index.ndim != 2 or edge_index.shape[0] != 2:
        given = "is missing" if edge_index is None else f"has shape {edge_index.shape}"
        raise GraphError(f"graph {name!r}: data.edge_index {given}, expected (2, E)")
    labels = _labels(_array(data, "y"), name)
    features = _features(getattr(data, "x", None))
    return build_graph(
        edge_index[0],
        edge_index[1],
        name=name,
        num_nodes=_num_nodes(data) if labels is None and features is None else None,
        edge_weight=_edge_weight(data),
        features=features,
        labels=labels,
        directed=directed,
        split=_split(data, labels, split, name),
    )


def compact_features(dense: NDArray[Any]) -> NDArray[Any] | CSRFeatures:
    """Return `dense` (N, F) as sparse rows if the fraction of nonzeros is below `SPARSE_BELOW`.

    >>> type(compact_features(np.eye(10))).__name__, type(compact_features(np.eye(2))).__name__
    ('CSRFeatures', 'ndarray')
    """
    if dense.ndim != 2 or np.count_nonzero(dense) >= SPARSE_BELOW * dense.size:
        return dense
    rows, columns = np.nonzero(dense)
    return _sparse_rows(rows, columns, dense[rows, columns], dense.shape)


def compact_matrix(matrix: scipy.sparse.csr_array) -> NDArray[Any] | CSRFeatures:
    """Return a sparse matrix (N, F) as `compact_features` would return it if it were dense.

    >>> matrix = scipy.sparse.csr_array(np.eye(10, dtype=np.float32))
    >>> compact_matrix(matrix).indices.tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    matrix = matrix.copy()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    rows, columns = matrix.shape
    if matrix.nnz >= SPARSE_BELOW * rows * columns:
        dense: NDArray[Any] = matrix.toarray()
        return dense
    return CSRFeatures(
        indptr=matrix.indptr.astype(np.int64),
        indices=matrix.indices.astype(np.int32),
        values=matrix.data,
        num_columns=columns,
    )


def _sparse_rows(
    rows: NDArray[Any], columns: NDArray[Any], values: NDArray[Any], shape: tuple[int, ...]
) -> CSRFeatures:
    """Return compressed rows of entries that are sorted by row."""
    indptr = np.zeros(shape[0] + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=shape[0]), out=indptr[1:])
    return CSRFeatures(
        indptr=indptr,
        indices=columns.astype(np.int32),
        values=values,
        num_columns=shape[1],
    )


def _array(data: Any, key: str) -> NDArray[Any] | None:
    value = getattr(data, key, None)
    return None if value is None else numpy_of(value, f"data.{key}")


def numpy_of(value: Any, what: str) -> NDArray[Any]:
    """Return a tensor, or anything like an array, as a NumPy array; `what` names it in messages.

    >>> numpy_of([[1, 2]], "data.x").shape
    (1, 2)

    Raises:
        GraphError: the tensor is sparse or of a type that NumPy does not have, or rows have
            different lengths.
    """
    if not hasattr(value, "detach"):
        return as_array(value, what)
    tensor = value.detach().cpu()
    if str(tensor.dtype) == "torch.bfloat16":
        tensor = tensor.float()  # NumPy has no bfloat16
    try:
        return np.asarray(tensor.numpy())
    except TypeError as error:
        raise GraphError(
            f"{what} is a {tensor.layout} tensor of {tensor.dtype}, expected a dense one of a type "
            f"that NumPy has ({error})"
        ) from error


def _features(x: Any) -> NDArray[Any] | CSRFeatures | None:
    if x is None:
        return None
    if str(getattr(x, "layout", "torch.strided")) == "torch.strided":
        return compact_features(numpy_of(x, "data.x"))
    entries = x.detach().cpu().to_sparse_coo().coalesce()
    if entries.sparse_dim() != 2 or entries.dense_dim() != 0:
        return compact_features(numpy_of(entries.to_dense(), "data.x"))
    rows, columns = entries.indices().numpy()
    values = numpy_of(entries.values(), "data.x")
    return _sparse_rows(rows, columns, values, tuple(entries.shape))


def _labels(y: NDArray[Any] | None, name: str) -> NDArray[Any] | None:
    if y is None:
        return None
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.dtype.kind == "b":
        return y.astype(np.int64)
    if y.dtype.kind != "f":
        return y
    whole = np.where(np.isnan(y), MISSING_LABEL, y)
    if not ((np.abs(whole) < _WHOLE_FLOATS) & (whole == np.floor(whole))).all():
        raise GraphError(
            f"graph {name!r}: data.y holds numbers with a fraction or too large to be exact, "
            "expected class indices (NaN where a label is missing)"
        )
    return whole.astype(np.int64)


def _edge_weight(data: Any) -> NDArray[Any] | None:
    weight = _array(data, "edge_weight")
    if weight is not None:
        return weight
    attributes = _array(data, "edge_attr")
    return attributes if attributes is not None and attributes.ndim == 1 else None


def _num_nodes(data: Any) -> int | None:
    with warnings.catch_warnings():
        # PyG warns when it must guess from the edges; `build_graph` would guess the same.
        warnings.filterwarnings("ignore", "Unable to accurately infer 'num_nodes'", UserWarning)
        count = getattr(data, "num_nodes", None)
    return None if count is None else int(count)


def _split(data: Any, labels: NDArray[Any] | None, column: int | None, name: str) -> Split | None:
    """Return the split in the masks; None without `train_mask`. Other masks may be absent."""
    masks = {subset: _array(data, f"{subset}_mask") for subset in ("train", "val", "test")}
    if masks["train"] is None:
        if column is not None:
            raise GraphError(
                f"graph {name!r}: split is {column}, but data.train_mask is missing: omit split",
                arguments=("split",),
            )
        return None
    subsets: dict[str, NDArray[np.int64]] = {}
    for subset, mask in masks.items():
        if mask is None:
            subsets[subset] = np.empty(0, np.int64)
            continue
        what = f"graph {name!r}: data.{subset}_mask"
        mask = _mask_column(mask, column, what) if mask.ndim == 2 else mask
        _check_mask(mask, labels, what)
        subsets[subset] = np.flatnonzero(mask).astype(np.int64)
    return Split(**subsets)


def _mask_column(mask: NDArray[Any], column: int | None, what: str) -> NDArray[Any]:
    """Return the chosen column of a mask; a single column needs no choice."""
    count = mask.shape[1]
    if column is None and count != 1:
        raise GraphError(
            f"{what} holds {count} splits, one per column: choose one with "
            f"graph_from_pyg(data, split=0) up to split={count - 1}",
            arguments=("split",),
        )
    chosen = 0 if column is None else column
    if not 0 <= chosen < count:
        raise GraphError(
            f"{what} holds {count} splits, one per column, but split is {chosen}: expected 0 to "
            f"{count - 1}",
            arguments=("split",),
        )
    return np.asarray(mask[:, chosen])


def _check_mask(mask: NDArray[Any], labels: NDArray[Any] | None, what: str) -> None:
    """Refuse everything but one boolean per node, above all a list of node ids."""
    expected = mask.shape if labels is None else labels.shape[:1]
    binary = mask.dtype.kind == "b" or (mask.dtype.kind in "iu" and np.isin(mask, (0, 1)).all())
    if mask.ndim != 1 or mask.shape != expected or not binary:
        raise GraphError(
            f"{what} is {mask.dtype} of shape {mask.shape}, expected a boolean for each node"
        )
