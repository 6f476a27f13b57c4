"""Queries about nodes of the graph: lists, neighbours, contributors and similar nodes.

Everything here may be slow and runs in a separate thread.

Shapes: N nodes, B nodes of an answer, D latent dimensions.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.neighbourhoods import neighbourhood
from gpn_scale.inference.similar import similar_nodes
from gpn_scale.serve.answers import Answer, briefs, finite, with_fields
from gpn_scale.serve.node_table import SUBSETS
from gpn_scale.serve.served_model import ServedModel

SORTABLE = ("trust", "p_known", "probability", "degree", "id")
"""Columns by which nodes can be sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFilter:
    """Filter and order of listed nodes."""

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
    """Return a page of the nodes that pass a filter."""
    nodes = _candidates(model, wanted)
    mask = _mask(model, wanted)
    if mask is not None:
        nodes = nodes[mask[nodes]]
    page = nodes[offset : offset + limit]
    return {"total": len(nodes), "offset": offset, "nodes": briefs(model, page)}


def _candidates(model: ServedModel, wanted: NodeFilter) -> NDArray[np.integer]:
    """Return the nodes that a search finds, in the requested order."""
    column = _column(model, wanted.sort or "trust")
    nodes: NDArray[np.integer]
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
    """Return which nodes pass a filter, (N,); None if all pass."""
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
    first = min(start + offset, stop)
    entries = slice(first, min(first + limit, stop))
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
    """Return the nodes within some hops of a node, and the edges among them."""
    around = neighbourhood(model.graph, node, hops=hops, limit=limit)
    ends = zip(around.source.tolist(), around.target.tolist(), around.weight.tolist(), strict=True)
    return {
        "id": model.ids.text(node),
        "truncated": around.truncated,
        "nodes": with_fields(briefs(model, around.nodes), {"hop": lambda i: int(around.hop[i])}),
        "edges": [list(edge) for edge in ends],
    }


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


def similar_to(model: ServedModel, node: int, count: int) -> Answer:
    """Return the nodes nearest to a node in latent space."""
    similar = similar_nodes(model.latent, node, count)
    distance = {"distance": lambda i: float(similar.distance[i])}
    nodes = with_fields(briefs(model, similar.nodes), distance)
    return {"id": model.ids.text(node), "nodes": nodes}
