"""Questions about nodes of the graph: lists, neighbours, contributors, similar nodes.

Everything here may take time and runs in a thread of its own.

Shapes: N nodes, B nodes of an answer, D latent dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import NodeIds
from gpn_scale.serve.answers import Answer, briefs, degree, finite, with_fields
from gpn_scale.serve.node_table import SUBSETS
from gpn_scale.serve.served_model import ServedModel

SORTABLE = ("trust", "p_known", "probability", "degree", "id")
"""Columns that nodes can be ordered by."""
_MOST_NEIGHBOURS = 2_000
"""Number of neighbours of one node that a neighbourhood looks at, the heaviest first."""
_DISTANCE_ROWS = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFilter:
    """Which nodes to list, and in which order."""

    search: str | None = None
    """Text that ids start with or contain; None for all."""
    predicted_class: str | None = None
    reason: str | None = None
    """Kind of the reason."""
    split: str | None = None
    sort: str | None = None
    """One of `SORTABLE`; None for the order of the search, or of trust without one."""
    descending: bool = False


def listed_nodes(model: ServedModel, wanted: NodeFilter, offset: int, limit: int) -> Answer:
    """Return a page of the nodes that a filter lets through."""
    nodes = _candidates(model, wanted)
    mask = _mask(model, wanted)
    if mask is not None:
        nodes = nodes[mask[nodes]]
    page = nodes[offset : offset + limit]
    return {"total": len(nodes), "offset": offset, "nodes": briefs(model, page)}


def _candidates(model: ServedModel, wanted: NodeFilter) -> NDArray[np.integer]:
    """Return the nodes that a search finds, in the wanted order."""
    column = _column(model, wanted.sort or "trust")
    if wanted.search:
        nodes = model.ids.matching(wanted.search)
        if wanted.sort is not None:
            place = np.empty(model.graph.num_nodes, np.int64)
            place[model.ordered(column)] = np.arange(model.graph.num_nodes)
            nodes = nodes[np.argsort(place[nodes])]
    else:
        nodes = model.ordered(column)
    backwards = wanted.descending != (column == "aleatoric")
    return nodes[::-1] if backwards and (wanted.sort or not wanted.search) else nodes


def _column(model: ServedModel, sort: str) -> str:
    """Return the column of the table behind a name; -probability is called aleatoric there."""
    if sort == "probability":
        return "aleatoric"
    # A model without p-values orders by trust, which is then the probability.
    return "trust" if sort == "p_known" and not model.table.has_p_values else sort


def _mask(model: ServedModel, wanted: NodeFilter) -> NDArray[np.bool_] | None:
    """Return which nodes a filter lets through, (N,); None if it lets all through."""
    masks = []
    if wanted.predicted_class is not None:
        known = wanted.predicted_class in model.classes
        label = model.classes.index(wanted.predicted_class) if known else -1
        masks.append(model.table.column("predicted_class") == label)
    if wanted.reason is not None:
        codes = [code for code, kind in enumerate(model.kinds) if kind == wanted.reason]
        masks.append(
            np.isin(model.table.column("reason"), codes)
            if model.table.reasons
            else np.zeros(model.graph.num_nodes, bool)
        )
    if wanted.split is not None:
        code = SUBSETS.index(wanted.split) if wanted.split in SUBSETS else -1
        masks.append(model.table.column("split") == code)
    return np.logical_and.reduce(masks) if masks else None


def neighbours_of(model: ServedModel, node: int, offset: int, limit: int) -> Answer:
    """Return a page of a node's neighbours, in the order of the graph."""
    graph = model.graph
    start, stop = int(graph.indptr[node]), int(graph.indptr[node + 1])
    entries = slice(start + offset, min(start + offset + limit, stop))
    answers = briefs(model, graph.indices[entries])
    weights = _weights(model, entries)
    return {
        "id": model.ids.text(node),
        "degree": stop - start,
        "neighbours": with_fields(answers, {"weight": lambda i: float(weights[i])}),
    }


def _weights(model: ServedModel, entries: slice) -> NDArray[np.floating]:
    weight = model.graph.edge_weight
    return np.ones(entries.stop - entries.start) if weight is None else weight[entries]


def neighbourhood_of(model: ServedModel, node: int, hops: int, limit: int) -> Answer:
    """Return the nodes within some hops of a node, the nearest and heaviest first, and edges."""
    chosen, hop, truncated = _nearest_nodes(model, node, hops, limit)
    edges = _edges_among(model, chosen)
    return {
        "id": model.ids.text(node),
        "truncated": truncated,
        "nodes": with_fields(briefs(model, chosen), {"hop": lambda i: hop[i]}),
        "edges": edges,
    }


