"""Computation of the rows of shards, and of the exact sums that account for what was cut.

Shapes: N nodes.
"""

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.diffusion.transition import steps_to_tolerance
from gpn_scale.ppr.writer import StoreWriter
from gpn_scale.progress import ProgressMeter
from precompute.exact_mass import arriving_mass, diffused_columns, mass_by_cluster
from precompute.mass_bounds import mass_bounds
from precompute.row_engine import Method, RowEngine
from precompute.row_kernels import PaddedRows

MASS_TOLERANCE = 1e-8
"""Mass that the exact sums of an unlimited diffusion may leave undistributed."""

Say = Callable[[str], None]
"""Called with messages for the user."""


def sum_steps(engine: RowEngine) -> int:
    """Return the number of steps of the exact sums.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.config import PPRConfig
    >>> from gpn_scale.diffusion.transition import transition_matrix
    >>> from precompute.mpi import SingleProcess
    >>> S = transition_matrix(build_graph([0, 1], [1, 2]), "sym", self_loops=True)
    >>> engine = RowEngine(S, PPRConfig(k=2), SingleProcess(), threads=1)
    >>> sum_steps(engine)
    10
    """
    diffusion = engine.config.diffusion
    if diffusion.steps == "inf":
        return steps_to_tolerance(diffusion.teleport, MASS_TOLERANCE)
    return diffusion.steps


def row_totals(engine: RowEngine) -> NDArray[np.float64]:
    """Return the sum of every node's full row: 1 for `rw`, the diffused ones for `sym`.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.config import PPRConfig
    >>> from gpn_scale.diffusion.transition import transition_matrix
    >>> from precompute.mpi import SingleProcess
    >>> S = transition_matrix(build_graph([0, 1], [1, 2]), "sym", self_loops=True)
    >>> engine = RowEngine(S, PPRConfig(k=2), SingleProcess(), threads=1)
    >>> row_totals(engine).round(2)
    array([0.97, 1.05, 0.97])
    """
    diffusion = engine.config.diffusion
    if diffusion.normalisation == "rw":
        return np.ones(engine.num_nodes)
    assert engine.exact_weight is not None
    matrix = (engine.indptr, engine.indices, engine.exact_weight)
    ones = np.ones((engine.num_nodes, 1))
    steps = sum_steps(engine)
    return diffused_columns(*matrix, ones, teleport=diffusion.teleport, steps=steps)[:, 0]


def total_mass(engine: RowEngine, roots: NodeIds | None) -> NDArray[np.float64]:
    """Return the mass that the full rows of all roots together put on every node.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.config import PPRConfig
    >>> from gpn_scale.diffusion.transition import transition_matrix
    >>> from precompute.mpi import SingleProcess
    >>> S = transition_matrix(build_graph([0, 1], [1, 2]), "sym", self_loops=True)
    >>> engine = RowEngine(S, PPRConfig(k=2), SingleProcess(), threads=1)
    >>> total_mass(engine, np.array([0])).round(2)
    array([0.49, 0.29, 0.16])
    """
    start = np.zeros(engine.num_nodes)
    start[slice(None) if roots is None else roots] = 1.0
    matrix = (engine.indptr, engine.indices, engine.weight)
    teleport, steps = engine.config.diffusion.teleport, sum_steps(engine)
    return arriving_mass(*matrix, start, teleport=teleport, steps=steps)


class BuildClock:
    """Records the time of a build in its store, on top of that of former, stopped builds.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> with TemporaryDirectory() as folder:
    ...     writer = StoreWriter.join(example_store(folder).path)
    ...     BuildClock(writer, time.monotonic() - 5.0, active=True).record()
    ...     writer.build_seconds >= 5.0
    True
    """

    def __init__(self, writer: StoreWriter, began: float, *, active: bool) -> None:
        self._writer, self._began, self._active = writer, began, active
        self._former_seconds = writer.build_seconds

    def record(self) -> None:
        """Record the time until now, if this rank is the one that records."""
        if self._active:
            self._writer.record_seconds(self._former_seconds + time.monotonic() - self._began)


