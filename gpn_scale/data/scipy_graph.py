"""Graphs from adjacency matrices of scipy.

Shapes: N nodes, F feature columns, C classes.
"""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Graph, Split
from gpn_scale.data.node_arrays import features_of, labels_of
from gpn_scale.errors import GraphError


def graph_from_scipy(
    adjacency: Any,
    features: Any = None,
    labels: Any = None,
    *,
    name: str = "graph",
    directed: bool | None = None,
    split: Split | None = None,
    node_names: ArrayLike | None = None,
    class_names: ArrayLike | None = None,
    feature_names: ArrayLike | None = None,
) -> Graph:
    """Return the graph of a sparse adjacency matrix, whose entry (u, v) is the weight of u -> v.

    If all entries are 1 or True, the edges have no weights. Stored zeros are not edges.

    >>> import scipy.sparse
    >>> path = scipy.sparse.diags([[1.0, 1.0], [1.0, 1.0]], [-1, 1])
    >>> graph_from_scipy(path, features=[[0.5], [1.5], [2.5]], labels=["a", "b", "a"])
    Graph('graph', nodes=3, edges=4, features=1, classes=2)

    Args:
        adjacency: Matrix or array of `scipy.sparse`, (N, N).
        features: Numbers (N, F): an array, a scipy sparse matrix, or a frame.
        labels: Class indices or texts, (N,); None, NaN and -1 where a label is missing.
        name: Name of the graph in messages and reports.
        directed: Whether to keep directions; needed if the matrix is not symmetric. With False an
            undirected edge may be listed in one direction or in both.
        split: A public split.
        node_names: Your own node ids, (N,).
        class_names: Names of classes if labels are class indices, (C,).
        feature_names: Names of the feature columns, (F,); by default those of a frame.

    Raises:
        GraphError: the matrix is not sparse or not square, is not symmetric while `directed` is
            None, or features or labels do not fit.
    """
    if not scipy.sparse.issparse(adjacency):
        raise GraphError(
            f"graph {name!r}: adjacency is a {type(adjacency).__name__}, expected a matrix of "
            "scipy.sparse: use build_graph for lists of edges",
            arguments=("adjacency",),
        )
    if adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
        raise GraphError(
            f"graph {name!r}: adjacency has shape {adjacency.shape}, expected (N, N)",
            arguments=("adjacency",),
        )
    matrix = scipy.sparse.csr_array(adjacency, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if directed is None:
        _require_symmetry(matrix, name)
    entries = matrix.tocoo()
    node_features = None if features is None else features_of(features)
    node_labels = None if labels is None else labels_of(labels)
    if class_names is None and node_labels is not None:
        class_names = node_labels.class_names
    if feature_names is None and node_features is not None:
        feature_names = node_features.names
    return build_graph(
        entries.row,
        entries.col,
        name=name,
        num_nodes=matrix.shape[0],
        edge_weight=None if np.all(entries.data == 1) else entries.data,
        features=None if node_features is None else node_features.values,
        labels=None if node_labels is None else node_labels.labels,
        directed=bool(directed),
        split=split,
        node_names=node_names,
        class_names=class_names,
        feature_names=feature_names,
    )


def _require_symmetry(matrix: Any, name: str) -> None:
    """Refuse a matrix that is not symmetric, unless `directed` is given."""
    different = (matrix != matrix.T.tocsr()).tocoo()
    if different.nnz:
        u, v = int(different.row[0]), int(different.col[0])
        raise GraphError(
            f"graph {name!r}: adjacency is not symmetric (entries {u}, {v} and {v}, {u} differ): "
            "pass directed=True to keep directions, or directed=False for edges that go both ways",
            arguments=("directed",),
        )
