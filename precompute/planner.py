"""What a build will keep, take and cost, told before it starts; and k or accuracy for a target.

A sample of roots is pushed once. Sample and choices follow from graph, configuration and seed
alone; measured times go into the printed estimate and nowhere else.
"""

import math
import time
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpn_scale.config import PPRConfig
from gpn_scale.data.graph import NodeIds
from gpn_scale.diffusion.transition import steps_to_tolerance
from gpn_scale.errors import ConfigError
from gpn_scale.memory import resident_bytes
from precompute.clusters import COLUMNS_AT_A_TIME
from precompute.coarsening import partition_bytes, partition_seconds
from precompute.engine import UNLIMITED, Engine
from precompute.kernels import Rows, finish_rows_into, push_roots_into, sweep_block_into
from precompute.partition import sweep_blocks
from precompute.workspace import PUSH_BYTES, new_rows, new_work

SAMPLE_ROOTS, FEWEST_ROOTS = 64, 32
"""Roots of a sample; a finer tolerance is not worth a smaller one than the second."""
MAX_K = 4096
"""Largest k that a target mass may ask for."""
TOLERANCES = (1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 3e-7, 1e-7)
"""Pushes that are tried, coarse to fine."""
PLAN_WORK, TARGET_WORK = 1e8, 1e9
"""Edges that sampled pushes may visit, by their bound: about a second; ten to meet a target."""
SWEEP_LOSS = 0.025
"""What sweeps lose beside the cut at k, as a share of that cut (0.013 to 0.025 on one graph)."""
COLUMN_SECONDS, FINISH_SECONDS = 2e-9, 3e-8
"""Per edge, column and step; per entry cut: rough."""


