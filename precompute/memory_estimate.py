"""Estimates of the memory that a build needs per rank, and of the size of its store on disk."""

from dataclasses import dataclass

import numpy as np

from gpn_scale.config import PPRConfig
from gpn_scale.memory import resident_bytes
from precompute.coarsening import partition_bytes
from precompute.exact_mass import COLUMNS_AT_A_TIME
from precompute.node_ranges import sweep_blocks
from precompute.row_engine import UNLIMITED, Method, RowEngine
from precompute.scratch_memory import PUSH_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """Bytes that one rank needs, by purpose.

    >>> names = ("transition", "totals", "rows", "scratch", "buffers", "mass_by_cluster")
    >>> sizes = dict.fromkeys(names, 10)
    >>> MemoryEstimate(present=100, reached=120, partition=30, **sizes).peak  # 100 + 4 x 10
    140
    """

    present: int
    """Memory in use now: interpreter, kernels, graph, transition and totals."""
    reached: int
    """Peak so far; normalising the graph may have needed more than `present`."""
    transition: int
    """The transition matrix."""
    totals: int
    """Mass of every node's full row."""
    rows: int
    """Rows of all nodes during sweeps, and S in their order."""
    scratch: int
    """Scratch memory of the kernels."""
    buffers: int
    """Rows that are being copied into `rows` or written to disk."""
    mass_by_cluster: int
    """Mass of every node's full row per cluster."""
    partition: int
    """Peak while clusters are computed and diffused, before rows are computed."""
    freed: int = 0
    """Part of `present` that is freed before rows are computed."""

    @property
    def peak(self) -> int:
        """Largest sum of what is in memory at the same time."""
        building = self.mass_by_cluster + self.rows + self.scratch + self.buffers
        return max(self.reached, self.present + max(building - self.freed, self.partition))


def estimate_memory(
    engine: RowEngine,
    config: PPRConfig,
    method: Method,
    shard_rows: int,
    part_rows: int | None = None,
) -> MemoryEstimate:
    """Return an estimate of the bytes that a build with these settings needs in this rank.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.diffusion.transition import transition_matrix
    >>> from precompute.mpi import SingleProcess
    >>> S = transition_matrix(build_graph([0, 1], [1, 2]), "rw", self_loops=True)
    >>> config = PPRConfig(k=2)
    >>> engine = RowEngine(S, config, SingleProcess(), threads=1)
    >>> estimate_memory(engine, config, "sweep", shard_rows=3).rows  # 3 rows of 4 entries, 7 edges
    212

    Args:
        engine: The engine of the build, which is in memory already.
        config: Settings of the build.
        method: How rows are computed.
        shard_rows: Rows of the largest shard.
        part_rows: Rows of the part that is computed, whose mass by cluster is kept; None for all.
    """
    num_nodes, clusters = engine.num_nodes, config.clusters
    present, reached = resident_bytes()
    keep = config.working_entries if method == "sweep" else config.k
    rows = row_bytes(num_nodes, keep) if method == "sweep" else 0
    ordered = 16 * num_nodes + 8 * len(engine.indices) if rows else 0
    shard = row_bytes(shard_rows, keep + config.k) + shard_rows * (40 + 30 * clusters)
    scratch, buffers = PUSH_BYTES * num_nodes * engine.threads, shard
    if rows:
        scratch = sweep_scratch_bytes(engine, keep)
        blocks = len(sweep_blocks(num_nodes)) * engine.comm.size
        block = row_bytes(-(-num_nodes // blocks), keep) + 8 * num_nodes
        former_rows = 0 if engine.steps == UNLIMITED else rows  # rows of the previous step
        # Scratch memory is freed before rows are written to shards.
        buffers = max(block + former_rows, shard - scratch)
    kept_rows = num_nodes if part_rows is None else part_rows
    masses = 4 * (kept_rows * clusters + num_nodes) if clusters else 0
    columns = min(clusters, COLUMNS_AT_A_TIME)
    diffusion = masses + num_nodes * (16 * columns + 40) + 12 * len(engine.indices)
    if part_rows is not None:
        diffusion += 5 * num_nodes * columns  # the columns themselves, and how they are made
    clustering = partition_bytes(num_nodes, len(engine.indices)) if clusters > 1 else 0
    return MemoryEstimate(
        present=present,
        reached=reached,
        transition=engine.indptr.nbytes + engine.indices.nbytes + engine.weight.nbytes,
        totals=8 * num_nodes,
        rows=rows + ordered,
        scratch=scratch,
        buffers=buffers,
        mass_by_cluster=masses,
        partition=max(diffusion, clustering) if clusters else 0,
        freed=0 if engine.exact_weight is None else engine.exact_weight.nbytes,
    )


def row_bytes(count: int, entries: int) -> int:
    """Return the size of padded rows: an id and a weight per entry, and the row's size.

    >>> row_bytes(count=3, entries=4)
    108
    """
    return count * (8 * entries + 4)


def sweep_scratch_bytes(engine: RowEngine, keep: int) -> int:
    """Return the bytes that sweeps touch: `place`, and lists as long as the longest row.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.diffusion.transition import transition_matrix
    >>> from precompute.mpi import SingleProcess
    >>> S = transition_matrix(build_graph([0, 1], [1, 2]), "rw", self_loops=True)
    >>> engine = RowEngine(S, PPRConfig(k=2), SingleProcess(), threads=1)
    >>> sweep_scratch_bytes(engine, keep=4)  # 16 bytes for each of 3 nodes
    48
    """
    longest = int(np.diff(engine.indptr).max(initial=0)) * keep + keep + 1
    return engine.threads * (4 * engine.num_nodes + 12 * min(engine.num_nodes, longest))


def disk_bytes(
    num_nodes: int,
    num_roots: int,
    mean_entries: float,
    clusters: int,
    rows_per_shard: int,
    structure_bytes: int = 0,
) -> int:
    """Return the size of the store: shards, roots, two numbers per node, JSON (1 kB per shard).

    `structure_bytes` is the size of the graph's structure, which is kept with the rows.

    >>> disk_bytes(1000, 1000, mean_entries=8.0, clusters=0, rows_per_shard=256)
    82000
    """
    row = 8 * mean_entries + 12 + 2 * clusters + (4 if num_roots < num_nodes else 0)
    files = -(-num_roots // rows_per_shard) + 2
    return (
        round(num_roots * row) + (8 * num_nodes if clusters else 0) + 1000 * files + structure_bytes
    )
