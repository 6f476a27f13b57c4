"""The neighbours and the contributors of the nodes that a page lists.

Shapes: R listed nodes, M entries of lists.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.errors import StoreError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.inference.contributors import Contributors
from gpn_scale.inference.evidence import EvidenceSummary
from gpn_scale.inference.evidence_push import EvidencePush
from gpn_scale.inference.explanation import is_small_enough
from gpn_scale.page.node_rows import ContributorLists, IndexLists
from gpn_scale.ppr.store import PPRStore

MOST_NEIGHBOURS = 12
"""Number of neighbours that are listed for a node at most."""
CONTRIBUTORS = 6
"""Number of contributors that are listed for a node with exact shares at most."""
PUSHED_CONTRIBUTORS = 3
"""Number of contributors that are listed for any other node at most."""
FEWEST_EXPLAINED = 8
_ROW_WORK = 100_000_000
"""Nodes and edges that complete rows may pass, over all nodes: some seconds."""
_PUSH_WORK = 200_000_000
"""Edges that may be followed for the other nodes: some seconds."""
_TOLERANCES = (0.02, 0.01, 0.005, 0.002, 0.001)
"""Parts of a node's evidence below which paths are not followed; the smallest that fits is used."""
_PILOT_NODES = 100
_STORED_BLOCK = 1_000
"""Nodes that are explained by stored rows at a time."""
_BLOCK = 4_000_000
"""Entries of complete rows that are computed at a time."""
_NOT_SHOWN = "The sources of evidence are not shown"


class NameIndex:
    """Indices of nodes among names: the listed nodes first, then others as they are mentioned."""

    def __init__(self, graph: Graph, listed: NodeIds) -> None:
        self._graph = graph
        self._nodes = [listed]
        self._index_N = np.full(graph.num_nodes, -1, np.int64)
        self._index_N[listed] = np.arange(len(listed))

    @property
    def nodes(self) -> NodeIds:
        """Ids of all nodes that have an index, in this order."""
        return np.concatenate(self._nodes).astype(np.int64)

    def of(self, nodes: NodeIds) -> NDArray[np.int64]:
        """Return the indices of nodes; nodes without one get the next."""
        new, first = np.unique(nodes[self._index_N[nodes] < 0], return_index=True)
        new = new[np.argsort(first)]
        begin = sum(map(len, self._nodes))
        self._index_N[new] = np.arange(begin, begin + len(new))
        self._nodes.append(new)
        return np.asarray(self._index_N[nodes])

    def names(self) -> tuple[str, ...]:
        """Return the name of every node that has an index, in this order."""
        if self._graph.node_names is None:
            return tuple(map(str, self.nodes.tolist()))
        return tuple(map(str, self._graph.node_names[self.nodes].tolist()))


def neighbour_lists(graph: Graph, listed: NodeIds, index: NameIndex) -> IndexLists:
    """Return some neighbours of each listed node, in the order of the graph."""
    begin = graph.indptr[listed]
    count = np.minimum(graph.indptr[listed + 1] - begin, MOST_NEIGHBOURS)
    start = _starts(count)
    places = np.arange(start[-1]) + np.repeat(begin - start[:-1], count)
    return IndexLists(start=start, index=index.of(graph.indices[places].astype(np.int64)))


def contributor_lists(
    classifier: GPNClassifier,
    graph: Graph,
    listed: NodeIds,
    index: NameIndex,
    store: PPRStore | None,
    evidence: EvidenceSummary,
) -> ContributorLists:
    """Return the contributors of the listed nodes, or of as many as take some seconds.

    The strangest and some of the surest nodes get complete rows, the others what following their
    evidence finds. A graph that is too large for this gets what stored rows say.

    Args:
        classifier: The trained model.
        graph: The graph.
        listed: The listed nodes, the strangest first.
        index: Indices of names, to which the contributors are added.
        store: Stored rows, for graphs that are too large to compute them.
        evidence: Feature evidence of all nodes.
    """
    if classifier.predicts_with.of != "evidence":
        return _no_contributors(
            len(listed),
            f"{_NOT_SHOWN}: this model averages logarithms of evidence, so that contributions do "
            "not add up to the evidence of a node.",
        )
    task = _Task(classifier, graph, listed, store, evidence)
    try:
        parts, source = task.computed() if is_small_enough(graph) else task.stored()
    except StoreError as error:
        return _no_contributors(len(listed), f"{_NOT_SHOWN}: {error}.")
    return _joined(parts, graph, listed, index, source)


@dataclass(frozen=True, slots=True)
class _Explained:
    """The contributors of some of the listed nodes."""

    rows: NDArray[np.int64]
    """Positions of these nodes in the list."""
    contributors: Contributors
    is_bound: bool = False
    """Whether shares are lower bounds."""