@dataclass(frozen=True, slots=True)
class Target:
    """What the rows must reach: a mean kept mass, or the share found of each exact top k."""

    kind: Literal["mass", "recall"]
    value: float

    def __post_init__(self) -> None:
        if not 0.0 < self.value < 1.0:
            raise ConfigError(f"--target-{self.kind} is {self.value}, expected a number in (0, 1)")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """Bytes of one rank, by what holds them.

    `present` is resident now: interpreter, kernels, graph, transition and totals. `reached` is the
    largest so far: normalising the graph may have taken more. `buffers` are rows on their way into
    `rows` or to disk; `partition` is taken while clusters are found and diffused, before the rows.
    """

    present: int
    reached: int
    transition: int
    totals: int
    rows: int
    scratch: int
    buffers: int
    cluster_masses: int
    partition: int

    @property
    def peak(self) -> int:
        """Largest sum of what is there at one time."""
        building = self.cluster_masses + self.rows + self.scratch + self.buffers
        return max(self.reached, self.present + max(building, self.partition))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A build before it starts; `config` has k, keep and accuracy as they will be used.

    `mean_kept_mass` is the share of its full mass that a row keeps, mean over the sample;
    `seconds` are without compilation.
    """

    config: PPRConfig
    method: str
    num_roots: int
    sampled_roots: int
    mean_kept_mass: float
    seconds: float
    threads: int
    ranks: int
    memory: MemoryPlan
    disk_bytes: int

    @property
    def k(self) -> int:
        """Most entries of a row."""
        return self.config.k

    @property
    def keep(self) -> int:
        """Entries that a row has while it is computed."""
        return self.config.working_entries if self.method == "sweep" else self.config.k

    def table(self) -> str:
        """All of it, a line each."""
        config, memory = self.config, self.memory
        accuracy = f"sweeps until {config.sweep_tolerance:g} of the mass is to come"
        if self.method == "push":
            accuracy = f"tolerance {config.push_tolerance:g}"
        elif config.sweeps or config.diffusion.steps != "inf":
            accuracy = f"{expected_sweeps(config):.0f} sweeps"
        pieces = ("transition", "totals", "rows", "scratch", "buffers", "cluster_masses")
        sizes = [f"{name.replace('_', ' ')} {_size(getattr(memory, name))}" for name in pieces]
        lines = [
            ("method", f"{self.method}, {accuracy}"),
            ("roots", f"{self.num_roots:,}"),
            ("k, keep", f"{self.k}, {self.keep}"),
            ("kept mass", f"{self.mean_kept_mass:.4f} (mean of {self.sampled_roots} roots)"),
            ("seconds", f"{self.seconds:.3g} (without compilation)"),
            ("workers", f"{self.threads} thread(s) x {self.ranks} rank(s)"),
            ("peak memory", f"{_size(memory.peak)}{' a rank' if self.ranks > 1 else ''}"),
            ("", ", ".join(sizes[:3])),
            ("", ", ".join(sizes[3:])),
            ("disk", _size(self.disk_bytes)),
        ]
        return "\n".join(["plan", *(f"  {name:<12} {text}" for name, text in lines)])


def plan_build(
    engine: Engine,
    *,
    roots: NodeIds | None,
    method: str,
    totals: NDArray[np.float64],
    rows_per_shard: int,
    target: Target | None = None,
    sample_roots: int = SAMPLE_ROOTS,
    rng_seed: int = 0,
) -> Plan:
    """Samples roots, settles k and accuracy, and predicts kept mass, time, memory and disk.

    A target replaces k (mass), or keep, sweep gain and push tolerance (recall). `totals` (N,) is
    what every node's full row sums to; `roots` is None for all nodes.

    Raises:
        ConfigError: the target mass cannot be had with `MAX_K` entries.
    """
    config, kind = engine.config, None if target is None else target.kind
    num_roots = engine.num_nodes if roots is None else len(roots)
    work = PLAN_WORK if target is None else TARGET_WORK
    tolerance = config.push_tolerance
    if method == "sweep" or kind == "recall":
        tolerance = finest_tolerance(engine, work, min(sample_roots, FEWEST_ROOTS))
    affordable = int(work / visited_edges(engine, tolerance))
    count = min(sample_roots, num_roots, max(affordable, FEWEST_ROOTS // 2))
    picked = np.sort(np.random.default_rng(rng_seed).choice(num_roots, count, replace=False))
    sample = _Sample(engine, picked if roots is None else roots[picked])
    if target is not None and kind == "recall" and method == "push":
        tolerance = sample.coarsest(tolerance, target.value, config.k)
        config = replace(config, push_tolerance=tolerance)
    elif target is not None and kind == "recall":
        config = accuracy_for_recall(config, target.value)
    curve = sample.curve(tolerance, totals)
    if method == "sweep":
        curve = curve - SWEEP_LOSS * (1.0 - curve)
    if target is not None and kind == "mass":
        config = replace(config, k=smallest_k(curve, target.value))
    rows, seconds_per_root = sample.timed(tolerance)
    entries = np.minimum(rows.sizes, config.k).sum() / max(count, 1)
    disk = disk_bytes(engine.num_nodes, num_roots, entries, config.clusters, rows_per_shard)
    seconds = _seconds(engine, config, method, num_roots, seconds_per_root)
    del sample, rows  # their memory is not part of the build's
    return Plan(
        config=config,
        method=method,
        num_roots=num_roots,
        sampled_roots=count,
        mean_kept_mass=float(curve[config.k - 1]),
        seconds=seconds,
        threads=engine.threads,
        ranks=engine.comm.size,
        memory=plan_memory(engine, config, method, min(rows_per_shard, num_roots)),
        disk_bytes=disk,
    )


def visited_edges(engine: Engine, tolerance: float) -> float:
    """Bound on the edges that one root's push visits, at least 1.

    A push that visits d edges settles t x tolerance x d of a mass of about 1, and ends after
    log(tolerance) / log(1 - t) rounds. A walk goes on from at most 1 / tolerance nodes a step.
    """
    num_edges, teleport = len(engine.indices), engine.config.diffusion.teleport
    if engine.steps == UNLIMITED:
        rounds = steps_to_tolerance(teleport, tolerance)
        return max(1.0, min(1.0 / (teleport * tolerance), num_edges * rounds))
    mean_degree = num_edges / max(engine.num_nodes, 1)
    return max(1.0, engine.steps * min(num_edges, mean_degree / tolerance))


def finest_tolerance(engine: Engine, work: float, num_roots: int) -> float:
    """The finest of `TOLERANCES` at which pushes from so many roots stay within `work`."""
    fitting = [t for t in TOLERANCES if num_roots * visited_edges(engine, t) <= work]
    return min(fitting, default=TOLERANCES[0])


def smallest_k(curve: NDArray[np.float64], target: float) -> int:
    """The smallest k whose mean kept mass, `curve[k - 1]`, reaches the target.

    Raises:
        ConfigError: no k of the curve does.
    """
    reached = np.flatnonzero(curve >= target)
    if not len(reached):
        mass = curve[-1] if len(curve) else 0.0
        raise ConfigError(
            f"--target-mass {target} cannot be had: {len(curve)} entries keep a mean mass of "
            f"{mass:.3f}, expected a target below that; or give --k and account for the mass that "
            "is cut by clusters (--clusters 32: two-level rows)"
        )
    return int(reached[0]) + 1


def accuracy_for_recall(config: PPRConfig, recall: float) -> PPRConfig:
    """Keep and sweep tolerance for a wanted recall of sweeps, which no sample of roots can tell.

    A cautious rule from design.md section 3: 8 sweeps that keep 2 k find 0.954 of the top 32.
    """
    keep = (2 if recall <= 0.95 else 4) * config.k
    tolerance = 8e-3 if recall <= 0.93 else 4e-3 if recall <= 0.95 else 1e-3
    return replace(config, keep=keep, sweep_tolerance=tolerance)


def mean_recall(found: Rows, exact: Rows, k: int) -> float:
    """Share of the first k entries of each row of `exact` that the same row of `found` has."""
    shares = [
        np.isin(exact.ids[i, : min(size, k)], found.ids[i, : min(found.sizes[i], k)]).mean()
        for i, size in enumerate(exact.sizes)
    ]
    return float(np.mean(shares)) if shares else 1.0


class _Sample:
    """Sorted rows of some roots, by pushes in one thread, remembered by tolerance."""

    def __init__(self, engine: Engine, roots: NodeIds) -> None:
        self._engine, self._roots = engine, np.ascontiguousarray(roots, np.int64)
        self._entries = min(engine.num_nodes, max(MAX_K, engine.config.k))
        self._work = new_work(engine.num_nodes, 1, push=True)
        self._done: dict[float, tuple[Rows, float]] = {}
        self._push(self._roots[:1], 0.1)  # compiles

    def _push(self, roots: NodeIds, tolerance: float) -> Rows:
        engine, rows = self._engine, new_rows(len(roots), self._entries)
        matrix = (engine.indptr, engine.indices, engine.weight)
        options = (engine.config.diffusion.teleport, engine.steps, tolerance)
        push_roots_into(roots, *matrix, *options, self._work, *rows)
        return rows

    def timed(self, tolerance: float) -> tuple[Rows, float]:
        """The rows, and the seconds that one took."""
        if tolerance not in self._done:
            start = time.perf_counter()
            rows = self._push(self._roots, tolerance)
            seconds = (time.perf_counter() - start) / max(len(self._roots), 1)
            finish_rows_into(self._entries, *rows)
            self._done[tolerance] = rows, seconds
        return self._done[tolerance]

    def coarsest(self, finest: float, recall: float, k: int) -> float:
        """The coarsest tolerance whose rows find enough of those of the finest."""
        exact = self.timed(finest)[0]
        return next(t for t in TOLERANCES if mean_recall(self.timed(t)[0], exact, k) >= recall)

    def curve(self, tolerance: float, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mean kept share of the full mass for k = 1, 2, ...; rising."""
        if not len(self._roots):
            return np.ones(self._entries)
        kept = np.cumsum(self.timed(tolerance)[0].weights, axis=1, dtype=np.float64)
        return np.asarray((kept / totals[self._roots, None]).mean(0))


