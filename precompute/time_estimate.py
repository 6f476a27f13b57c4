"""Estimate of the time that a build takes, from short measurements on this machine."""

import math
import time

import numpy as np

from gpn_scale.config import PPRConfig
from gpn_scale.diffusion.transition import steps_to_tolerance
from precompute.coarsening import partition_seconds
from precompute.row_engine import UNLIMITED, Method, RowEngine
from precompute.row_kernels import PaddedRows, sweep_block_into
from precompute.scratch_memory import new_rows, new_work

COLUMN_SECONDS, FINISH_SECONDS = 1.2e-9, 3e-8
"""Rough times per edge, column and step of the diffusion of clusters, and per finished entry."""


def estimate_seconds(
    engine: RowEngine,
    config: PPRConfig,
    method: Method,
    num_roots: int,
    seconds_per_root: float,
    *,
    partition: bool = True,
) -> float:
    """Return an estimate of the seconds of a build: clusters, rows, and finishing the rows.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.diffusion.transition import transition_matrix
    >>> from precompute.mpi import SingleProcess
    >>> S = transition_matrix(build_graph([0, 1], [1, 2]), "rw", self_loops=True)
    >>> config = PPRConfig(k=2, clusters=0)
    >>> engine = RowEngine(S, config, SingleProcess(), threads=1)
    >>> estimate_seconds(engine, config, "push", num_roots=3, seconds_per_root=0.5)
    1.5

    Args:
        engine: The engine of the build.
        config: Settings of the build.
        method: How rows are computed.
        num_roots: Number of rows.
        seconds_per_root: Measured time of one push in one thread.
        partition: Whether the graph is divided into clusters.
    """
    num_edges, keep = len(engine.indices), config.working_entries
    work = num_roots * seconds_per_root
    if method == "sweep":
        work = num_edges * keep * expected_sweeps(config) * seconds_per_entry(engine, keep)
        work += num_roots * keep * FINISH_SECONDS
    steps = engine.steps
    if steps == UNLIMITED:
        steps = steps_to_tolerance(config.diffusion.teleport, config.diffusion.tolerance)
    work += COLUMN_SECONDS * num_edges * config.clusters * steps
    partitioning = partition_seconds(num_edges) if partition and config.clusters > 1 else 0.0
    return partitioning + work / (engine.threads * engine.comm.size)


def expected_sweeps(config: PPRConfig) -> float:
    """Return the expected number of sweeps; each is worth about 2.2 steps (on ogbn-arxiv).

    >>> from gpn_scale.config import DiffusionConfig
    >>> expected_sweeps(PPRConfig(diffusion=DiffusionConfig(steps=10)))
    10.0
    """
    if config.diffusion.steps != "inf":
        return float(config.diffusion.steps)
    shrink = 2.2 * math.log1p(-config.diffusion.teleport)
    return float(config.sweeps or math.log(config.sweep_tolerance) / shrink)


def seconds_per_entry(engine: RowEngine, keep: int) -> float:
    """Return the measured seconds of a sweep per edge and kept entry, in one thread.

    The measurement covers up to 2,000 nodes with degrees of the graph (at most 256), whose rows are
    full and random, in a table of 4 MiB, since neighbours are close to each other in sweep order.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.diffusion.transition import transition_matrix
    >>> from precompute.mpi import SingleProcess
    >>> S = transition_matrix(build_graph([0, 1], [1, 2]), "rw", self_loops=True)
    >>> engine = RowEngine(S, PPRConfig(k=2), SingleProcess(), threads=1)
    >>> seconds_per_entry(engine, keep=4) > 0.0
    True
    """
    table = max(16, (1 << 19) // keep)
    count, rng = min(engine.num_nodes, 2000, table), np.random.default_rng(0)  # ids below N
    degree = np.minimum(rng.choice(np.diff(engine.indptr), count), 256)
    indptr = np.append(0, np.cumsum(degree))
    indices = rng.integers(table, size=indptr[-1], dtype=np.int32)
    weight = np.full(len(indices), 1 / 256, np.float32)
    rows = PaddedRows(
        ids=rng.integers(engine.num_nodes, size=(table, keep), dtype=np.int32),
        weights=rng.random((table, keep), np.float32) + np.float32(0.5),  # positive
        sizes=np.full(table, keep, np.int32),
    )
    work, block = new_work(engine.num_nodes, 1, push=False), new_rows(count, keep)
    teleport, hop = engine.config.diffusion.teleport, engine.steps != UNLIMITED
    starts = []
    for last in (1, count):  # the first call compiles the kernel
        starts.append(time.perf_counter())
        sweep_block_into(0, last, indptr, indices, weight, teleport, hop, rows, work, *block)
    return (time.perf_counter() - starts[-1]) / (len(indices) * keep)
