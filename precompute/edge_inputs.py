"""`graph_of_edges`: builds a graph from edges in any of the usual array forms.

Shapes: N nodes, E edges.
"""

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Graph, as_array, as_node_ids
from gpn_scale.data.scipy_graph import graph_from_scipy
from gpn_scale.errors import GraphError

EdgesLike: TypeAlias = Any
"""An array (2, E), a tuple (indptr, indices), a `scipy.sparse` matrix, or a `Graph`."""

_NAME = "edges"


def graph_of_edges(
    edges: EdgesLike,
    *,
    num_nodes: int | None = None,
    edge_weight: ArrayLike | None = None,
    directed: bool = True,
) -> Graph:
    """Return the graph of `edges`; loops are dropped, and repeated edges become one.

    >>> graph_of_edges([[0, 1], [1, 2]])
    Graph('edges', nodes=3, edges=2, features=0, classes=0)
    >>> graph_of_edges((np.array([0, 1, 2, 2]), np.array([1, 2])), directed=False)
    Graph('edges', nodes=3, edges=4, features=0, classes=0)

    Args:
        edges: Sources and targets, (2, E); or a tuple (indptr, indices) of compressed rows, where
            the targets of node v are `indices[indptr[v]:indptr[v + 1]]`; or a sparse matrix (N, N)
            of scipy, whose entry (u, v) is the weight of u -> v; or a `Graph`, which is returned
            as it is.
        num_nodes: N, for edges (2, E); by default the largest id + 1.
        edge_weight: Positive weights in the order of the edges, (E,); a matrix has its own.
        directed: Whether a walk follows an edge from its source to its target only.

    Raises:
        GraphError: the edges have none of these forms, or an id or a weight is not valid.
    """
    if isinstance(edges, Graph) or scipy.sparse.issparse(edges):
        _refuse_more(num_nodes=num_nodes, edge_weight=edge_weight)
        return edges if isinstance(edges, Graph) else _of_matrix(edges, directed)
    if isinstance(edges, tuple):
        _refuse_more(num_nodes=num_nodes)
        source_E, target_E, num_nodes = _of_compressed_rows(edges)
    else:
        source_E, target_E = _of_ends(edges)
    return build_graph(
        source_E,
        target_E,
        name=_NAME,
        num_nodes=num_nodes,
        edge_weight=edge_weight,
        directed=directed,
    )


def _of_matrix(matrix: Any, directed: bool) -> Graph:
    return graph_from_scipy(matrix, name=_NAME, directed=directed)


def _refuse_more(**arguments: object) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise GraphError(
                f"{name} is given, but the edges already define it, expected {name} only with an "
                f"array (2, E): omit {name}",
                arguments=(name,),
            )


def _of_ends(edges: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    ends = as_array(edges, "edges")
    ends = np.empty((2, 0), np.int64) if ends.size == 0 else ends
    if ends.ndim != 2 or ends.shape[0] != 2:
        hint = ": pass edges.T" if ends.ndim == 2 and ends.shape[1] == 2 else ""
        raise GraphError(
            f"edges have shape {ends.shape}, expected (2, E) with sources and targets, a tuple "
            f"(indptr, indices) or a scipy.sparse matrix{hint}",
            arguments=("edges",),
        )
    return ends[0], ends[1]


def _of_compressed_rows(edges: tuple[Any, ...]) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Return sources, targets and the number of nodes."""
    if len(edges) != 2:
        raise GraphError(
            f"edges are a tuple of {len(edges)}, expected (indptr, indices)", arguments=("edges",)
        )
    indptr = as_node_ids(edges[0], "indptr").astype(np.int64)
    indices = as_node_ids(edges[1], "indices")
    rises = len(indptr) > 0 and indptr[0] == 0 and bool((np.diff(indptr) >= 0).all())
    if not rises or indptr[-1] != len(indices):
        raise GraphError(
            f"edges are a tuple whose first array is not an indptr for the {len(indices)} indices "
            f"in the second, expected an array that rises from 0 to {len(indices)}: to give "
            "sources and targets, pass np.stack([source, target])",
            arguments=("edges",),
        )
    num_nodes = len(indptr) - 1
    return np.repeat(np.arange(num_nodes), np.diff(indptr)), indices, num_nodes
