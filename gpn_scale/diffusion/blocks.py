"""The diffusion in row blocks of the adjacency, for graphs that do not fit into memory.

`power_iteration` holds S; here only the graph's own arrays are read, which may be memory maps, and
the caller chooses how many classes and edges are in memory at a time. There are no gradients.

Shapes: N nodes, B classes that are diffused at a time, M rows of a block.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpn_scale.config import DiffusionConfig
from gpn_scale.data.graph import Graph
from gpn_scale.diffusion.power_iteration import config_steps
from gpn_scale.diffusion.transition import row_blocks, transition_factors
from gpn_scale.nn.sparse import SparseMatrix
from gpn_scale.scratch import release_pages

Block = tuple[int, int, SparseMatrix]
"""First row, the row after the last, and the adjacency's rows between them."""


class AdjacencyBlocks:
    """Row blocks of the adjacency A, kept in memory or read again from the graph in every pass.

    >>> from gpn_scale import build_graph
    >>> path, cpu = build_graph([0, 1], [1, 2]), torch.device("cpu")
    >>> blocks = AdjacencyBlocks(path, entries=3, keep=False, device=cpu, dtype=torch.float32)
    >>> [(start, stop) for start, stop, rows in blocks]
    [(0, 2), (2, 3)]

    Args:
        graph: Graph whose arrays may be memory maps; copied only where the kernels need it.
        entries: Largest number of edges in a block; a longer row is a block by itself.
        keep: Whether the blocks are made once and kept.
        device: Device of the blocks.
        dtype: Type of their values.
    """

    def __init__(
        self, graph: Graph, *, entries: int, keep: bool, device: torch.device, dtype: torch.dtype
    ) -> None:
        self._graph, self._device, self._dtype = graph, device, dtype
        self._rows = list(row_blocks(graph.indptr, entries))
        sizes = [int(graph.indptr[stop] - graph.indptr[start]) for start, stop in self._rows]
        unweighted = graph.edge_weight is None
        # All blocks of an unweighted graph share their values.
        self._ones = torch.ones(max([0, *sizes]) * unweighted, dtype=dtype, device=device)
        self._kept = list(self._made()) if keep else None

    def __iter__(self) -> Iterator[Block]:
        return iter(self._kept) if self._kept is not None else self._made()

    def _made(self) -> Iterator[Block]:
        graph = self._graph
        for start, stop in self._rows:
            indptr = graph.indptr[start : stop + 1] - graph.indptr[start]
            edges = slice(int(graph.indptr[start]), int(graph.indptr[stop]))
            values = self._ones[: edges.stop - edges.start]
            if graph.edge_weight is not None:
                values = _tensor(graph.edge_weight[edges]).to(self._device, self._dtype)
            yield (
                start,
                stop,
                SparseMatrix(
                    torch.from_numpy(indptr).to(self._device),
                    _tensor(graph.indices[edges]).to(self._device),
                    values,
                    graph.num_nodes,
                ),
            )
            release_pages(graph.indices, graph.edge_weight)


class BlockDiffusion:
    """K steps of the diffusion as in `PowerIteration`, without a matrix S.

    With S = diag(r) (A + diag(l)) diag(c), Y = c beta_agg obeys
    Y <- (1 - t) r c (A Y + l Y) + t c beta: one product with the graph's own adjacency, and one
    element-wise pass.

    >>> from gpn_scale import build_graph
    >>> path, kind = build_graph([0, 1], [1, 2]), (torch.device("cpu"), torch.float32)
    >>> config = DiffusionConfig(teleport=0.5, normalisation="rw", steps=1, self_loops=False)
    >>> blocks = AdjacencyBlocks(path, entries=3, keep=True, device=kind[0], dtype=kind[1])
    >>> evidence_NB = torch.tensor([[4.0], [0.0], [0.0]])
    >>> BlockDiffusion(path, config, blocks, *kind).run_into(evidence_NB, lambda: None).tolist()
    [[2.0], [1.0], [0.0]]

    Args:
        graph: Graph to diffuse on.
        config: Parameters of the diffusion.
        adjacency: The graph's row blocks.
        device: Device of the vectors.
        dtype: Type of all real numbers.
    """

    def __init__(
        self,
        graph: Graph,
        config: DiffusionConfig,
        adjacency: AdjacencyBlocks,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        factors = transition_factors(graph, config.normalisation, config.self_loops)
        self.steps = config_steps(config)
        self.in_logs = config.of == "log_evidence"
        self._teleport = config.teleport
        self._adjacency = adjacency
        self._column_N1 = torch.from_numpy(factors.column_N).to(device, dtype).unsqueeze(1)
        pull_N = (1.0 - config.teleport) * factors.row_N * factors.column_N
        self._pull_N1 = torch.from_numpy(pull_N).to(device, dtype).unsqueeze(1)
        self._loop_N1: Tensor | None = None  # None if all nodes have a loop
        if not factors.loop_N.all():
            self._loop_N1 = torch.from_numpy(factors.loop_N).to(device).unsqueeze(1)

    def run_into(self, evidence_NB: Tensor, observe: Callable[[], None]) -> Tensor:
        """Return aggregated evidence, (N, B); overwrites `evidence_NB`.

        Calls `observe` after each step. Takes two more arrays of that size, one of which is the
        result.
        """
        state_NB = evidence_NB * self._column_N1
        restart_NB = torch.mul(state_NB, self._teleport, out=evidence_NB)
        next_NB = torch.empty_like(state_NB)
        for _ in range(self.steps):
            for start, stop, block in self._adjacency:
                # Within a block its rows are still in the cache for the second pass.
                next_MB = next_NB[start:stop]
                block.multiply_add_into(state_NB, self._loops(state_NB, start, stop), next_MB)
                torch.addcmul(
                    restart_NB[start:stop], next_MB, self._pull_N1[start:stop], out=next_MB
                )
            state_NB, next_NB = next_NB, state_NB
            observe()
        return state_NB.div_(self._column_N1)

    def _loops(self, state_NB: Tensor, start: int, stop: int) -> Tensor:
        state_MB = state_NB[start:stop]
        return state_MB if self._loop_N1 is None else state_MB * self._loop_N1[start:stop]


def _tensor(array: NDArray[np.int32] | NDArray[np.float32]) -> Tensor:
    """Return an array as a tensor; only a read-only one, about which torch warns, is copied."""
    return torch.from_numpy(np.require(array, requirements="W"))