def _seconds(
    engine: Engine, config: PPRConfig, method: str, num_roots: int, seconds_per_root: float
) -> float:
    """Time of the build: the rows, the clusters, and finishing the rows."""
    num_edges, keep = len(engine.indices), config.working_entries
    work = num_roots * seconds_per_root
    if method == "sweep":
        work = num_edges * keep * expected_sweeps(config) * seconds_per_entry(engine, keep)
        work += num_roots * keep * FINISH_SECONDS
    steps = engine.steps
    if steps == UNLIMITED:
        steps = steps_to_tolerance(config.diffusion.teleport, config.diffusion.tolerance)
    work += COLUMN_SECONDS * num_edges * config.clusters * steps
    partition = partition_seconds(num_edges) if config.clusters > 1 else 0.0
    return partition + work / (engine.threads * engine.comm.size)


def expected_sweeps(config: PPRConfig) -> float:
    """Sweeps until little is to come: each is worth about 2.2 steps (on ogbn-arxiv)."""
    if config.diffusion.steps != "inf":
        return float(config.diffusion.steps)
    shrink = 2.2 * math.log1p(-config.diffusion.teleport)
    return float(config.sweeps or math.log(config.sweep_tolerance) / shrink)


def seconds_per_entry(engine: Engine, keep: int) -> float:
    """Time of a sweep per edge and kept entry, in one thread, measured on up to 2,000 nodes.

    Degrees are the graph's (cut at 256), rows full and random, from 16 MiB of them.
    """
    table = max(16, (1 << 21) // keep)
    count, rng = min(engine.num_nodes, 2000, table), np.random.default_rng(0)  # ids below N
    degree = np.minimum(rng.choice(np.diff(engine.indptr), count), 256)
    indptr = np.append(0, np.cumsum(degree))
    indices = rng.integers(table, size=indptr[-1], dtype=np.int32)
    weight = np.full(len(indices), 1 / 256, np.float32)
    rows = Rows(
        ids=rng.integers(engine.num_nodes, size=(table, keep), dtype=np.int32),
        weights=rng.random((table, keep), np.float32) + np.float32(0.5),  # positive
        sizes=np.full(table, keep, np.int32),
    )
    work, block = new_work(engine.num_nodes, 1, push=False), new_rows(count, keep)
    teleport, hop = engine.config.diffusion.teleport, engine.steps != UNLIMITED
    starts = []
    for last in (1, count):  # the first call compiles
        starts.append(time.perf_counter())
        sweep_block_into(0, last, indptr, indices, weight, teleport, hop, rows, work, *block)
    return (time.perf_counter() - starts[-1]) / (len(indices) * keep)


def plan_memory(engine: Engine, config: PPRConfig, method: str, shard_rows: int) -> MemoryPlan:
    """Bytes that a build with these settings takes in this rank, beside what is there already."""
    num_nodes, clusters = engine.num_nodes, config.clusters
    present, reached = resident_bytes()
    keep = config.working_entries if method == "sweep" else config.k
    rows = row_bytes(num_nodes, keep) if method == "sweep" else 0
    shard = row_bytes(shard_rows, keep + config.k) + shard_rows * (40 + 14 * clusters)
    scratch, buffers = PUSH_BYTES * num_nodes * engine.threads, shard
    if rows:
        scratch = sweep_scratch_bytes(engine, keep)
        blocks = len(sweep_blocks(num_nodes)) * engine.comm.size
        block = row_bytes(-(-num_nodes // blocks), keep) + 8 * num_nodes
        further = 0 if engine.steps == UNLIMITED else rows  # of the step before
        buffers = max(block + further, shard - scratch)  # scratch is freed before shards are cut
    masses = 4 * num_nodes * (clusters + 1) if clusters else 0
    diffusion = masses + num_nodes * (8 * min(clusters, COLUMNS_AT_A_TIME) + 24)
    finding = partition_bytes(num_nodes, len(engine.indices)) if clusters > 1 else 0
    return MemoryPlan(
        present=present,
        reached=reached,
        transition=engine.indptr.nbytes + engine.indices.nbytes + engine.weight.nbytes,
        totals=8 * num_nodes,
        rows=rows,
        scratch=scratch,
        buffers=buffers,
        cluster_masses=masses,
        partition=max(diffusion, finding) if clusters else 0,
    )


def row_bytes(count: int, entries: int) -> int:
    """Rows with room for so many entries: an id and a weight each, and the row's size."""
    return count * (8 * entries + 4)


def sweep_scratch_bytes(engine: Engine, keep: int) -> int:
    """Pages that sweeps touch: all of `mass`, and lists as long as the longest row gets."""
    longest = int(np.diff(engine.indptr).max(initial=0)) * keep + keep + 1
    return engine.threads * (4 * engine.num_nodes + 12 * min(engine.num_nodes, longest))


def disk_bytes(
    num_nodes: int, num_roots: int, mean_entries: float, clusters: int, rows_per_shard: int
) -> int:
    """Size of the finished store: shards, roots, two numbers a node, JSON (1 kB a shard)."""
    row = 8 * mean_entries + 12 + 2 * clusters + (4 if num_roots < num_nodes else 0)
    files = -(-num_roots // rows_per_shard) + 2
    return round(num_roots * row) + (8 * num_nodes if clusters else 0) + 1000 * files


def _size(num_bytes: int) -> str:
    return f"{num_bytes / 2**20:,.2f} MiB"
