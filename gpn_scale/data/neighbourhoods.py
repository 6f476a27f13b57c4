"""The neighbourhood of one node as a small graph for display.

Shapes: L chosen nodes, E edges among them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.errors import ConfigError, GraphError

MOST_EDGES = 1 << 18
"""Number of edges of a node that are read: the first ones by the id of the other end."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Neighbourhood:
    """Nodes around a node, and the edges among them.

    >>> from gpn_scale import build_graph
    >>> star = build_graph([0, 0, 0, 2], [1, 2, 3, 3])
    >>> around = neighbourhood(star, 1, hops=2, limit=3)
    >>> around.nodes.tolist(), around.hop.tolist(), around.truncated
    ([1, 0, 2], [0, 1, 2], True)
    >>> around.source.tolist(), around.target.tolist(), around.weight.tolist()
    ([0, 1], [1, 2], [1.0, 1.0])
    """

    nodes: NodeIds
    """Positions of the nodes in the graph, the node itself first, (L,)."""
    hop: NDArray[np.int64]
    """Number of edges between the node and each of them, (L,)."""
    source: NDArray[np.int64]
    """Places in `nodes` where edges start, (E,)."""
    target: NDArray[np.int64]
    """Places in `nodes` where edges end, (E,); above `source` if the graph is undirected."""
    weight: NDArray[np.float64]
    """Weights of the edges, (E,)."""
    truncated: bool
    """Whether there are more nodes within the hops."""


def neighbourhood(graph: Graph, node: int, *, hops: int, limit: int) -> Neighbourhood:
    """Return up to `limit` nodes around a node, with the edges among them.

    Nodes of a nearer hop come first; within a hop, those with the strongest edge from the hop
    before, and then those with smaller ids. Directed edges are followed as they point. The number
    of edges that are read is bounded: at most `MOST_EDGES` of each chosen node, and without weights
    as many as `limit`.

    >>> from gpn_scale import build_graph
    >>> graph = build_graph([0, 0], [1, 2], edge_weight=[1.0, 5.0])
    >>> neighbourhood(graph, 0, hops=1, limit=2).nodes.tolist()
    [0, 2]

    Args:
        graph: The graph; may be memory-mapped.
        node: Position of the node.
        hops: Largest number of edges between the node and a chosen one.
        limit: Largest number of nodes, with the node itself.

    Raises:
        GraphError: the node does not exist.
        ConfigError: `hops` is below 0 or `limit` is below 1.
    """
    if not 0 <= node < graph.num_nodes:
        raise GraphError(
            f"node is {node}, expected a position in [0, {graph.num_nodes})", arguments=("node",)
        )
    if hops < 0 or limit < 1:
        raise ConfigError(
            f"hops is {hops} and limit is {limit}, expected at least 0 and at least 1",
            arguments=("hops", "limit"),
        )
    layers, truncated = [np.array([node])], False
    for _ in range(hops):
        chosen = np.concatenate(layers)
        layer, cut = _next_layer(graph, layers[-1], chosen, limit - len(chosen))
        truncated |= cut
        layers.append(layer)
        if not len(layer):
            break
    nodes = np.concatenate(layers)
    hop = np.repeat(np.arange(len(layers)), [len(layer) for layer in layers])
    source, target, weight = _edges_among(graph, nodes)
    return Neighbourhood(
        nodes=nodes, hop=hop, source=source, target=target, weight=weight, truncated=truncated
    )


def _next_layer(graph: Graph, layer: NodeIds, chosen: NodeIds, room: int) -> tuple[NodeIds, bool]:
    """Return the strongest neighbours of a layer that are not chosen, and whether some are left."""
    # Of each node, one more than can be needed, so that it is seen whether some are left.
    wanted = len(chosen) + room + 1
    parts, cut = [_strongest(graph, node, wanted) for node in layer.tolist()], False
    ends = np.concatenate([np.empty(0, np.int64), *(ends for ends, _, _ in parts)])
    weights = np.concatenate([np.empty(0), *(weights for _, weights, _ in parts)])
    outside = ~np.isin(ends, chosen)
    ends, weights = ends[outside], weights[outside]
    order = np.lexsort((ends, -weights))
    _, first = np.unique(ends[order], return_index=True)
    candidates = ends[order][np.sort(first)]
    cut = len(candidates) > room or any(left for _, _, left in parts)
    return candidates[:room], bool(cut)


def _strongest(graph: Graph, node: int, count: int) -> tuple[NodeIds, NDArray[np.float64], bool]:
    """Return up to `count` neighbours with the strongest edges, and whether some were not read."""
    start, stop = int(graph.indptr[node]), int(graph.indptr[node + 1])
    if graph.edge_weight is None:
        read = slice(start, min(stop, start + count))
        ends = graph.indices[read].astype(np.int64)
        return ends, np.ones(len(ends)), False
    read = slice(start, min(stop, start + MOST_EDGES))
    weights = np.asarray(graph.edge_weight[read], np.float64)
    ends = graph.indices[read].astype(np.int64)
    if count < len(ends):
        limit = np.partition(weights, len(weights) - count)[len(weights) - count]
        strong = np.flatnonzero(weights >= limit)
        order = np.lexsort((ends[strong], -weights[strong]))[:count]
        ends, weights = ends[strong[order]], weights[strong[order]]
    return ends, weights, stop - start > MOST_EDGES


def _edges_among(
    graph: Graph, nodes: NodeIds
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the edges among nodes by their places; an undirected edge is listed once."""
    order = np.argsort(nodes)
    ordered = nodes[order]
    sources, targets, weights = [], [], []
    for place, node in enumerate(nodes.tolist()):
        start, stop = int(graph.indptr[node]), int(graph.indptr[node + 1])
        row = graph.indices[start:stop]
        at = np.searchsorted(row, ordered)  # reads few entries, however long the row is
        inside = np.flatnonzero(at < len(row))
        inside = inside[row[at[inside]] == ordered[inside]]
        target = order[inside]
        kept = np.ones(len(target), bool) if graph.directed else target > place
        kept_at = start + at[inside][kept]
        given = np.ones(len(kept_at)) if graph.edge_weight is None else graph.edge_weight[kept_at]
        sources.append(np.full(len(kept_at), place))
        targets.append(target[kept])
        weights.append(given.astype(np.float64))
    return np.concatenate(sources), np.concatenate(targets), np.concatenate(weights)
