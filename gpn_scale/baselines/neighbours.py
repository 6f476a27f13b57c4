"""Graph convolutions on batches of training nodes, with drawn neighbours (Hamilton et al., 2017).

Of every node at most so many neighbours are drawn, once for each batch, and stand for all of them:
the sums of a layer are right on average. All layers of a batch share the draw.

Shapes: N nodes, B nodes of a hop, U nodes of a batch, E drawn entries.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from gpn_scale.baselines.gcn import AbstractGCN
from gpn_scale.baselines.sampled import Ensemble
from gpn_scale.baselines.training import random_batches
from gpn_scale.baselines.view import View
from gpn_scale.csr import ranges
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.diffusion.transition import transition_factors
from gpn_scale.nn.sparse import SparseMatrix


@dataclass(frozen=True, slots=True, eq=False)
class NeighbourBatch:
    """Some roots, and the nodes that their answers are computed from."""

    nodes: NodeIds
    """The roots, then hop by hop what was drawn, each node once; (U,)."""
    within: tuple[int, ...]
    """How many of them lie within 0, 1, ... hops."""
    indptr: NDArray[np.int64]
    """Rows of the nodes within one hop less than the last."""
    indices: NDArray[np.int64]
    """Places in `nodes`, (E,)."""
    weights: NDArray[np.float64]
    """Of the drawn neighbours in a row's sum, (E,)."""

    def matrices(self, device: torch.device, dtype: torch.dtype) -> Iterator[SparseMatrix]:
        """A layer's sums over neighbours, from the first layer on; the last leads to the roots."""
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
    """Draws the neighbours of a batch of nodes; not for several threads at a time.

    Memory grows with the nodes, and the graph's edges are read where they lie.

    Args:
        graph: Whose `sym` matrix is drawn from.
        hops: As many as a network has layers.
        limit: Neighbours drawn per node; None takes them all.
    """

    def __init__(self, graph: Graph, hops: int, limit: int | None) -> None:
        self._graph, self._hops, self._limit = graph, hops, limit
        self._factors = transition_factors(graph, "sym", self_loops=True)
        self._place_N = np.full(graph.num_nodes, -1, np.int64)

    def batch(self, roots: NodeIds, rng: np.random.Generator) -> NeighbourBatch:
        """Roots, none of them twice, and what is drawn around them."""
        parts, within, counts, places, weights = [roots], [len(roots)], [], [], []
        self._place_N[roots] = np.arange(len(roots))
        for _ in range(self._hops):
            row_B = parts[-1]
            count_B, entry_E = self._draw(row_B, rng)
            column_E = self._graph.indices[entry_E]
            new = np.unique(column_E[self._place_N[column_E] < 0]).astype(np.int64)
            self._place_N[new] = within[-1] + np.arange(len(new))
            # Every row begins with the node itself.
            first_B = np.cumsum(count_B) - count_B
            places.append(np.insert(self._place_N[column_E], first_B, self._place_N[row_B]))
            drawn_E, loop_B = self._weights(row_B, count_B, column_E, entry_E)
            weights.append(np.insert(drawn_E, first_B, loop_B))
            counts.append(count_B + 1)
            parts.append(new)
            within.append(within[-1] + len(new))
        nodes = np.concatenate(parts)
        self._place_N[nodes] = -1
        return NeighbourBatch(
            nodes,
            tuple(within),
            np.append(0, np.cumsum(np.concatenate(counts))),
            np.concatenate(places),
            np.concatenate(weights),
        )

    def _draw(
        self, row_B: NodeIds, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many entries of each row are drawn, and their positions in the graph, row by row."""
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
        """Of drawn entries, which stand for all of their row, and of the nodes themselves."""
        graph, factors = self._graph, self._factors
        degree_B = graph.indptr[row_B + 1] - graph.indptr[row_B]
        share_B = factors.row_N[row_B] * degree_B / np.maximum(count_B, 1)
        drawn_E = np.repeat(share_B, count_B) * factors.column_N[column_E]
        if graph.edge_weight is not None:
            drawn_E *= graph.edge_weight[entry_E]
        return drawn_E, factors.row_N[row_B] * factors.column_N[row_B]


def distinct_draws(
    sizes_B: NDArray[np.int64], count: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """For each size, `count` different numbers below it, all sets alike; (B, count).

    Floyd's algorithm (Bentley & Floyd, 1987) for all rows at once: a number that is already there
    is replaced by the largest that was allowed, which cannot be.
    """
    drawn = np.empty((len(sizes_B), count), np.int64)
    for column in range(count):
        largest_B = sizes_B - count + column
        number_B = rng.integers(0, largest_B + 1)
        there_B = (drawn[:, :column] == number_B[:, None]).any(1)
        drawn[:, column] = np.where(there_B, largest_B, number_B)
    return drawn


class AbstractNeighbourTrained(AbstractGCN):
    """A network of graph convolutions that is trained on batches; it predicts with all edges."""

    mode = "minibatch"

    def prepare(self, view: View, store: Path | None) -> None:
        """Makes the sampler; rows of a store are not needed."""
        limit = self.config.minibatch.neighbours
        hops = self.config.encoder.layers
        self._sampler = NeighbourSampler(view.graph, hops, None if limit == "all" else limit)

    def losses(self, view: View, generator: torch.Generator, epoch: int) -> Iterator[Tensor]:
        """The training nodes once, in random batches."""
        rng = np.random.default_rng([self.config.train.rng_seed, epoch])
        for roots, target_B in random_batches(view, self.config.minibatch, generator):
            batch = self._sampler.batch(roots, rng)
            logits_BC = self._batch_logits(view, batch, generator)
            yield functional.cross_entropy(logits_BC, target_B)

    def _batch_logits(
        self, view: View, batch: NeighbourBatch, generator: torch.Generator
    ) -> Tensor:
        """Of the roots, (B, C)."""
        sums = batch.matrices(self.device, self.dtype)
        first_UH = self.layers.first(view.feature_rows.take(batch.nodes).inputs)
        return self.layers.after_first(first_UH, lambda values: next(sums) @ values, generator)


def in_neighbour_batches(base: type[AbstractGCN]) -> type[AbstractGCN]:
    """The same model, trained on batches, by the name `base-minibatch`."""
    name = f"{base.name}-minibatch"
    return type(name, (AbstractNeighbourTrained, base), {"name": name, "__doc__": base.__doc__})


def ensemble_of(member: type[AbstractGCN]) -> type[Ensemble]:
    """VGCN-Ensemble of networks that are trained on batches."""
    name = f"{Ensemble.name}-minibatch"
    facts = {"name": name, "mode": member.mode, "Member": member, "__doc__": Ensemble.__doc__}
    return type(name, (Ensemble,), facts)
