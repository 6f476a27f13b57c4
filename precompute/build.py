"""Build of a store from a graph and a configuration: planning, resuming, and writing shards."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.config import PPRConfig
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.diffusion.transition import transition_matrix
from gpn_scale.ppr.claiming import Existing
from gpn_scale.ppr.stored_graph import structure_bytes
from gpn_scale.ppr.writer import StoreWriter
from precompute.accuracy_targets import Target
from precompute.clusters import partition_nodes
from precompute.limits import check_row_sizes
from precompute.mpi import AbstractComm, SingleProcess, check_same_graph
from precompute.parts import Part, PartProgress, checked_part
from precompute.plan import Plan, plan_build
from precompute.resources import Resources, default_resources
from precompute.row_engine import RowEngine, chosen_method, compiled_before
from precompute.row_sums import row_totals, total_mass
from precompute.scratch_memory import plan_slots
from precompute.shard_builder import BuildClock, Say, ShardBuilder

ENGINE_VERSION = 6
"""Format version in a store's parameters; increased when the same parameters give other bytes."""


def store_parameters(config: PPRConfig, method: str) -> dict[str, Any]:
    """Return the parameters, besides the graph, that determine the rows, for the manifest.

    >>> store_parameters(PPRConfig(k=32), "sweep")["keep"]
    64
    """
    diffusion = config.diffusion
    parameters = {"engine": ENGINE_VERSION, **diffusion.store_parameters, "method": method}
    if method == "push":
        return parameters | {"push_tolerance": config.push_tolerance}
    parameters["keep"] = config.working_entries
    if diffusion.steps == "inf":
        parameters |= {"sweeps": config.sweeps, "sweep_tolerance": config.sweep_tolerance}
    return parameters