def _nearest_nodes(
    model: ServedModel, node: int, hops: int, limit: int
) -> tuple[list[int], list[int], bool]:
    """Return up to `limit` nodes around a node, their hops, and whether others were left out."""
    chosen, hop, truncated = {node: 1.0}, {node: 0}, False
    frontier = [node]
    for distance in range(1, hops + 1):
        reached: dict[int, float] = {}
        for near in frontier:
            ids, weights, cut = _heaviest(model, near)
            truncated |= cut
            share = weights / max(float(weights.sum()), 1e-30) * chosen[near]
            for other, strength in zip(ids.tolist(), share.tolist(), strict=True):
                if other not in chosen:
                    reached[other] = reached.get(other, 0.0) + strength
        strongest = sorted(reached, key=lambda other: (-reached[other], other))
        frontier = strongest[: limit - len(chosen)]
        truncated |= len(frontier) < len(strongest)
        chosen |= {other: reached[other] for other in frontier}
        hop |= dict.fromkeys(frontier, distance)
    return list(chosen), list(hop.values()), truncated


def _heaviest(model: ServedModel, node: int) -> tuple[NodeIds, NDArray[np.float64], bool]:
    """Return a node's neighbours and weights; of very many, the heaviest ones."""
    graph = model.graph
    entries = slice(int(graph.indptr[node]), int(graph.indptr[node + 1]))
    ids = np.asarray(graph.indices[entries], np.int64)
    weights = np.asarray(_weights(model, entries), np.float64)
    if len(ids) <= _MOST_NEIGHBOURS:
        return ids, weights, False
    top = np.argsort(-weights, kind="stable")[:_MOST_NEIGHBOURS]
    return ids[top], weights[top], True


def _edges_among(model: ServedModel, nodes: Sequence[int]) -> list[list[float]]:
    """Return the edges among nodes as [i, j, weight], with places in `nodes`.

    An undirected edge is listed once, with i < j.
    """
    graph, place = model.graph, {node: i for i, node in enumerate(nodes)}
    sorted_nodes = np.array(sorted(place), np.int64)
    edges: list[list[float]] = []
    for node, i in place.items():
        start, stop = int(graph.indptr[node]), int(graph.indptr[node + 1])
        row = graph.indices[start:stop]  # sorted, so that few nodes are looked up in a long row
        entries = np.searchsorted(row, sorted_nodes)
        inside = entries < len(row)
        inside[inside] = row[entries[inside]] == sorted_nodes[inside]
        for other, entry in zip(sorted_nodes[inside], entries[inside], strict=True):
            j = place[int(other)]
            if graph.directed or i < j:
                weight = _weights(model, slice(start + int(entry), start + int(entry) + 1))
                edges.append([i, j, float(weight[0])])
    return edges


def contributors_of(model: ServedModel, node: int, count: int) -> Answer:
    """Return the nodes that supply most of a node's evidence.

    Raises:
        GpnScaleError: the model has no shares of evidence, or the graph needs a store.
    """
    explanation = model.classifier.explain(
        model.graph, node, rows=model.store, count=count, evidence=model.evidence()
    )
    shares = explanation.contributors
    present = shares.node[0] >= 0
    nodes = shares.node[0][present]
    graph = model.graph
    row = graph.indices[int(graph.indptr[node]) : int(graph.indptr[node + 1])]
    adjacent = np.isin(nodes, row)
    fields: dict[str, Any] = {
        "share": lambda i: finite(float(shares.share[0][present][i])),
        "weight": lambda i: finite(float(shares.weight[0][present][i])),
        "leading_class": lambda i: model.classes[int(shares.leading_class[0][present][i])],
        "adjacent": lambda i: bool(adjacent[i]),
    }
    return {
        "id": model.ids.text(node),
        "source": explanation.source,
        "tail_share": finite(float(shares.tail_share[0])),
        "contributors": with_fields(briefs(model, nodes), fields),
    }


def similar_nodes(model: ServedModel, node: int, count: int) -> Answer:
    """Return the nodes nearest to a node in latent space."""
    own_D = np.asarray(model.latent[node], np.float64)
    best, distance = np.empty(0, np.int64), np.empty(0)
    for start in range(0, len(model.latent), _DISTANCE_ROWS):
        block = np.asarray(model.latent[start : start + _DISTANCE_ROWS])
        gap = np.sqrt(np.square(block - own_D).sum(1))
        gap[node - start : node - start + 1 if start <= node < start + len(block) else 0] = np.inf
        near = np.argpartition(gap, min(count, len(gap) - 1))[:count]
        best, distance = np.append(best, near + start), np.append(distance, gap[near])
        order = np.lexsort((best, distance))[:count]
        best, distance = best[order], distance[order]
    kept = np.isfinite(distance)
    best, distance = best[kept], distance[kept]
    nodes = with_fields(briefs(model, best), {"distance": lambda i: float(distance[i])})
    return {"id": model.ids.text(node), "nodes": nodes}
