"""`as_graph`: converts graphs of other Python libraries to a `Graph`.

Shapes: N nodes, E edges, F feature columns.
"""

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Graph
from gpn_scale.data.networkx_graph import graph_from_networkx, is_networkx
from gpn_scale.data.node_arrays import features_of, is_frame, labels_of
from gpn_scale.data.pyg import graph_from_pyg, numpy_of
from gpn_scale.data.scipy_graph import graph_from_scipy
from gpn_scale.errors import GraphError

GraphLike: TypeAlias = Any
"""Input of `as_graph`: a `Graph`, PyG `Data`, a networkx graph, or a tuple (X, y, edges)."""

_CONVERTERS = (
    "a Graph, a PyG Data (graph_from_pyg), a networkx graph (graph_from_networkx) or a tuple "
    "(X, y, edges); graph_from_scipy takes an adjacency matrix, build_graph an edge list, "
    "Graph.from_tables pandas or polars tables, and load_graph the name of a dataset or file"
)


def as_graph(thing: GraphLike, *, name: str = "graph") -> Graph:
    """Return `thing` as a graph; a `Graph` is returned as it is.

    The converters that a message or this list names have more options.

    >>> as_graph(([[0.5], [1.5], [2.5]], ["a", "b", "a"], [[0, 1], [1, 2]]))
    Graph('graph', nodes=3, edges=4, features=1, classes=2)

    Args:
        thing: A `Graph`; a PyG `Data` (see `graph_from_pyg`); a networkx graph whose nodes have the
            attributes `features` and `label` (see `graph_from_networkx`); or a tuple (X, y, edges):
            features (N, F) as an array, sparse matrix or frame; labels (N,), or None; and edges as
            an array (2, E) of node positions, without directions, or as a symmetric scipy
            adjacency matrix (N, N).
        name: Name of the graph in messages and reports.

    Raises:
        GraphError: `thing` is none of these, or its content is not a valid graph.
    """
    if isinstance(thing, Graph):
        return thing
    if is_networkx(thing):
        return graph_from_networkx(thing, name=name)
    if isinstance(thing, tuple) and len(thing) == 3:
        return _graph_of_arrays(*thing, name=name)
    if not is_frame(thing) and hasattr(thing, "edge_index"):
        return graph_from_pyg(thing, name)
    kind = f"{len(thing)} values" if isinstance(thing, tuple) else f"a {type(thing).__name__}"
    raise GraphError(f"graph is {kind}, expected {_CONVERTERS}", arguments=("graph",))


def _graph_of_arrays(X: Any, y: Any, edges: Any, *, name: str) -> Graph:
    """Return the graph of features, labels or None, and edges."""
    if scipy.sparse.issparse(edges):
        return graph_from_scipy(edges, X, y, name=name)
    ends = numpy_of(edges, f"graph {name!r}: edges")
    ends = np.empty((2, 0), np.int64) if ends.size == 0 else ends
    if ends.ndim != 2 or ends.shape[0] != 2:
        hint = ": pass edges.T" if ends.ndim == 2 and ends.shape[1] == 2 else ""
        raise GraphError(
            f"graph {name!r}: edges have shape {ends.shape}, expected (2, E), sources and targets, "
            f"or a scipy adjacency matrix{hint}",
            arguments=("graph",),
        )
    features = features_of(X)
    labels = None if y is None else labels_of(y)
    return build_graph(
        ends[0],
        ends[1],
        name=name,
        features=features.values,
        feature_names=features.names,
        labels=None if labels is None else labels.labels,
        class_names=None if labels is None else labels.class_names,
    )