def rows_per_shard(num_roots: int) -> int:
    """Return the number of rows per shard, which depends on the number of roots only.

    >>> rows_per_shard(num_roots=100_000)
    1563
    """
    return int(np.clip(-(-num_roots // 64), 256, 1 << 16))


def plan_store(
    graph: Graph,
    config: PPRConfig,
    *,
    roots: NodeIds | None = None,
    comm: AbstractComm | None = None,
    resources: Resources | None = None,
    say: Say | None = None,
    target: Target | None = None,
    part: tuple[int, int] | None = None,
) -> Plan:
    """Return the plan of a build without writing anything; arguments as in `build_store`.

    >>> from gpn_scale import build_graph
    >>> plan = plan_store(build_graph([0, 1], [1, 2]), PPRConfig(k=2, clusters=0))
    >>> plan.method, plan.num_roots
    ('sweep', 3)
    """
    comm = comm or SingleProcess()
    resources = resources or default_resources(comm.size)
    own, config, _ = checked_part(part, config, "refuse", comm.size)
    return _prepare(graph, config, roots, comm, resources, say or _silent, target, own).plan


def build_store(
    graph: Graph,
    config: PPRConfig,
    out: Path | str,
    *,
    roots: NodeIds | None = None,
    comm: AbstractComm | None = None,
    resources: Resources | None = None,
    existing: Existing = "refuse",
    say: Say | None = None,
    target: Target | None = None,
    part: tuple[int, int] | None = None,
) -> Plan:
    """Compute the rows of `roots`, write them to the directory `out`, and return the plan.

    A resumed build keeps the shards of `out` that are intact.

    Args:
        graph: The graph, the same in all ranks.
        config: The diffusion, and the size and accuracy of rows.
        out: Directory of the store.
        roots: Sorted node ids; None for all nodes.
        comm: The ranks that share the work; None for this process alone.
        resources: Threads and memory to use; None for all that this machine has free.
        existing: What to do with an existing store in `out`: `refuse`, `resume` or `overwrite`.
        say: Called with the plan and other messages; None prints nothing.
        target: A target that replaces k or the accuracy of `config`.
        part: (i, n) to push and write only the shards of part i of n, numbered from 1. Any number
            of processes may then write to `out`, and `precompute.parts.finish_store` completes
            the store. A part of the same build is always resumed.

    Raises:
        ConfigError: the configuration is not possible with this graph, memory, target or part.
        GraphError: ranks have different graphs.
        StoreError: the directory cannot be used.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale import PPRStore, build_graph
    >>> with TemporaryDirectory() as folder:
    ...     plan = build_store(build_graph([0, 1], [1, 2]), PPRConfig(k=2, clusters=0), folder)
    ...     PPRStore.open(folder).row(0)[0].tolist()
    [0, 1]
    """
    began = time.monotonic()
    comm, say = comm or SingleProcess(), say or _silent
    resources = resources or default_resources(comm.size)
    own, config, existing = checked_part(part, config, existing, comm.size)
    prepared = _prepare(graph, config, roots, comm, resources, say, target, own)
    engine, plan = prepared.engine, prepared.plan
    engine.config = plan.config
    writer = _open_writer(graph, plan, Path(out), roots, comm, existing)
    if own is not None:
        _write_part(prepared, graph, PartProgress(writer, own), roots, say, began)
        return plan
    clock = BuildClock(writer, began, active=comm.rank == 0)
    todo = _unfinished(writer, comm)
    if todo:
        clock.record()
        ShardBuilder(engine, plan.method, prepared.totals, graph, writer, roots, say, clock).write(
            todo
        )
    comm.barrier()
    if comm.rank == 0:
        was_complete = writer.is_complete
        writer.finish(total_mass(engine, roots) if plan.config.clusters else None)
        if not was_complete:
            clock.record()
    comm.barrier()
    return plan


@dataclass(frozen=True, slots=True, eq=False)
class _Prepared:
    """A build that is ready to start."""

    engine: RowEngine
    totals: NDArray[np.float64]
    """Mass of every node's full row, (N,)."""
    plan: Plan


def _prepare(
    graph: Graph,
    config: PPRConfig,
    roots: NodeIds | None,
    comm: AbstractComm,
    resources: Resources,
    say: Say,
    target: Target | None,
    part: Part | None,
) -> _Prepared:
    check_same_graph(graph, comm)
    k_is_given = target is None or target.kind != "mass"
    check_row_sizes(config, graph.num_nodes, k_is_given=k_is_given)
    num_roots = graph.num_nodes if roots is None else len(roots)
    method = chosen_method(config, num_roots, graph.num_nodes)
    slots = plan_slots(
        graph.num_nodes, resources.threads, resources.memory_bytes, push=method == "push"
    ).slots
    if slots < resources.threads:
        say(f"using {slots} of {resources.threads} threads, since scratch memory is limited")
    if not compiled_before(method):
        say("compiling the kernels; this takes about half a minute, only the first time")
    diffusion = config.diffusion
    transition = transition_matrix(graph, diffusion.normalisation, diffusion.self_loops)
    engine = RowEngine(transition, config, comm, threads=slots)
    del transition  # the engine keeps its weights as long as exact sums need them
    totals = row_totals(engine)
    if not config.clusters:
        engine.release_exact_weight()
    plan = None
    if comm.rank == 0:  # so that all ranks build with the same numbers
        shard = rows_per_shard(num_roots)
        plan = plan_build(
            engine,
            roots=roots,
            method=method,
            totals=totals,
            rows_per_shard=shard,
            target=target,
            part=part,
            structure_bytes=structure_bytes(graph),
        )
    plan = comm.broadcast(plan)
    assert plan is not None
    say(plan.table())
    return _Prepared(engine, totals, plan)


def _write_part(
    prepared: _Prepared,
    graph: Graph,
    progress: PartProgress,
    roots: NodeIds | None,
    say: Say,
    began: float,
) -> None:
    """Write the missing or damaged shards of a part, and the arrays that `finish_store` needs."""
    if progress.is_over:
        say(f"part {progress.part} has nothing to compute")
        return
    clock = BuildClock(progress, began, active=True)
    clock.record()
    engine = prepared.engine
    progress.share_arrays(
        lambda: partition_nodes(graph, engine.config.clusters),
        lambda: total_mass(engine, roots),
    )
    if todo := progress.todo:
        ShardBuilder(
            engine,
            prepared.plan.method,
            prepared.totals,
            graph,
            progress.writer,
            roots,
            say,
            clock,
            part_rows=prepared.plan.rows,
        ).write(todo)
    clock.record()


def _silent(text: str) -> None:
    """Discard a message."""


def _open_writer(
    graph: Graph,
    plan: Plan,
    out: Path,
    roots: NodeIds | None,
    comm: AbstractComm,
    existing: Existing,
) -> StoreWriter:
    """Let rank 0 claim the directory and write the clusters; the others join."""
    config = plan.config
    if comm.rank == 0:
        writer = StoreWriter.begin(
            out,
            graph_fingerprint=graph.structure_fingerprint(),
            parameters=store_parameters(config, plan.method),
            num_nodes=graph.num_nodes,
            roots=roots,
            num_clusters=config.clusters,
            rows_per_shard=rows_per_shard(plan.num_roots),
            k=config.k,
            existing=existing,
            graph=graph,
        )
        if config.clusters and plan.part is None:
            writer.write_clusters(partition_nodes(graph, config.clusters))
    comm.barrier()
    return writer if comm.rank == 0 else StoreWriter.join(out)


def _unfinished(writer: StoreWriter, comm: AbstractComm) -> list[int]:
    """Return the shards to compute; each rank checks some of them, and all get the full list."""
    own = [
        index
        for index in range(comm.rank, writer.num_shards, comm.size)
        if not writer.is_done(index)
    ]
    return sorted(index for indices in comm.allgather(own) for index in indices)