class ShardBuilder:
    """Computes and writes shards.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale import PPRStore, build_graph
    >>> from gpn_scale.config import PPRConfig
    >>> from precompute.build import build_store
    >>> with TemporaryDirectory() as folder:  # a build has one builder
    ...     plan = build_store(build_graph([0, 1], [1, 2]), PPRConfig(k=2, clusters=0), folder)
    ...     PPRStore.open(folder).num_entries
    6

    Args:
        engine: Computes rows of the graph.
        method: How rows are computed.
        totals: Mass of every node's full row, (N,).
        graph: The graph.
        writer: Writes the shards.
        roots: The roots of all shards, sorted; None for all nodes.
        say: Called with messages for the user.
        clock: Records the time.
    """

    def __init__(
        self,
        engine: RowEngine,
        method: Method,
        totals: NDArray[np.float64],
        graph: Graph,
        writer: StoreWriter,
        roots: NodeIds | None,
        say: Say,
        clock: BuildClock,
    ) -> None:
        self.engine, self.method, self.totals = engine, method, totals
        self.config, self.comm = engine.config, engine.comm
        self.writer, self.roots, self.say, self.clock = writer, roots, say, clock
        self.cluster_of_node = writer.cluster_of_node
        self.mass_by_cluster = self._mass_by_cluster()
        if self.mass_by_cluster is not None and self.config.diffusion.normalisation == "sym":
            # Use the sums over clusters, so that the cut masses add up to the missing mass.
            self.totals = np.asarray(self.mass_by_cluster.sum(1, dtype=np.float64))
        self.engine.release_exact_weight()
        self.bounds = mass_bounds(
            self.engine,
            graph,
            steps=sum_steps(self.engine),
            cluster_of_node=self.cluster_of_node,
        )

    def _mass_by_cluster(self) -> NDArray[np.float32] | None:
        if self.cluster_of_node is None:
            return None
        self.say(f"diffusing {self.config.clusters} clusters")
        assert self.engine.exact_weight is not None
        return mass_by_cluster(
            self.engine.indptr,
            self.engine.indices,
            self.engine.exact_weight,
            self.cluster_of_node,
            self.config.clusters,
            teleport=self.config.diffusion.teleport,
            steps=sum_steps(self.engine),
            comm=self.comm,
        )

    def write(self, todo: list[int]) -> None:
        """Compute and write the shards `todo`, each in one rank."""
        rows = self._sweep() if self.method == "sweep" else None
        done = self.comm.shared_zeros((self.comm.size,), np.int64)
        total = sum(stop - start for start, stop in map(self.writer.shard_rows, todo))
        silent = self.comm.rank != 0
        with ProgressMeter("write" if rows else "push", "root", total, silent=silent) as meter:
            for index in todo[self.comm.rank :: self.comm.size]:
                start, stop = self.writer.shard_rows(index)
                self._write_shard(index, self._nodes(start, stop), rows)
                self.clock.record()
                done[self.comm.rank] += stop - start
                meter.update(int(done.sum()))
            self.comm.barrier()
            meter.update(total)

    def _sweep(self) -> PaddedRows:
        limit = None if self.engine.steps < 0 else self.engine.steps
        limit = self.config.sweeps or limit
        with ProgressMeter("sweep", "sweep", limit, silent=self.comm.rank != 0) as meter:
            rows = self.engine.sweep(meter.update)
        self.clock.record()
        return rows

    def _nodes(self, start: int, stop: int) -> NodeIds:
        return np.arange(start, stop) if self.roots is None else self.roots[start:stop]

    def _write_shard(self, index: int, nodes: NodeIds, all_rows: PaddedRows | None) -> None:
        if all_rows is None:
            rows = self.engine.push(nodes)
        else:
            rows = PaddedRows(all_rows.ids[nodes], all_rows.weights[nodes], all_rows.sizes[nodes])
        masses = None
        if self.mass_by_cluster is not None:
            masses = self.bounds.by_cluster(nodes, self.mass_by_cluster[nodes])
        totals = self.bounds.totals(nodes, self.totals[nodes])
        swept = None if all_rows is None else nodes
        finished = self.engine.finish(rows, totals, self.cluster_of_node, masses, swept_roots=swept)
        self.writer.write_shard(index, finished)
