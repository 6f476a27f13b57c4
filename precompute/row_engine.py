"""Computation of diffusion rows by sweeps or pushes: calls the kernels block by block."""

import warnings
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Literal

import numba
import numpy as np
from numba.core.errors import NumbaSystemWarning
from numpy.typing import NDArray

from gpn_scale.config import PPRConfig
from gpn_scale.data.graph import NodeIds
from gpn_scale.diffusion.transition import Transition
from gpn_scale.ppr.rows import Rows
from precompute.cache_order import CacheOrder, SweptRows
from precompute.mpi import AbstractComm
from precompute.node_ranges import split_by_cost, sweep_blocks
from precompute.padded_row_kernels import (
    copy_rows_into,
    find_whole_rows_into,
    finish_rows_into,
    pack_rows_into,
    subtract_clusters_into,
    sum_rows_into,
)
from precompute.push_kernels import push_roots_into
from precompute.rounding import round_down_to_single, round_up_to_half, round_up_to_single
from precompute.row_kernels import PaddedRows, Work, sweep_block_into
from precompute.scratch_memory import new_rows, new_work

Method = Literal["sweep", "push"]
"""`sweep` computes all rows from their neighbours' rows; `push` computes each root by itself."""
_Matrix = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]
ProgressCallback = Callable[[int, str], None]
"""Called with the number of finished steps and a short text."""

SWEEP_FROM = 0.25
"""Fraction of nodes that are roots, above which sweeping all nodes is cheaper than pushing."""
MAX_SWEEPS = 500
"""Largest number of sweeps of an unlimited diffusion."""
MAX_EXACT_STEPS = 32
"""Number of steps up to which rounding, 2^-23 per step, costs less than 4e-6 of a weight."""
UNLIMITED = -1
"""Value of `steps` that stands for an unlimited diffusion in the kernels."""


def chosen_method(config: PPRConfig, num_roots: int, num_nodes: int) -> Method:
    """Return the configured method; `auto` sweeps for many roots and pushes for few.

    >>> chosen_method(PPRConfig(), num_roots=10, num_nodes=1000)
    'push'
    """
    if config.method != "auto":
        return config.method
    return "sweep" if num_roots >= SWEEP_FROM * num_nodes else "push"


def compiled_before(method: Method) -> bool:
    """Return whether numba's cache has the compiled kernels, or compilation is switched off.

    >>> compiled_before("sweep") in (True, False)
    True
    """
    kernel: object = sweep_block_into
    name = "row_kernels.sweep_block_into"
    if method == "push":
        kernel, name = push_roots_into, "push_kernels.push_roots_into"
    stats = getattr(kernel, "stats", None)
    if stats is None:  # NUMBA_DISABLE_JIT=1 leaves a plain Python function
        return True
    return any(Path(str(stats.cache_path)).glob(f"{name}*.nbi"))


