"""Batches of nodes with sampled neighbours, for graph convolutions (Hamilton et al., 2017).

At most `limit` neighbours of every node are drawn, once per batch, and represent all of them, so
that the sums of a layer are right on average. All layers of a batch share the draw.

Shapes: N nodes, B nodes of a hop, U nodes of a batch, E drawn entries.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from gpn_scale.csr import ranges
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.diffusion.transition import transition_factors
from gpn_scale.nn.sparse import SparseMatrix


@dataclass(frozen=True, slots=True, eq=False)
class NeighbourBatch:
    """Some roots, and the sampled nodes that their logits are computed from."""

    nodes: NodeIds
    """Ids of the roots, then of the nodes drawn in each hop, every node once; (U,)."""
    within: tuple[int, ...]
    """Number of these nodes within 0, 1, ... hops."""
    indptr: NDArray[np.int64]
    """Row offsets of all nodes but those of the last hop."""
    indices: NDArray[np.int64]
    """Positions in `nodes` of the drawn entries, (E,)."""
    weights: NDArray[np.float64]
    """Weights of the drawn entries in the sums of their rows, (E,)."""

    def matrices(self, device: torch.device, dtype: torch.dtype) -> Iterator[SparseMatrix]:
        """Yield each layer's sum over neighbours, first layer first; the last ends at the roots."""
        for hops in reversed(range(len(self.within) - 1)):
            rows = self.within[hops]
            entries = self.indptr[rows]
            yield SparseMatrix(
                torch.from_numpy(self.indptr[: rows + 1]).to(device),
                torch.from_numpy(self.indices[:entries]).to(device),
                torch.from_numpy(self.weights[:entries]).to(device, dtype),
                self.within[hops + 1],
            )


class NeighbourSampler:
    """Sampler of neighbours around batches of nodes; not thread-safe.

    Its memory grows with the number of nodes. The graph's edges are read in place.

    Args:
        graph: Graph whose `sym` matrix is sampled.
        hops: Number of layers of the network.
        limit: Neighbours drawn per node; None for all.
    """

    def __init__(self, graph: Graph, hops: int, limit: int | None) -> None:
        self._graph, self._hops, self._limit = graph, hops, limit
        self._factors = transition_factors(graph, "sym", self_loops=True)
        self._position_N = np.full(graph.num_nodes, -1, np.int64)

    def batch(self, roots: NodeIds, rng: np.random.Generator) -> NeighbourBatch:
        """Return a batch of distinct roots with sampled neighbours."""
        parts, within, counts, positions, weights = [roots], [len(roots)], [], [], []
        self._position_N[roots] = np.arange(len(roots))
        for _ in range(self._hops):
            row_B = parts[-1]
            count_B, entry_E = self._draw(row_B, rng)
            column_E = self._graph.indices[entry_E]
            new = np.unique(column_E[self._position_N[column_E] < 0]).astype(np.int64)
            self._position_N[new] = within[-1] + np.arange(len(new))
            # Every row begins with the node itself.
            first_B = np.cumsum(count_B) - count_B
            own_B = self._position_N[row_B]
            positions.append(np.insert(self._position_N[column_E], first_B, own_B))
            drawn_E, loop_B = self._weights(row_B, count_B, column_E, entry_E)
            weights.append(np.insert(drawn_E, first_B, loop_B))
            counts.append(count_B + 1)
            parts.append(new)
            within.append(within[-1] + len(new))
        nodes = np.concatenate(parts)
        self._position_N[nodes] = -1
        return NeighbourBatch(
            nodes,
            tuple(within),
            np.append(0, np.cumsum(np.concatenate(counts))),
            np.concatenate(positions),
            np.concatenate(weights),
        )

    def _draw(
        self, row_B: NodeIds, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the number of entries drawn per row, and their positions in the graph's edges."""
        start_B = self._graph.indptr[row_B]
        degree_B = self._graph.indptr[row_B + 1] - start_B
        count_B = degree_B if self._limit is None else np.minimum(degree_B, self._limit)
        entry_E = ranges(start_B, count_B)
        cut_B = count_B < degree_B
        if self._limit is not None and cut_B.any():
            chosen = distinct_draws(degree_B[cut_B], self._limit, rng)
            entry_E[np.repeat(cut_B, count_B)] = (start_B[cut_B, None] + chosen).ravel()
        return count_B, entry_E

    def _weights(
        self,
        row_B: NodeIds,
        count_B: NDArray[np.int64],
        column_E: NDArray[np.int32],
        entry_E: NDArray[np.int64],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return weights of drawn entries, scaled to represent whole rows, and of self-loops."""
        graph, factors = self._graph, self._factors
        degree_B = graph.indptr[row_B + 1] - graph.indptr[row_B]
        scale_B = factors.row_N[row_B] * degree_B / np.maximum(count_B, 1)
        drawn_E = np.repeat(scale_B, count_B) * factors.column_N[column_E]
        if graph.edge_weight is not None:
            drawn_E *= graph.edge_weight[entry_E]
        return drawn_E, factors.row_N[row_B] * factors.column_N[row_B]


def distinct_draws(
    sizes_B: NDArray[np.int64], count: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw `count` distinct numbers below each size, all sets equally likely; (B, count).

    Floyd's algorithm (Bentley & Floyd, 1987) for all rows at once: a number that was drawn before
    is replaced by the largest number allowed, which cannot have been drawn yet.
    """
    drawn = np.empty((len(sizes_B), count), np.int64)
    for column in range(count):
        largest_B = sizes_B - count + column
        number_B = rng.integers(0, largest_B + 1)
        repeated_B = (drawn[:, :column] == number_B[:, None]).any(1)
        drawn[:, column] = np.where(repeated_B, largest_B, number_B)
    return drawn
