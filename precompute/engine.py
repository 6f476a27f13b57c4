"""Rows of a diffusion for many roots: chooses the way, walks blocks and shards, calls kernels."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numba
import numpy as np
from numpy.typing import NDArray

from gpn_scale.config import PPRConfig
from gpn_scale.data.graph import NodeIds
from gpn_scale.diffusion.transition import Transition
from precompute.kernels import (
    Rows,
    Work,
    copy_rows_into,
    finish_rows_into,
    pack_rows_into,
    push_roots_into,
    subtract_clusters_into,
    sum_rows_into,
    sweep_block_into,
)
from precompute.mpi import AbstractComm
from precompute.partition import split_by_cost, sweep_blocks
from precompute.workspace import new_rows, new_work

SWEEP_FROM = 0.25
"""Share of all nodes from which sweeping them all is cheaper than pushing each root."""
MAX_SWEEPS = 500
UNLIMITED = -1
"""`steps` of an unlimited diffusion, for the kernels."""

Progress = Callable[[int, str], None]
"""Told how much is done, and how it goes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chunk:
    """Finished rows of consecutive roots, as the store takes them."""

    row_ptr: NDArray[np.int64]
    ids: NDArray[np.int32]
    weights: NDArray[np.float32]
    missing_mass: NDArray[np.float32]
    cluster_mass: NDArray[np.float16] | None


def chosen_method(config: PPRConfig, num_roots: int, num_nodes: int) -> str:
    """`sweep` for most of the nodes, `push` for few; what the user forces otherwise."""
    if config.method != "auto":
        return config.method
    return "sweep" if num_roots >= SWEEP_FROM * num_nodes else "push"


def compiled_before() -> bool:
    """Whether the kernels lie compiled in numba's cache, so that starting is quick."""
    folder = Path(str(sweep_block_into.stats.cache_path))
    return any(folder.glob("*sweep_block_into*.nbi"))


class Engine:
    """Computes rows of one diffusion on one graph. The same bytes for any threads and ranks.

    Args:
        transition: S.
        config: Teleport, steps, entries kept.
        comm: The ranks that share the work.
        threads: Of this rank.
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
        self.weight = transition.weight.astype(np.float32)
        numba.set_num_threads(threads)

    @property
    def steps(self) -> int:
        """K, or `UNLIMITED`."""
        steps = self.config.diffusion.steps
        return UNLIMITED if steps == "inf" else steps

    def sweep(self, progress: Progress) -> Rows:
        """Unordered rows of all nodes, with up to `working_entries` each, shared by all ranks.

        Unlimited: blocks of nodes are updated one after the other (Gauss-Seidel between blocks,
        Jacobi within), forward and backward by turns, until the mean mass of a row hardly grows.
        K steps: K rounds over all nodes, each from the rows of the round before.
        """
        rows = self._shared_rows()
        rows.ids[:, 0] = np.arange(self.num_nodes)
        rows.sizes[:] = 1
        rows.weights[:, 0] = self.config.diffusion.teleport if self.steps == UNLIMITED else 1.0
        self.comm.barrier()
        if self.steps == UNLIMITED:
            self._sweep_to_limit(rows, progress)
            return rows
        further = self._shared_rows()
        work = new_work(self.num_nodes, self.threads, push=False)
        blocks = sweep_blocks(self.num_nodes)  # to bound the buffers; all read the round before
        for step in range(self.steps):
            self._update(blocks, rows, further, work, hop=True)
            rows, further = further, rows
            progress(step + 1, "")
        return rows

    def _sweep_to_limit(self, rows: Rows, progress: Progress) -> None:
        work = new_work(self.num_nodes, self.threads, push=False)
        blocks = sweep_blocks(self.num_nodes)
        mass = self.mean_mass(rows)
        for sweep in range(self.config.sweeps or MAX_SWEEPS):
            order = blocks if sweep % 2 == 0 else blocks[::-1]
            self._update(order, rows, rows, work, hop=False)
            before, mass = mass, self.mean_mass(rows)
            progress(sweep + 1, f"mean mass {mass:.4f}")
            # Each sweep shrinks what is missing by (1 - t) at least, so that what is to come is at
            # most (1 - t) / t times what came (but for what cutting keeps out).
            teleport = self.config.diffusion.teleport
            to_come = (mass - before) * (1.0 - teleport) / teleport
            if not self.config.sweeps and to_come < self.config.sweep_tolerance:
                return

    def _update(
        self,
        blocks: list[tuple[int, int]],
        rows: Rows,
        target: Rows,
        work: Work,
        *,
        hop: bool,
    ) -> None:
        """New rows of each block in turn, from `rows` into `target` (which may be the same)."""
        for first, last in blocks:
            bounds = split_by_cost(first, last, self.indptr, self.comm.size)
            begin, end = bounds[self.comm.rank]
            block = new_rows(end - begin, rows.ids.shape[1])
            sweep_block_into(
                begin,
                end,
                self.indptr,
                self.indices,
                self.weight,
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

    def mean_mass(self, rows: Rows) -> float:
        """Mean sum of a row; the same number in every rank."""
        return float(row_sums(rows).mean())

    def _shared_rows(self) -> Rows:
        shape = (self.num_nodes, self.config.working_entries)
        return Rows(
            ids=self.comm.shared_zeros(shape, np.int32),
            weights=self.comm.shared_zeros(shape, np.float32),
            sizes=self.comm.shared_zeros((self.num_nodes,), np.int32),
        )

    @cached_property
    def _push_work(self) -> Work:
        return new_work(self.num_nodes, self.threads, push=True)

    def push(self, roots: NodeIds) -> Rows:
        """Unordered rows of `roots`, each computed by itself."""
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
        rows: Rows,
        totals: NDArray[np.float64],
        cluster_of_node: NDArray[np.int32] | None,
        cluster_mass: NDArray[np.float32] | None,
    ) -> Chunk:
        """Cuts `rows` to k, sorts them, and accounts for what is missing.

        Args:
            rows: Changed in place.
            totals: What each row would sum to if nothing were missing.
            cluster_of_node: (N,), with clusters.
            cluster_mass: (rows, P): each full row's mass per cluster.
        """
        finish_rows_into(self.config.k, *rows)
        kept = row_sums(rows)
        cut_mass = None
        if cluster_of_node is not None and cluster_mass is not None:
            exact = np.array(cluster_mass, np.float32, order="C")
            subtract_clusters_into(*rows, cluster_of_node, exact)
            cut_mass = round_up_to_half(exact)
        row_ptr = np.zeros(len(rows.sizes) + 1, np.int64)
        np.cumsum(rows.sizes, out=row_ptr[1:])
        ids = np.empty(row_ptr[-1], np.int32)
        weights = np.empty(row_ptr[-1], np.float32)
        pack_rows_into(*rows, row_ptr, ids, weights)
        return Chunk(
            row_ptr=row_ptr,
            ids=ids,
            weights=weights,
            missing_mass=np.maximum(totals - kept, 0.0).astype(np.float32),
            cluster_mass=cut_mass,
        )


def row_sums(rows: Rows) -> NDArray[np.float64]:
    """What the entries of every row add up to."""
    sums = np.empty(len(rows.sizes))
    sum_rows_into(rows.weights, rows.sizes, sums)
    return sums


def round_up_to_half(values: NDArray[np.float32]) -> NDArray[np.float16]:
    """The smallest float16 not below each value: a bound must not shrink by being stored."""
    half = values.astype(np.float16)
    return np.where(half < values, np.nextafter(half, np.float16(np.inf)), half)