class RowEngine:
    """Computes rows of one diffusion on one graph; the bytes do not depend on threads or ranks.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.diffusion.transition import transition_matrix
    >>> from precompute.mpi import SingleProcess
    >>> S = transition_matrix(build_graph([0, 1], [1, 2]), "rw", self_loops=True)
    >>> engine = RowEngine(S, PPRConfig(k=2), SingleProcess(), threads=1)
    >>> rows = engine.finish(engine.push(np.array([0, 2])), totals=np.ones(2))
    >>> rows.ids.reshape(2, 2)  # the two largest entries of either end
    array([[0, 1],
           [2, 1]], dtype=int32)

    Args:
        transition: The transition matrix S.
        config: Teleport probability, steps and numbers of entries.
        comm: The ranks that share the work.
        threads: Number of threads of this rank.
    """

    def __init__(
        self, transition: Transition, config: PPRConfig, comm: AbstractComm, *, threads: int
    ) -> None:
        self.config = config
        self.comm = comm
        self.threads = threads
        self.num_nodes = transition.num_nodes
        self.indptr = transition.indptr
        self.indices = transition.indices
        self.weight = round_down_to_single(transition.weight)
        self.exact_weight: NDArray[np.float64] | None = transition.weight
        with warnings.catch_warnings():
            # Without shared memory numba has no lock between forks, and there are none here.
            warnings.simplefilter("ignore", NumbaSystemWarning)
            numba.set_num_threads(threads)

    def release_exact_weight(self) -> None:
        """Free the weights in float64, which only exact sums need."""
        self.exact_weight = None

    @cached_property
    def cache_order(self) -> CacheOrder:
        """The order in which sweeps and sums over all nodes visit them."""
        return CacheOrder.of(self.indptr, self.indices)

    @property
    def steps(self) -> int:
        """Number K of diffusion steps, or `UNLIMITED`."""
        steps = self.config.diffusion.steps
        return UNLIMITED if steps == "inf" else steps

    def sweep(self, progress: ProgressCallback) -> SweptRows:
        """Return unordered rows of all nodes, in memory that the ranks of a machine share.

        Rows have up to `working_entries` entries and are computed in a cache-friendly order. In an
        unlimited diffusion, blocks of nodes are updated one after the other (Gauss-Seidel between
        blocks, Jacobi within), alternating forward and backward, until the mean mass of a row
        hardly grows. K steps are K rounds over all nodes, each from the rows of the previous round.
        """
        matrix = self.cache_order.matrix(self.indptr, self.indices, self.weight)
        rows = self._shared_rows()
        rows.ids[:, 0] = np.arange(self.num_nodes)
        rows.sizes[:] = 1
        start = self.config.diffusion.teleport if self.steps == UNLIMITED else 1.0
        rows.weights[:, 0] = round_down_to_single(np.array([start]))
        self.comm.barrier()
        if self.steps == UNLIMITED:
            self._sweep_to_limit(matrix, rows, progress)
        else:
            rows = self._sweep_steps(matrix, rows, progress)
        return SweptRows(rows, self.cache_order)

    def _sweep_steps(
        self, matrix: _Matrix, rows: PaddedRows, progress: ProgressCallback
    ) -> PaddedRows:
        next_rows = self._shared_rows()
        work = new_work(self.num_nodes, self.threads, push=False)
        blocks = sweep_blocks(self.num_nodes)  # only to limit the size of buffers
        for step in range(self.steps):
            self._update(matrix, blocks, rows, next_rows, work, hop=True)
            rows, next_rows = next_rows, rows
            progress(step + 1, "")
        return rows

    def _sweep_to_limit(
        self, matrix: _Matrix, rows: PaddedRows, progress: ProgressCallback
    ) -> None:
        work = new_work(self.num_nodes, self.threads, push=False)
        blocks = sweep_blocks(self.num_nodes)
        mass = self.mean_mass(rows)
        for sweep in range(self.config.sweeps or MAX_SWEEPS):
            order = blocks if sweep % 2 == 0 else blocks[::-1]
            self._update(matrix, order, rows, rows, work, hop=False)
            before, mass = mass, self.mean_mass(rows)
            progress(sweep + 1, f"mean mass {mass:.4f}")
            # Each sweep shrinks the missing mass by a factor of at most 1 - t, so that all further
            # sweeps together add at most (1 - t) / t times the last gain (apart from the cut).
            teleport = self.config.diffusion.teleport
            further_gain = (mass - before) * (1.0 - teleport) / teleport
            if not self.config.sweeps and further_gain < self.config.sweep_tolerance:
                return

    def _update(
        self,
        matrix: _Matrix,
        blocks: list[tuple[int, int]],
        rows: PaddedRows,
        target: PaddedRows,
        work: Work,
        *,
        hop: bool,
    ) -> None:
        """Compute new rows of each block in turn, from `rows` into `target` (perhaps the same)."""
        for first, last in blocks:
            bounds = split_by_cost(first, last, matrix[0], self.comm.size)
            begin, end = bounds[self.comm.rank]
            block = new_rows(end - begin, rows.ids.shape[1])
            sweep_block_into(
                begin,
                end,
                *matrix,
                self.config.diffusion.teleport,
                hop,
                rows,
                work,
                *block,
            )
            self.comm.barrier()  # all ranks have read the old rows
            copy_rows_into(begin, *block, *target)
            for array in target:
                self.comm.share_rows(array, bounds)

    def mean_mass(self, rows: PaddedRows) -> float:
        """Return the mean of the row sums, the same number in every rank."""
        return float(row_sums(rows).mean())

    def _shared_rows(self) -> PaddedRows:
        shape = (self.num_nodes, self.config.working_entries)
        return PaddedRows(
            ids=self.comm.shared_zeros(shape, np.int32),
            weights=self.comm.shared_zeros(shape, np.float32),
            sizes=self.comm.shared_zeros((self.num_nodes,), np.int32),
        )

    @cached_property
    def _push_work(self) -> Work:
        return new_work(self.num_nodes, self.threads, push=True)

    def push(self, roots: NodeIds) -> PaddedRows:
        """Return unordered rows of `roots`, each computed by itself."""
        rows = new_rows(len(roots), self.config.k)
        push_roots_into(
            np.ascontiguousarray(roots, np.int64),
            self.indptr,
            self.indices,
            self.weight,
            self.config.diffusion.teleport,
            self.steps,
            self.config.push_tolerance,
            self._push_work,
            *rows,
        )
        return rows

    def finish(
        self,
        rows: PaddedRows,
        totals: NDArray[np.float64],
        cluster_of_node: NDArray[np.int32] | None = None,
        mass_by_cluster: NDArray[np.float64] | None = None,
        *,
        swept_roots: NodeIds | None = None,
    ) -> Rows:
        """Return the rows cut to k entries and sorted, together with their missing mass.

        Missing and cut masses are rounded up.

        Args:
            rows: R rows, changed in place.
            totals: Upper bound on the mass of each full row, (R,).
            cluster_of_node: Cluster of every node, (N,); None without clusters.
            mass_by_cluster: Upper bound on the mass of each full row per cluster, (R, P); None
                without clusters.
            swept_roots: The roots, if the rows come from `sweep`, (R,). Rows of few steps that keep
                every node within reach have then lost only rounding errors, which are relative to
                the kept weights, so their missing mass is 0.
        """
        finish_rows_into(self.config.k, *rows)
        missing = np.maximum(totals - row_sums(rows), 0.0)
        whole = self._whole_rows(rows, swept_roots)
        missing[whole] = 0.0
        cut_mass = np.empty((len(rows.sizes), 0), np.float16)
        if cluster_of_node is not None and mass_by_cluster is not None:
            left = np.array(mass_by_cluster, np.float64, order="C")
            subtract_clusters_into(*rows, cluster_of_node, left)
            left[whole] = 0.0
            cut_mass = round_up_to_half(left)
        row_ptr = np.zeros(len(rows.sizes) + 1, np.int64)
        np.cumsum(rows.sizes, out=row_ptr[1:])
        ids = np.empty(row_ptr[-1], np.int32)
        weights = np.empty(row_ptr[-1], np.float32)
        pack_rows_into(*rows, row_ptr, ids, weights)
        return Rows(
            row_ptr=row_ptr,
            ids=ids,
            weights=weights,
            missing_mass=round_up_to_single(missing),
            cut_mass=cut_mass,
        )

    def _whole_rows(self, rows: PaddedRows, swept_roots: NodeIds | None) -> NDArray[np.bool_]:
        whole = np.zeros(len(rows.sizes), np.bool_)
        if swept_roots is not None and 0 <= self.steps <= MAX_EXACT_STEPS:
            find_whole_rows_into(
                np.ascontiguousarray(swept_roots, np.int64),
                self.steps,
                self.indptr,
                self.indices,
                rows.ids,
                rows.sizes,
                np.zeros(self.num_nodes, np.int8),
                whole,
            )
        return whole


def row_sums(rows: PaddedRows) -> NDArray[np.float64]:
    """Return the sum of each row's weights.

    >>> rows = new_rows(2, entries=2)
    >>> rows.weights[:], rows.sizes[:] = [[0.5, 0.25], [0.5, 0.0]], [2, 1]
    >>> row_sums(rows)
    array([0.75, 0.5 ])
    """
    sums = np.empty(len(rows.sizes))
    sum_rows_into(rows.weights, rows.sizes, sums)
    return sums
