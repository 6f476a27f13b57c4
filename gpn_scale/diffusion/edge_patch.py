"""`EdgePatch`: edges that a graph gains and loses, while the graph itself is only read.

Shapes: N existing nodes, M new nodes, P entries of the patch.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpn_scale.data.graph import Graph, NodeIds, as_array, as_node_ids
from gpn_scale.diffusion.growth import NewNodes
from gpn_scale.errors import GraphError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EdgePatch:
    """Signed entries that are added to the adjacency matrix of a graph.

    An undirected edge has an entry for each direction. No entry is both gained and lost.

    >>> from gpn_scale import build_graph
    >>> path = build_graph([0, 1], [1, 2], num_nodes=4)
    >>> patch = rewired(path, 0, add=[3], remove=[1])
    >>> list(zip(patch.source.tolist(), patch.target.tolist(), patch.weight.tolist()))
    [(0, 3, 1.0), (0, 1, -1.0), (3, 0, 1.0), (1, 0, -1.0)]
    """

    num_new: int
    """Number M of new nodes, whose ids are N to N + M - 1."""
    source: NodeIds
    """Rows of the entries, (P,)."""
    target: NodeIds
    """Columns of the entries, (P,)."""
    weight: NDArray[np.float64]
    """Weights of gained edges; those of lost edges are negative, (P,)."""


def grown(new: NewNodes) -> EdgePatch:
    """Return the edges that new nodes bring.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.diffusion.growth import new_nodes
    >>> path = build_graph([0, 1], [1, 2], features=[[0.0], [1.0], [2.0]])
    >>> patch = grown(new_nodes(path, [[0.5]], [[2]]))
    >>> patch.source.tolist(), patch.target.tolist()
    ([2, 3], [3, 2])
    """
    graph = new.patch
    row = np.repeat(np.arange(graph.num_nodes), graph.out_degree)
    weight = np.ones(len(row)) if graph.edge_weight is None else graph.edge_weight
    return EdgePatch(
        num_new=new.num_new,
        source=new.changed[row],
        target=new.changed[graph.indices],
        weight=weight.astype(np.float64),
    )


def rewired(
    graph: Graph,
    node: int,
    *,
    add: ArrayLike = (),
    add_weights: ArrayLike | None = None,
    remove: ArrayLike = (),
) -> EdgePatch:
    """Return the edges that one node gains and loses, after checking them.

    Undirected edges change both ends; of a directed graph, edges that leave the node change.

    >>> from gpn_scale import build_graph
    >>> rewired(build_graph([0, 1], [1, 2]), 0, add=[1])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    gpn_scale.errors.GraphError: add_edges holds node 1, which is a neighbour of node 0 already: ...

    Args:
        graph: The graph.
        node: The node.
        add: Nodes that become neighbours.
        add_weights: A positive weight for each of them, for graphs with weights; by default 1.
        remove: Neighbours that it loses.

    Raises:
        GraphError: an edge to add exists, one to remove does not, an edge joins the node to itself
            or is listed twice, or a weight is not valid.
    """
    added = _checked_ends(graph, node, add, "add_edges")
    removed = _checked_ends(graph, node, remove, "remove_edges")
    gained = _checked_weights(graph, add_weights, len(added))
    exists = _entries(graph, node, added)[1]
    if exists.any():
        raise GraphError(
            f"add_edges holds node {added[exists][0]}, which is a neighbour of node {node} "
            "already: leave it out",
            arguments=("add_edges",),
        )
    place, exists = _entries(graph, node, removed)
    if not exists.all():
        raise GraphError(
            f"remove_edges holds node {removed[~exists][0]}, which is not a neighbour of node "
            f"{node}: name edges that exist",
            arguments=("remove_edges",),
        )
    lost = np.ones(len(removed)) if graph.edge_weight is None else graph.edge_weight[place]
    ends = np.concatenate([added, removed])
    weight = np.concatenate([gained, -lost.astype(np.float64)])
    own = np.full(len(ends), node)
    if graph.directed:
        return EdgePatch(num_new=0, source=own, target=ends, weight=weight)
    return EdgePatch(
        num_new=0,
        source=np.concatenate([own, ends]),
        target=np.concatenate([ends, own]),
        weight=np.concatenate([weight, weight]),
    )


def patched_row(graph: Graph, patch: EdgePatch, node: int) -> tuple[NodeIds, NDArray[np.float64]]:
    """Return the neighbours of a node in the patched graph, sorted, and their weights.

    >>> from gpn_scale import build_graph
    >>> path = build_graph([0, 1], [1, 2], num_nodes=4)
    >>> patched_row(path, rewired(path, 1, add=[3], remove=[0]), 1)
    (array([2, 3]), array([1., 1.]))
    """
    neighbour, weight = np.empty(0, np.int64), np.empty(0)
    if node < graph.num_nodes:
        at = slice(graph.indptr[node], graph.indptr[node + 1])
        neighbour = graph.indices[at].astype(np.int64)
        given = np.ones(len(neighbour)) if graph.edge_weight is None else graph.edge_weight[at]
        weight = given.astype(np.float64)
    own = patch.source == node
    gained, lost = own & (patch.weight > 0), own & (patch.weight < 0)
    kept = ~np.isin(neighbour, patch.target[lost])
    neighbour = np.concatenate([neighbour[kept], patch.target[gained]])
    weight = np.concatenate([weight[kept], patch.weight[gained]])
    order = np.argsort(neighbour)
    return neighbour[order], weight[order]


def patched_degree(graph: Graph, patch: EdgePatch, nodes: NodeIds) -> NDArray[np.int64]:
    """Return the numbers of neighbours of nodes in the patched graph, (B,).

    >>> from gpn_scale import build_graph
    >>> path = build_graph([0, 1], [1, 2], num_nodes=4)
    >>> patched_degree(path, rewired(path, 1, add=[3], remove=[0]), np.arange(4)).tolist()
    [0, 2, 1, 1]
    """
    existing = nodes < graph.num_nodes
    degree = np.zeros(len(nodes), np.int64)
    inside = nodes[existing]
    degree[existing] = graph.indptr[inside + 1] - graph.indptr[inside]
    order = np.argsort(patch.source, kind="stable")
    change = np.append(0, np.cumsum(np.sign(patch.weight[order]).astype(np.int64)))
    first, last = (np.searchsorted(patch.source[order], nodes, side) for side in ("left", "right"))
    return np.asarray(degree + change[last] - change[first])


def _checked_ends(graph: Graph, node: int, ids: ArrayLike, what: str) -> NodeIds:
    ends = as_node_ids(ids, what).astype(np.int64)
    wrong = ends[(ends < 0) | (ends >= graph.num_nodes)]
    if len(wrong):
        raise GraphError(
            f"{what} holds {wrong[0]}, expected nodes in [0, {graph.num_nodes})", arguments=(what,)
        )
    if (ends == node).any():
        raise GraphError(
            f"{what} joins node {node} to itself, expected another node: a diffusion has "
            "self-loops of its own",
            arguments=(what,),
        )
    values, counts = np.unique(ends, return_counts=True)
    if (counts > 1).any():
        raise GraphError(
            f"{what} holds node {values[counts > 1][0]} more than once, expected each edge once",
            arguments=(what,),
        )
    return ends


def _checked_weights(graph: Graph, weights: ArrayLike | None, count: int) -> NDArray[np.float64]:
    """Return the weights of added edges as a graph would store them."""
    if weights is None:
        return np.ones(count)
    if graph.edge_weight is None:
        raise GraphError(
            f"add_weights has edge weights, but graph {graph.name!r} has none: leave them out",
            arguments=("add_weights",),
        )
    given = as_array(weights, "add_weights")
    if given.shape != (count,) or given.dtype.kind not in "iuf":
        raise GraphError(
            f"add_weights has shape {given.shape} and type {given.dtype}, expected one number for "
            f"each of the {count} added edges",
            arguments=("add_weights",),
        )
    with np.errstate(over="ignore"):
        stored = given.astype(np.float32)
    wrong = ~(np.isfinite(stored) & (stored > 0))
    if wrong.any():
        raise GraphError(
            f"add_weights holds {given[wrong][0]}, expected positive, finite numbers",
            arguments=("add_weights",),
        )
    return stored.astype(np.float64)


def _entries(graph: Graph, node: int, ends: NodeIds) -> tuple[NodeIds, NDArray[np.bool_]]:
    """Return where the edges from `node` to `ends` are stored, and whether they are."""
    first, last = graph.indptr[node], graph.indptr[node + 1]
    row = graph.indices[first:last]
    place = np.searchsorted(row, ends)
    exists = place < len(row)
    exists[exists] = row[place[exists]] == ends[exists]
    return place + first, exists
