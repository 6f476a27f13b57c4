"""A graph and a configuration -> a store: who does what, in which order, and what is skipped."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.config import PPRConfig
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.diffusion.transition import steps_to_tolerance, transition_matrix
from gpn_scale.errors import ConfigError, GraphError
from gpn_scale.ppr.writer import StoreWriter
from gpn_scale.progress import ProgressMeter
from precompute.clusters import arriving_mass, cluster_masses, diffused_columns, partition_nodes
from precompute.engine import Engine, chosen_method, compiled_before
from precompute.kernels import Rows
from precompute.mpi import AbstractComm
from precompute.planner import Plan, Target, plan_build
from precompute.workspace import plan_slots

ENGINE_VERSION = 2
"""Part of a store's parameters: raised when the same parameters give other bytes."""
MASS_TOLERANCE = 1e-6
"""Mass that the exact sums of an unlimited diffusion may leave undistributed."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a build may use in this rank."""

    threads: int
    memory_bytes: int


def default_resources(ranks_per_machine: int) -> Resources:
    """An even share of this machine's cores, and of 80 % of its free memory."""
    cores = len(os.sched_getaffinity(0))
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Resources(
        threads=max(1, cores // ranks_per_machine),
        memory_bytes=int(0.8 * free) // ranks_per_machine,
    )


def store_parameters(config: PPRConfig, method: str) -> dict[str, Any]:
    """All that the rows depend on beside the graph, flat, for the manifest."""
    diffusion = config.diffusion
    parameters = {"engine": ENGINE_VERSION, **diffusion.store_parameters, "method": method}
    if method == "push":
        return parameters | {"push_tolerance": config.push_tolerance}
    parameters["keep"] = config.working_entries
    if diffusion.steps == "inf":
        parameters |= {"sweeps": config.sweeps, "sweep_tolerance": config.sweep_tolerance}
    return parameters


def rows_per_shard(num_roots: int) -> int:
    """Rows of a shard: a function of the number of roots alone, not of who computes them."""
    return int(np.clip(-(-num_roots // 64), 256, 1 << 16))


def build_store(
    graph: Graph,
    config: PPRConfig,
    out: Path,
    *,
    roots: NodeIds | None,
    comm: AbstractComm,
    resources: Resources,
    resume: bool,
    overwrite: bool,
    say: Say,
    target: Target | None = None,
    plan_only: bool = False,
) -> Plan:
    """Computes the rows of `roots` (None: of all nodes) and writes them to `out`.

    Ranks share the work; shards that are already there and intact are not computed again. The plan
    is told first; a target replaces k or the accuracy, and with `plan_only` nothing is written.

    Raises:
        ConfigError, GraphError, StoreError: the input or the directory cannot be used.
    """
    check_same_graph(graph, comm)
    k_is_given = target is None or target.kind != "mass"
    if k_is_given and config.k > graph.num_nodes:
        raise ConfigError(
            f"k is {config.k}, expected at most the {graph.num_nodes} nodes there are"
        )
    num_roots = graph.num_nodes if roots is None else len(roots)
    method = chosen_method(config, num_roots, graph.num_nodes)
    slots = plan_slots(
        graph.num_nodes, resources.threads, resources.memory_bytes, push=method == "push"
    ).slots
    if slots < resources.threads:
        say(f"scratch memory allows {slots} of {resources.threads} threads")
    if not compiled_before():
        say("compiling the kernels: once, about half a minute")
    engine = _new_engine(graph, config, comm, slots)
    totals = _totals(engine)
    plan = _common_plan(engine, roots, method, totals, target)
    say(plan.table())
    if plan_only:
        return plan
    engine.config = config = plan.config
    writer = _open_writer(graph, config, out, roots, method, comm, resume, overwrite)
    todo = _unfinished(writer, comm)
    if todo:
        _Builder(engine, totals, writer, roots, say).write(todo, method)
    comm.barrier()
    if comm.rank == 0:
        writer.finish(_total_mass(engine, roots) if config.clusters else None)
    comm.barrier()
    return plan


def _new_engine(graph: Graph, config: PPRConfig, comm: AbstractComm, threads: int) -> Engine:
    """The engine of a graph; the transition in float64 is not kept."""
    diffusion = config.diffusion
    transition = transition_matrix(graph, diffusion.normalisation, diffusion.self_loops)
    return Engine(transition, config, comm, threads=threads)


def _common_plan(
    engine: Engine,
    roots: NodeIds | None,
    method: str,
    totals: NDArray[np.float64],
    target: Target | None,
) -> Plan:
    """Rank 0 plans, so that all ranks build with the same numbers."""
    plan = None
    if engine.comm.rank == 0:
        shard = rows_per_shard(engine.num_nodes if roots is None else len(roots))
        plan = plan_build(
            engine, roots=roots, method=method, totals=totals, rows_per_shard=shard, target=target
        )
    plan = engine.comm.broadcast(plan)
    assert plan is not None
    return plan


def _sum_steps(engine: Engine) -> int:
    """Steps of the exact sums."""
    diffusion = engine.config.diffusion
    if diffusion.steps == "inf":
        return steps_to_tolerance(diffusion.teleport, MASS_TOLERANCE)
    return diffusion.steps


def _totals(engine: Engine) -> NDArray[np.float64]:
    """What every node's full row sums to: 1 for `rw`, the diffused ones for `sym`."""
    diffusion = engine.config.diffusion
    if diffusion.normalisation == "rw":
        return np.ones(engine.num_nodes)
    diffused = diffused_columns(
        engine.indptr,
        engine.indices,
        engine.weight,
        np.ones((engine.num_nodes, 1), np.float32),
        teleport=diffusion.teleport,
        steps=_sum_steps(engine),
    )
    return diffused[:, 0].astype(np.float64)


def _total_mass(engine: Engine, roots: NodeIds | None) -> NDArray[np.float64]:
    """What the uncut rows of all roots together put on every node."""
    start = np.zeros(engine.num_nodes)
    start[slice(None) if roots is None else roots] = 1.0
    return arriving_mass(
        engine.indptr,
        engine.indices,
        engine.weight,
        start,
        teleport=engine.config.diffusion.teleport,
        steps=_sum_steps(engine),
    )


def check_same_graph(graph: Graph, comm: AbstractComm) -> None:
    """Refuses ranks that loaded different graphs."""
    prints = comm.allgather(graph.structure_fingerprint())
    other = [rank for rank, value in enumerate(prints) if value != prints[0]]
    if other:
        raise GraphError(
            f"rank {other[0]} has another graph than rank 0 (fingerprint {prints[other[0]]} and "
            f"{prints[0]}), expected the same: give all ranks the same files"
        )


def _open_writer(
    graph: Graph,
    config: PPRConfig,
    out: Path,
    roots: NodeIds | None,
    method: str,
    comm: AbstractComm,
    resume: bool,
    overwrite: bool,
) -> StoreWriter:
    """Rank 0 claims the directory and writes the clusters; the others join."""
    num_roots = graph.num_nodes if roots is None else len(roots)
    if comm.rank == 0:
        writer = StoreWriter.begin(
            out,
            graph_fingerprint=graph.structure_fingerprint(),
            parameters=store_parameters(config, method),
            num_nodes=graph.num_nodes,
            roots=roots,
            num_clusters=config.clusters,
            rows_per_shard=rows_per_shard(num_roots),
            k=config.k,
            resume=resume,
            overwrite=overwrite,
        )
        if config.clusters:
            writer.write_clusters(partition_nodes(graph, config.clusters))
    comm.barrier()
    return writer if comm.rank == 0 else StoreWriter.join(out)


def _unfinished(writer: StoreWriter, comm: AbstractComm) -> list[int]:
    """Shards to compute; every rank checks some, all get the whole list."""
    own = [
        index
        for index in range(comm.rank, writer.num_shards, comm.size)
        if not writer.is_done(index)
    ]
    return sorted(index for indices in comm.allgather(own) for index in indices)


class _Builder:
    """Computes and writes shards."""

    def __init__(
        self,
        engine: Engine,
        totals: NDArray[np.float64],
        writer: StoreWriter,
        roots: NodeIds | None,
        say: Say,
    ) -> None:
        self.engine, self.config, self.comm = engine, engine.config, engine.comm
        self.totals, self.writer, self.roots, self.say = totals, writer, roots, say
        self.cluster_of_node = writer.cluster_of_node
        self.cluster_mass = self._cluster_mass()
        if self.cluster_mass is not None and self.config.diffusion.normalisation == "sym":
            # The very sums of the clusters, so that cut masses add up to the missing mass.
            self.totals = np.asarray(self.cluster_mass.sum(1, dtype=np.float64))

    def _cluster_mass(self) -> NDArray[np.float32] | None:
        if self.cluster_of_node is None:
            return None
        self.say(f"diffusing {self.config.clusters} clusters")
        return cluster_masses(
            self.engine.indptr,
            self.engine.indices,
            self.engine.weight,
            self.cluster_of_node,
            self.config.clusters,
            teleport=self.config.diffusion.teleport,
            steps=_sum_steps(self.engine),
            comm=self.comm,
        )

    def write(self, todo: list[int], method: str) -> None:
        """Writes the shards `todo`, each by one rank."""
        rows = self._sweep() if method == "sweep" else None
        done = self.comm.shared_zeros((self.comm.size,), np.int64)
        total = sum(stop - start for start, stop in map(self.writer.shard_rows, todo))
        silent = self.comm.rank != 0
        with ProgressMeter("write" if rows else "push", "root", total, silent=silent) as meter:
            for index in todo[self.comm.rank :: self.comm.size]:
                start, stop = self.writer.shard_rows(index)
                self._write_shard(index, self._nodes(start, stop), rows)
                done[self.comm.rank] += stop - start
                meter.update(int(done.sum()))
            self.comm.barrier()
            meter.update(total)

    def _sweep(self) -> Rows:
        limit = None if self.engine.steps < 0 else self.engine.steps
        limit = self.config.sweeps or limit
        with ProgressMeter("sweep", "sweep", limit, silent=self.comm.rank != 0) as meter:
            return self.engine.sweep(meter.update)

    def _nodes(self, start: int, stop: int) -> NodeIds:
        return np.arange(start, stop) if self.roots is None else self.roots[start:stop]

    def _write_shard(self, index: int, nodes: NodeIds, all_rows: Rows | None) -> None:
        if all_rows is None:
            rows = self.engine.push(nodes)
        else:
            rows = Rows(all_rows.ids[nodes], all_rows.weights[nodes], all_rows.sizes[nodes])
        cluster_mass = None if self.cluster_mass is None else self.cluster_mass[nodes]
        chunk = self.engine.finish(rows, self.totals[nodes], self.cluster_of_node, cluster_mass)
        self.writer.write_shard(
            index,
            chunk.row_ptr,
            chunk.ids,
            chunk.weights,
            chunk.missing_mass,
            chunk.cluster_mass,
        )
