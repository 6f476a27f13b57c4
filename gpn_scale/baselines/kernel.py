"""GKDE: a Dirichlet from the distances to all labelled nodes (Zhao et al., 2020).

Distances come from searches of 64 sources at a time, a bit each (Then et al., 2014), in blocks of
words, so that memory grows with nodes x classes and never with nodes x labelled nodes.

Shapes: N nodes, C classes, W words of 64 sources.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from gpn_scale.baselines.model import AbstractBaseline, counted_answer
from gpn_scale.baselines.view import View
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.errors import ConfigError
from gpn_scale.evaluation.scored_prediction import ScoredPrediction

_BLOCK_BYTES = 1 << 28
"""Of the searches that are under way together: their frontier."""
_BLOCK_WORDS = 16
"""Searches together are at most so many words: more do not fit into the cache."""
_BLOCK_EDGES = 1 << 15
"""Edges whose ends are gathered at a time, into scratch that stays in the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelOptions:
    """Of `KernelDirichlet`."""

    sigma: float = 1.0
    """Width of the Gaussian of distances."""
    cutoff: int = 7
    """Labelled nodes farther away than so many hops do not count.

    With sigma = 1, g is below 1e-14 8 hops away; a wider Gaussian needs more hops.
    """

    def __post_init__(self) -> None:
        if not self.sigma > 0.0:
            raise ConfigError(f"model.sigma is {self.sigma}, expected above 0")
        if self.cutoff < 0:
            raise ConfigError(f"model.cutoff is {self.cutoff}, expected at least 0 hops")


class KernelDirichlet(AbstractBaseline):
    """alpha_c = 1 + the sum of g(distance) over class c's training nodes; nothing is learned."""

    name = "GKDE"
    revision = 2
    Options = KernelOptions

    @property
    def reach(self) -> int:
        """Features are not used."""
        return 0

    def fit_view(self, view: View, store: Path | None) -> None:
        """Remembers the training nodes."""
        nodes, labels = view.training
        self._nodes, self._labels = nodes.cpu().numpy(), labels.cpu().numpy()
        self._num_classes = view.graph.num_classes

    def predict_view(self, view: View) -> ScoredPrediction:
        """Of distances over the view's edges."""
        evidence_NC = kernel_evidence(
            view.graph,
            self._nodes,
            self._labels,
            self._num_classes,
            sigma=self.options.sigma,
            cutoff=self.options.cutoff,
        )
        labels = torch.from_numpy(self._labels)
        return counted_answer(self, torch.from_numpy(evidence_NC), labels)


def kernel_evidence(
    graph: Graph,
    nodes: NodeIds,
    labels: NDArray[np.int64],
    num_classes: int,
    *,
    sigma: float,
    cutoff: int,
) -> NDArray[np.float64]:
    """e_vc = sum over labelled u of class c of g(d_vu), (N, C); g(d) = N(d; 0, sigma^2).

    Distances count hops along edges; those of a directed graph lead from v to u.
    """
    evidence_CN = np.zeros((num_classes, graph.num_nodes))
    words, word_class = _words(nodes, labels, num_classes)
    step = min(max(1, _BLOCK_BYTES // (8 * max(graph.num_nodes, 1))), _BLOCK_WORDS)
    for start in range(0, len(words), step):
        for distance, count_NW in _counts(graph, words[start : start + step], cutoff):
            share = math.exp(-(distance**2) / (2.0 * sigma**2)) / (sigma * math.sqrt(2.0 * math.pi))
            for column, label in enumerate(word_class[start : start + step]):
                evidence_CN[label] += share * count_NW[:, column]
    return evidence_CN.T


def _words(
    nodes: NodeIds, labels: NDArray[np.int64], num_classes: int
) -> tuple[list[NodeIds], list[int]]:
    """Labelled nodes in groups of at most 64 of one class, and these classes."""
    words, word_class = [], []
    for label in range(num_classes):
        own = nodes[labels == label]
        for start in range(0, len(own), 64):
            words.append(own[start : start + 64])
            word_class.append(label)
    return words, word_class


def _counts(
    graph: Graph, words: list[NodeIds], cutoff: int
) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """For every distance, of how many of a word's sources a node is so far away, (N, W)."""
    frontier_NW = np.zeros((graph.num_nodes, len(words)), np.uint64)
    for column, sources in enumerate(words):
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
    """The searches that are at a neighbour of each node, (N, W)."""
    next_NW = np.zeros_like(frontier_NW)
    filled = np.flatnonzero(graph.out_degree > 0)
    begin, end = graph.indptr[filled], graph.indptr[filled + 1]
    scratch = np.empty((_BLOCK_EDGES, frontier_NW.shape[1]), np.uint64)
    start = 0
    while start < len(filled):
        # As many nodes as have room, or one that has not: it gets an array of its own.
        stop = int(np.searchsorted(end, begin[start] + _BLOCK_EDGES, "right"))
        stop = max(stop, start + 1)
        neighbours = graph.indices[begin[start] : end[stop - 1]]
        room = scratch[: len(neighbours)] if len(neighbours) <= _BLOCK_EDGES else None
        # mode="clip" since the checked one gathers into a second array; all indices are valid.
        gathered = np.take(frontier_NW, neighbours, axis=0, out=room, mode="clip")
        offsets = begin[start:stop] - begin[start]
        next_NW[filled[start:stop]] = np.bitwise_or.reduceat(gathered, offsets, axis=0)
        start = stop
    return next_NW