@dataclass(frozen=True, slots=True)
class _Task:
    """Inputs from which contributors are computed."""

    classifier: GPNClassifier
    graph: Graph
    listed: NodeIds
    store: PPRStore | None
    evidence: EvidenceSummary

    def computed(self) -> tuple[list[_Explained], str]:
        """Return complete rows of some nodes, and followed evidence of the others."""
        size = self.graph.num_nodes + self.graph.num_edges
        exact = both_ends(len(self.listed), max(_ROW_WORK // max(size, 1), FEWEST_EXPLAINED))
        step = max(1, _BLOCK // max(self.graph.num_nodes, 1))
        parts = self._explained(exact, step, CONTRIBUTORS)
        others = np.setdiff1d(np.arange(len(self.listed)), exact)
        if not len(others):
            return parts, "Weights are those of the exact diffusion."
        push = EvidencePush(self.graph, self.classifier.predicts_with, self.evidence)
        tolerance, most = self._affordable(push, others)
        pushed = others[both_ends(len(others), most)]
        result = push.contributors(
            self.listed[pushed], count=PUSHED_CONTRIBUTORS, tolerance=tolerance
        )
        parts.append(_Explained(pushed, result.contributors, is_bound=True))
        source = (
            f"Weights and shares of the {len(exact) - len(exact) // 4:,} strangest and of the "
            f"{len(exact) // 4:,} surest nodes are exact. Those of other nodes are lower bounds: "
            f"paths were followed that carry at least {tolerance:.1%} of a node's evidence."
        )
        if len(pushed) < len(others):
            source += (
                f" {len(exact) + len(pushed):,} of the listed nodes have contributors, since more "
                "would take too long on a graph with so many edges. For others, use gpn-predict "
                "with --nodes and --explain."
            )
        return parts, source

    def stored(self) -> tuple[list[_Explained], str]:
        """Return what stored rows say of all listed nodes."""
        every = np.arange(len(self.listed))
        return self._explained(every, _STORED_BLOCK, PUSHED_CONTRIBUTORS), (
            "Weights are those of the stored rows; shares include the estimate of what the rows "
            "cut."
        )

    def _explained(self, rows: NDArray[np.int64], step: int, count: int) -> list[_Explained]:
        """Return what the model's own explanation says of some listed nodes, in blocks."""
        blocks = [rows[at : at + step] for at in range(0, len(rows), step)]
        return [
            _Explained(
                block,
                self.classifier.explain(
                    *(self.graph, self.listed[block]),
                    rows=self.store,
                    count=count,
                    evidence=self.evidence,
                ).contributors,
            )
            for block in blocks
        ]

    def _affordable(self, push: EvidencePush, others: NDArray[np.int64]) -> tuple[float, int]:
        """Return the smallest tolerance that takes some seconds, and for how many nodes.

        Tolerances are tried on a few nodes, from the largest on. If even this takes too long, fewer
        nodes are explained.
        """
        pilot = self.listed[others[:: max(len(others) // _PILOT_NODES, 1)]]
        affordable = None
        for tolerance in _TOLERANCES:
            work = push.contributors(pilot, count=1, tolerance=tolerance).work / len(pilot)
            most = max(int(_PUSH_WORK / max(work, 1.0)), FEWEST_EXPLAINED)
            if affordable is None or most >= len(others):
                affordable = tolerance, min(most, len(others))
            if most < len(others):
                break
        assert affordable is not None
        return affordable


def both_ends(total: int, most: int) -> NDArray[np.int64]:
    """Return all of `total` places, or of more than `most` the first and, a quarter, the last.

    >>> both_ends(10, 4)
    array([0, 1, 2, 9])
    """
    if total <= most:
        return np.arange(total)
    last = most // 4
    return np.concatenate([np.arange(most - last), np.arange(total - last, total)])


def _joined(
    parts: list[_Explained], graph: Graph, listed: NodeIds, index: NameIndex, source: str
) -> ContributorLists:
    """Return the contributors of all parts as lists; nodes that are in none have empty ones."""
    empty = np.empty(0, np.int64)
    rows, nodes, shares, weights = [empty], [empty], [np.empty(0)], [np.empty(0)]
    is_bound = np.zeros(len(listed), bool)
    for part in parts:
        there = part.contributors.node >= 0
        rows.append(np.repeat(part.rows, there.sum(1)))
        nodes.append(part.contributors.node[there])
        shares.append(part.contributors.share[there])
        weights.append(part.contributors.weight[there])
        is_bound[part.rows] = part.is_bound
    row_M, node_M = np.concatenate(rows), np.concatenate(nodes)
    order = np.argsort(row_M, kind="stable")
    row_M, node_M = row_M[order], node_M[order]
    count = np.bincount(row_M, minlength=len(listed))
    return ContributorLists(
        lists=IndexLists(start=_starts(count), index=index.of(node_M)),
        share=np.concatenate(shares)[order],
        weight=np.concatenate(weights)[order],
        adjacent=are_joined(graph, listed[row_M], node_M),
        is_bound=is_bound,
        source=source,
    )


def are_joined(graph: Graph, nodes_M: NodeIds, others_M: NodeIds) -> NDArray[np.bool_]:
    """Return whether an edge leads from each node to the other one of its pair, (M,)."""
    sources = np.unique(nodes_M)
    begin, degree = graph.indptr[sources], graph.out_degree[sources]
    start = _starts(degree)
    places = np.arange(start[-1]) + np.repeat(begin - start[:-1], degree)
    edges = np.repeat(sources, degree) * graph.num_nodes + graph.indices[places]
    return np.isin(nodes_M * graph.num_nodes + others_M, edges)


def _starts(count: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(count, dtype=np.int64)])


def _no_contributors(num_listed: int, reason: str) -> ContributorLists:
    return ContributorLists(
        lists=IndexLists(start=np.zeros(num_listed + 1, np.int64), index=np.empty(0, np.int64)),
        share=np.empty(0),
        weight=np.empty(0),
        adjacent=np.empty(0, bool),
        is_bound=np.zeros(num_listed, bool),
        source=reason,
    )
