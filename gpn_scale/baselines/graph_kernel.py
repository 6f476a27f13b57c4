"""GKDE, graph kernel density: Dirichlets from distances to labelled nodes (Zhao et al., 2020).

Distances come from breadth-first searches of 64 sources at a time, one bit each (Then et al.,
2014), in blocks of 64-bit words, so that memory grows with nodes x classes and never with nodes x
labelled nodes.

Shapes: N nodes, C classes, W words of 64 sources.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from gpn_scale.baselines.baseline import AbstractBaseline
from gpn_scale.baselines.graph_view import GraphView
from gpn_scale.baselines.options import require_in_range
from gpn_scale.baselines.predictions import label_evidence_prediction
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.evaluation.scored_prediction import ScoredPrediction

_BLOCK_BYTES = 1 << 28
"""Limit on the memory of the frontier of searches that run together."""
_BLOCK_WORDS = 16
"""Limit on the words of searches that run together: more do not fit into the cache."""
_BLOCK_EDGES = 1 << 15
"""Edges that are gathered at a time, into a buffer that stays in the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelOptions:
    """Options of `KernelDirichlet`."""

    sigma: float = 1.0
    """Standard deviation of the Gaussian g of distances, in hops."""
    cutoff: int = 7
    """Largest distance, in hops, at which labelled nodes count.

    With sigma = 1, g is below 1e-14 at a distance of 8 hops; a wider Gaussian needs more hops.
    """

    def __post_init__(self) -> None:
        check_kernel(self.sigma, self.cutoff)


def check_kernel(sigma: float, cutoff: int) -> None:
    """Refuse parameters of the kernel that are out of range.

    Raises:
        ConfigError: `sigma` is not positive, or `cutoff` is negative.
    """
    require_in_range("model.sigma", sigma, allowed=sigma > 0.0, expected="above 0")
    require_in_range("model.cutoff", cutoff, allowed=cutoff >= 0, expected="at least 0 hops")


class KernelDirichlet(AbstractBaseline):
    """Dirichlets with alpha_c = 1 + sum of g(distance) over class c's training nodes.

    Nothing is learned.
    """

    name = "GKDE"
    revision = 2
    Options = KernelOptions

    @property
    def reach(self) -> int:
        """Number of hops over which features act: 0, since they are not used."""
        return 0

    def fit_view(self, view: GraphView, store: Path | None) -> None:
        """Store the training nodes and their labels."""
        nodes, labels = view.training
        self._nodes, self._labels = nodes.cpu().numpy(), labels.cpu().numpy()
        self._num_classes = view.graph.num_classes

    def predict_view(self, view: GraphView) -> ScoredPrediction:
        """Return the prediction from distances along the view's edges."""
        evidence_NC = kernel_evidence(
            view.graph,
            self._nodes,
            self._labels,
            self._num_classes,
            sigma=self.options.sigma,
            cutoff=self.options.cutoff,
        )
        labels = torch.from_numpy(self._labels)
        return label_evidence_prediction(self.name, torch.from_numpy(evidence_NC), labels)


def kernel_evidence(
    graph: Graph,
    nodes: NodeIds,
    labels: NDArray[np.int64],
    num_classes: int,
    *,
    sigma: float,
    cutoff: int,
) -> NDArray[np.float64]:
    """Return e_vc = sum over labelled u of class c of g(d_vu), g(d) = N(d; 0, sigma^2); (N, C).

    Distances count hops along edges, which lead from v to u in a directed graph.

    Args:
        graph: The graph.
        nodes: Labelled nodes.
        labels: Their labels.
        num_classes: Number of classes C.
        sigma: Standard deviation of g, in hops.
        cutoff: Largest distance that counts, in hops.
    """
    evidence_CN = np.zeros((num_classes, graph.num_nodes))
    sources, source_class = _grouped_by_class(nodes, labels, num_classes)
    step = min(max(1, _BLOCK_BYTES // (8 * max(graph.num_nodes, 1))), _BLOCK_WORDS)
    for start in range(0, len(sources), step):
        for distance, count_NW in _counts(graph, sources[start : start + step], cutoff):
            exponent = -(distance**2) / (2.0 * sigma**2)
            density = math.exp(exponent) / (sigma * math.sqrt(2.0 * math.pi))
            for column, label in enumerate(source_class[start : start + step]):
                evidence_CN[label] += density * count_NW[:, column]
    return evidence_CN.T


def _grouped_by_class(
    nodes: NodeIds, labels: NDArray[np.int64], num_classes: int
) -> tuple[list[NodeIds], list[int]]:
    """Return labelled nodes in groups of at most 64 of one class, and the groups' classes."""
    groups, group_class = [], []
    for label in range(num_classes):
        own = nodes[labels == label]
        for start in range(0, len(own), 64):
            groups.append(own[start : start + 64])
            group_class.append(label)
    return groups, group_class


def _counts(
    graph: Graph, groups: list[NodeIds], cutoff: int
) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Yield every distance, and how many sources of each group are that far from a node, (N, W)."""
    frontier_NW = np.zeros((graph.num_nodes, len(groups)), np.uint64)
    for column, sources in enumerate(groups):
        frontier_NW[sources, column] = np.uint64(1) << np.arange(len(sources), dtype=np.uint64)
    reached_NW = frontier_NW.copy()
    yield 0, np.bitwise_count(frontier_NW)
    for distance in range(1, cutoff + 1):
        frontier_NW = _step(graph, frontier_NW)
        frontier_NW &= ~reached_NW
        if not frontier_NW.any():
            return
        reached_NW |= frontier_NW
        yield distance, np.bitwise_count(frontier_NW)


def _step(graph: Graph, frontier_NW: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the searches that are at a neighbour of each node, as bits; (N, W)."""
    next_NW = np.zeros_like(frontier_NW)
    filled = np.flatnonzero(graph.out_degree > 0)
    begin, end = graph.indptr[filled], graph.indptr[filled + 1]
    buffer = np.empty((_BLOCK_EDGES, frontier_NW.shape[1]), np.uint64)
    start = 0
    while start < len(filled):
        # As many nodes as fit into the buffer, or one node with more edges, in a new array.
        stop = int(np.searchsorted(end, begin[start] + _BLOCK_EDGES, "right"))
        stop = max(stop, start + 1)
        neighbours = graph.indices[begin[start] : end[stop - 1]]
        target = buffer[: len(neighbours)] if len(neighbours) <= _BLOCK_EDGES else None
        # mode="clip" avoids the second array of the checked mode; all indices are valid.
        gathered = np.take(frontier_NW, neighbours, axis=0, out=target, mode="clip")
        offsets = begin[start:stop] - begin[start]
        next_NW[filled[start:stop]] = np.bitwise_or.reduceat(gathered, offsets, axis=0)
        start = stop
    return next_NW
