"""The neighbours and the contributors of the nodes that a page lists.

Shapes: R listed nodes, M entries of lists.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.errors import StoreError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.inference.evidence import EvidenceSummary
from gpn_scale.inference.explanation import Explanation
from gpn_scale.page.node_rows import ContributorLists, IndexLists
from gpn_scale.ppr.store import PPRStore

MOST_NEIGHBOURS = 12
"""Number of neighbours that are listed for a node at most."""
CONTRIBUTORS = 6
"""Number of contributors that are listed for a node at most."""
FEWEST_EXPLAINED = 8
_WORK = 200_000_000
"""Nodes and edges that explanations may pass, over all explained nodes: some seconds."""
_BLOCK = 4_000_000
"""Entries of rows that are computed at a time."""
_SOURCES = {
    "exact": "Weights are those of the exact diffusion.",
    "stored": "Weights are those of the stored rows; shares include the estimate of what the rows "
    "cut.",
}
_NOT_SHOWN = "The sources of evidence are not shown"


class NameIndex:
    """Indices of nodes among names: the listed nodes first, then others as they are mentioned."""

    def __init__(self, graph: Graph, listed: NodeIds) -> None:
        self._graph = graph
        self._nodes = listed.tolist()
        self._index = {node: index for index, node in enumerate(self._nodes)}

    def of(self, nodes: Sequence[int]) -> list[int]:
        """Return the indices of nodes; nodes without one get the next."""
        for node in nodes:
            if node not in self._index:
                self._index[node] = len(self._nodes)
                self._nodes.append(node)
        return [self._index[node] for node in nodes]

    def names(self) -> tuple[str, ...]:
        """Return the name of every node that has an index, in this order."""
        return tuple(node_name(self._graph, node) for node in self._nodes)


def node_name(graph: Graph, node: int) -> str:
    """Return the name of a node in the user's data, or its id if nodes have no names."""
    return str(node) if graph.node_names is None else str(graph.node_names[node])


def neighbour_lists(graph: Graph, listed: NodeIds, index: NameIndex) -> IndexLists:
    """Return some neighbours of each listed node, in the order of the graph."""
    lists = []
    for node in listed.tolist():
        begin, end = int(graph.indptr[node]), int(graph.indptr[node + 1])
        neighbours = graph.indices[begin : min(end, begin + MOST_NEIGHBOURS)]
        lists.append(index.of(neighbours.tolist()))
    return _index_lists(lists)


def explained_count(graph: Graph, listed: int) -> int:
    """Return how many of the listed nodes are explained, such that it takes some seconds."""
    fits = _WORK // max(graph.num_nodes + graph.num_edges, 1)
    return min(listed, max(fits, FEWEST_EXPLAINED))


def contributor_lists(
    classifier: GPNClassifier,
    graph: Graph,
    listed: NodeIds,
    index: NameIndex,
    store: PPRStore | None,
    evidence: EvidenceSummary | None,
) -> ContributorLists:
    """Return the contributors of as many listed nodes as take some seconds.

    Of more nodes, the strangest three quarters and the surest quarter of that number are explained.

    Args:
        classifier: The trained model.
        graph: The graph.
        listed: The listed nodes, the strangest first.
        index: Indices of names, to which the contributors are added.
        store: Stored rows, for graphs that are too large to compute them.
        evidence: Feature evidence of all nodes; computed if it is not given.
    """
    if classifier.predicts_with.of != "evidence":
        return _no_contributors(
            len(listed),
            f"{_NOT_SHOWN}: this model averages logarithms of evidence, so that contributions do "
            "not add up to the evidence of a node.",
        )
    count = explained_count(graph, len(listed))
    surest = count // 4 if count < len(listed) else 0
    rows = np.concatenate([np.arange(count - surest), np.arange(len(listed) - surest, len(listed))])
    step = max(1, _BLOCK // max(graph.num_nodes, 1))
    try:
        parts = [
            classifier.explain(
                graph,
                listed[rows[at : at + step]],
                rows=store,
                count=CONTRIBUTORS,
                evidence=evidence,
            )
            for at in range(0, len(rows), step)
        ]
    except StoreError as error:
        return _no_contributors(len(listed), f"{_NOT_SHOWN}: {error}.")
    source = _SOURCES[parts[0].source] if parts else ""
    if count < len(listed):
        source += (
            f" Contributors were computed for {count:,} of the listed nodes: the "
            f"{count - surest:,} strangest and the {surest:,} surest. For others, use "
            "gpn-predict with --nodes and --explain."
        )
    return _joined(parts, rows, graph, listed, index, source)


def _joined(
    parts: Sequence[Explanation],
    rows: NDArray[np.int64],
    graph: Graph,
    listed: NodeIds,
    index: NameIndex,
    source: str,
) -> ContributorLists:
    """Return the explanations of the given rows as lists; all other rows have empty ones."""
    lists: list[list[int]] = [[] for _ in listed]
    # The lists stand in the order of rows, in which `rows` increases.
    share, weight, leading, adjacent = ([np.empty(0)] for _ in range(4))
    explained = iter(rows.tolist())
    for part in parts:
        each = part.contributors
        for place, node in enumerate(part.node.tolist()):
            there = each.node[place] >= 0
            contributors = each.node[place][there]
            lists[next(explained)] = index.of(contributors.tolist())
            share.append(each.share[place][there])
            weight.append(each.weight[place][there])
            leading.append(each.leading_class[place][there])
            neighbours = graph.indices[graph.indptr[node] : graph.indptr[node + 1]]
            adjacent.append(np.isin(contributors, neighbours).astype(np.float64))
    return ContributorLists(
        lists=_index_lists(lists),
        share=np.concatenate(share),
        weight=np.concatenate(weight),
        adjacent=np.concatenate(adjacent).astype(bool),
        leading_class=np.concatenate(leading).astype(np.int64),
        source=source,
    )


def _index_lists(lists: Sequence[Sequence[int]]) -> IndexLists:
    start = np.cumsum([0, *(len(each) for each in lists)], dtype=np.int64)
    index = np.array([entry for each in lists for entry in each], dtype=np.int64)
    return IndexLists(start=start, index=index)


def _no_contributors(num_listed: int, reason: str) -> ContributorLists:
    return ContributorLists(
        lists=_index_lists([[]] * num_listed),
        share=np.empty(0),
        weight=np.empty(0),
        adjacent=np.empty(0, bool),
        leading_class=np.empty(0, np.int64),
        source=reason,
    )
