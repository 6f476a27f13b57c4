"""Computes the rows of shards, and the masses that account for the cut entries.

Shapes: N nodes.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.ppr.writer import StoreWriter
from gpn_scale.progress import ProgressMeter
from precompute.cache_order import SweptRows
from precompute.exact_mass import mass_by_cluster, summed_columns
from precompute.mass_bounds import mass_bounds
from precompute.parts import PartProgress
from precompute.row_engine import Method, RowEngine
from precompute.row_sums import sum_steps

Say = Callable[[str], None]
"""Called with messages for the user."""


_SECONDS_BETWEEN_RECORDS = 1.0
"""Minimum time between records: each one waits for the disk, longer than a small shard takes."""


class BuildClock:
    """Records the time of a build or part, including earlier, interrupted processes.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> with TemporaryDirectory() as folder:
    ...     writer = StoreWriter.join(example_store(folder).path)
    ...     BuildClock(writer, time.monotonic() - 5.0, active=True).record()
    ...     writer.build_seconds >= 5.0
    True
    """

    def __init__(self, record: StoreWriter | PartProgress, began: float, *, active: bool) -> None:
        self._record, self._began, self._active = record, began, active
        self._former_seconds = record.build_seconds
        self._recorded = began

    def record(self) -> None:
        """Record the time until now, if it is this rank's task."""
        if self._active:
            self._recorded = time.monotonic()
            self._record.record_seconds(self._former_seconds + self._recorded - self._began)

    def record_if_due(self) -> None:
        """Record the time until now, unless the last record is younger than a second."""
        if time.monotonic() - self._recorded >= _SECONDS_BETWEEN_RECORDS:
            self.record()


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
        part_rows: First position of the roots of a part, and the one after its last; other
            processes may write the same shards. None for a whole build.
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
        part_rows: tuple[int, int] | None = None,
    ) -> None:
        self.engine, self.method, self.totals = engine, method, totals
        self.config, self.comm = engine.config, engine.comm
        self.writer, self.roots, self.say, self.clock = writer, roots, say, clock
        self.cluster_of_node = writer.cluster_of_node
        self.shared = part_rows is not None
        # Nodes whose mass by cluster is kept: those of the part, otherwise all.
        self.own = None if part_rows is None else self._nodes(*part_rows)
        self.mass_by_cluster = self._mass_by_cluster()
        if self.mass_by_cluster is not None and self.config.diffusion.normalisation == "sym":
            # Use the sums over clusters, so that the cut masses add up to the missing mass.
            own = engine.cache_order.order_N if self.own is None else self.own
            self.totals[own] = summed_columns(self.mass_by_cluster)
        self.engine.release_exact_weight()
        self.bounds = mass_bounds(
            self.engine,
            graph,
            steps=sum_steps(self.engine),
            cluster_of_node=self.cluster_of_node,
        )

    def _mass_rows(self, nodes: NodeIds) -> NDArray[np.integer[Any]]:
        """Return the rows of `mass_by_cluster` that belong to `nodes`."""
        if self.own is None:
            return self.engine.cache_order.place_N[nodes]
        return np.searchsorted(self.own, nodes)

    def _mass_by_cluster(self) -> NDArray[np.float32] | None:
        if self.cluster_of_node is None:
            return None
        self.say(f"diffusing {self.config.clusters} clusters")
        engine, order = self.engine, self.engine.cache_order
        assert engine.exact_weight is not None
        matrix = order.matrix(engine.indptr, engine.indices, engine.exact_weight)
        return mass_by_cluster(
            *matrix,
            self.cluster_of_node[order.order_N],
            self.config.clusters,
            teleport=self.config.diffusion.teleport,
            steps=sum_steps(engine),
            comm=self.comm,
            nodes=None if self.own is None else order.place_N[self.own].astype(np.int64),
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
                # Another process may have written a shared shard since `todo` was made.
                if not (self.shared and self.writer.is_done(index)):
                    self._write_shard(index, self._nodes(start, stop), rows)
                self.clock.record_if_due()
                done[self.comm.rank] += stop - start
                meter.update(int(done.sum()))
            self.comm.barrier()
            meter.update(total)

    def _sweep(self) -> SweptRows:
        limit = None if self.engine.steps < 0 else self.engine.steps
        limit = self.config.sweeps or limit
        with ProgressMeter("sweep", "sweep", limit, silent=self.comm.rank != 0) as meter:
            rows = self.engine.sweep(meter.update)
        self.clock.record()
        return rows

    def _nodes(self, start: int, stop: int) -> NodeIds:
        return np.arange(start, stop) if self.roots is None else self.roots[start:stop]

    def _write_shard(self, index: int, nodes: NodeIds, all_rows: SweptRows | None) -> None:
        rows = self.engine.push(nodes) if all_rows is None else all_rows.of(nodes)
        masses = None
        if self.mass_by_cluster is not None:
            masses = self.bounds.by_cluster(nodes, self.mass_by_cluster[self._mass_rows(nodes)])
        totals = self.bounds.totals(nodes, self.totals[nodes])
        swept = None if all_rows is None else nodes
        finished = self.engine.finish(rows, totals, self.cluster_of_node, masses, swept_roots=swept)
        self.writer.write_shard(index, finished, shared=self.shared)
