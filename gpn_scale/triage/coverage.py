"""Greedy coverage: a batch of nodes that together reach as much as possible of what is open.

A node v reaches u with the weight w(v, u) in [0, 1]. Of the weight o(u) that is open at u, choosing
v covers the fraction w(v, u), and the rest 1 - w(v, u) stays open. The gain of v is the sum over u
of w(v, u) o(u). What a batch covers is a monotone submodular function of the batch, so the greedy
choice covers at least 1 - 1/e of what the best batch of the same size does (Nemhauser et al.,
1978).

Gains only fall as nodes are chosen, so an old gain is an upper bound (Minoux, 1978): a node is
evaluated again only if its bound is above the best gain so far. This is rare, so that a million
candidates take seconds.

Shapes: N nodes, K candidates, E entries of all columns, B chosen nodes.
"""

import heapq
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import NodeIds

BOUND_SLACK = 1e-9
"""Relative round-off by which a bound may be too small."""

Entries = tuple[NDArray[np.integer[Any]], NDArray[np.floating[Any]]]
"""Nodes that a candidate reaches, and the weights in [0, 1] with which it does."""


class AbstractColumns(ABC):
    """The columns of the diffusion, which hold what each candidate reaches.

    >>> columns = StoredColumns(np.array([0, 1]), np.array([1]), np.array([0.5]))
    >>> isinstance(columns, AbstractColumns)
    True
    """

    @abstractmethod
    def bounds(self, open_N: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return upper bounds on the gains of all candidates, (K,), up to `BOUND_SLACK`.

        Args:
            open_N: What is open at each node.
        """

    @abstractmethod
    def column(self, position: int) -> Entries:
        """Return what the candidate at `position` of the list of candidates reaches."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredColumns(AbstractColumns):
    """Columns in compressed form; column k is `ids[column_ptr[k]:column_ptr[k + 1]]`.

    >>> columns = StoredColumns(np.array([0, 2, 3]), np.array([0, 1, 1]), np.array([0.5, 0.5, 1.0]))
    >>> columns.bounds(np.array([2.0, 4.0])).round(6)
    array([3., 4.])
    """

    column_ptr: NDArray[np.int64]
    """Offsets, (K + 1,)."""
    ids: NDArray[np.integer[Any]]
    """Reached nodes, (E,)."""
    weights: NDArray[np.floating[Any]]
    """Weights in [0, 1], (E,)."""

    def bounds(self, open_N: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the gains of all candidates, (K,)."""
        reached_E = self.weights * open_N[self.ids]
        totals_E = np.concatenate([np.zeros(1), np.cumsum(reached_E)])
        # Differences of running totals lose digits; the slack is relative to the largest of them.
        gains_K = totals_E[self.column_ptr[1:]] - totals_E[self.column_ptr[:-1]]
        return np.asarray(gains_K + BOUND_SLACK * totals_E[-1] * (gains_K > 0.0))

    def column(self, position: int) -> Entries:
        """Return what the candidate at `position` reaches."""
        entries = slice(self.column_ptr[position], self.column_ptr[position + 1])
        return self.ids[entries], self.weights[entries]


@dataclass(frozen=True, slots=True, eq=False)
class ScaledColumns(AbstractColumns):
    """Columns scaled by a factor per candidate.

    >>> columns = StoredColumns(np.array([0, 1, 2]), np.array([0, 0]), np.array([1.0, 1.0]))
    >>> ScaledColumns(columns, np.array([0.5, 0.25])).bounds(np.array([4.0])).round(6)
    array([2., 1.])
    """

    columns: AbstractColumns
    factor: NDArray[np.float64]
    """Factors in [0, 1], (K,)."""

    def bounds(self, open_N: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return upper bounds on the gains of all candidates, (K,)."""
        return self.factor * self.columns.bounds(open_N)

    def column(self, position: int) -> Entries:
        """Return what the candidate at `position` reaches."""
        ids, weights = self.columns.column(position)
        return ids, weights * self.factor[position]


@dataclass(frozen=True, slots=True, eq=False)
class Cover:
    """The chosen nodes in the order of choice, and their gains.

    >>> Cover(np.array([7, 2]), np.array([3.0, 1.0])).gain.sum()
    np.float64(4.0)
    """

    node: NodeIds
    """Node ids, (B,)."""
    gain: NDArray[np.float64]
    """What each node covered that the earlier ones had left open, (B,); decreasing."""


def greedy_cover(
    candidates: NodeIds, columns: AbstractColumns, open_N: NDArray[np.float64], count: int
) -> Cover:
    """Return the greedy choice of `count` candidates; of equal gains, the smaller id is first.

    A batch is the beginning of every larger batch. Candidates without any gain are chosen last, by
    increasing id.

    >>> columns = StoredColumns(
    ...     np.array([0, 2, 4, 5]), np.array([0, 1, 0, 1, 2]), np.array([1.0, 1.0, 1.0, 0.5, 0.5])
    ... )
    >>> greedy_cover(np.array([3, 5, 8]), columns, np.array([1.0, 1.0, 1.0]), count=2).node
    array([3, 8])

    Args:
        candidates: Node ids in increasing order, (K,).
        columns: What each candidate reaches.
        open_N: What is open at each node, at least 0, (N,).
        count: Number B of nodes to choose, at most K.
    """
    assert 0 <= count <= len(candidates)
    open_N = np.array(open_N, np.float64)
    bound_K = columns.bounds(open_N) * (1.0 + BOUND_SLACK)
    order = np.argsort(-bound_K, kind="stable")
    heap: list[tuple[float, int, int]] = []
    """(-gain, position, number of nodes that were chosen when the gain was computed)."""
    following = 0
    positions, gains = np.empty(count, np.int64), np.empty(count)
    for chosen in range(count):
        while True:
            # A bound that equals the best gain may belong to a smaller id, so evaluate it as well.
            while following < len(order) and (not heap or bound_K[order[following]] >= -heap[0][0]):
                position = int(order[following])
                heapq.heappush(heap, (-_gain(columns, position, open_N), position, chosen))
                following += 1
            negative, position, computed = heap[0]
            if computed == chosen:
                break
            gain = _gain(columns, position, open_N)
            heapq.heapreplace(heap, (-gain, position, chosen))
        heapq.heappop(heap)
        positions[chosen], gains[chosen] = position, -negative
        ids, weights = columns.column(position)
        open_N[ids] *= 1.0 - weights
    return Cover(node=candidates[positions], gain=gains)


def _gain(columns: AbstractColumns, position: int, open_N: NDArray[np.float64]) -> float:
    ids, weights = columns.column(position)
    return float((weights * open_N[ids]).sum())
