"""Plan of a build: its settings, and estimates of kept mass, time, memory and disk space."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.config import PPRConfig
from gpn_scale.data.graph import NodeIds
from precompute.accuracy_targets import SAMPLE_ROOTS, Target, choose_settings
from precompute.memory_estimate import MemoryEstimate, disk_bytes, estimate_memory
from precompute.parts import Part
from precompute.row_engine import Method, RowEngine
from precompute.time_estimate import estimate_seconds, expected_sweeps


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A build before it starts.

    >>> from gpn_scale import build_graph
    >>> from precompute.build import plan_store
    >>> plan = plan_store(build_graph([0, 1], [1, 2]), PPRConfig(k=2, clusters=0))
    >>> plan.k, plan.keep, plan.num_roots
    (2, 4, 3)
    """

    config: PPRConfig
    """Final settings, with the chosen k, keep and accuracy."""
    method: Method
    """How rows are computed."""
    num_roots: int
    """Number of rows."""
    sampled_roots: int
    """Number of sampled roots on which the estimates are based."""
    mean_kept_mass: float
    """Mean fraction of its full mass that a row keeps."""
    seconds: float
    """Time of the build or part without compilation."""
    threads: int
    """Threads per rank."""
    ranks: int
    """Number of ranks."""
    memory: MemoryEstimate
    """Memory of one rank."""
    disk_bytes: int
    """Size of the store, or of a part with the arrays that all parts of a directory share."""
    rows_per_shard: int
    """Rows of each shard but the last."""
    part: Part | None = None
    """The part of the build that is computed; None for all of it."""

    @property
    def rows(self) -> tuple[int, int]:
        """The first root position that is computed, and the one after the last."""
        if self.part is None:
            return 0, self.num_roots
        return self.part.rows(self.num_roots, self.rows_per_shard)

    @property
    def k(self) -> int:
        """Largest number of entries of a stored row."""
        return self.config.k

    @property
    def keep(self) -> int:
        """Number of entries of a row while it is computed."""
        return self.config.working_entries if self.method == "sweep" else self.config.k

    def table(self) -> str:
        """Return the plan as text, one line per topic."""
        memory = self.memory
        pieces = ("transition", "totals", "rows", "scratch", "buffers", "mass_by_cluster")
        sizes = [f"{name.replace('_', ' ')} {_size(getattr(memory, name))}" for name in pieces]
        lines = [
            ("method", f"{self.method}, {self._accuracy()}"),
            ("roots", f"{self.num_roots:,}"),
            ("k, keep", f"{self.k}, {self.keep}"),
            ("kept mass", f"{self.mean_kept_mass:.4f} (mean of {self.sampled_roots} roots)"),
            *self._part_lines(),
            ("seconds", f"{self.seconds:.3g} (without compilation)"),
            ("workers", f"{self.threads} thread(s) x {self.ranks} rank(s)"),
            ("peak memory", f"{_size(memory.peak)}{' per rank' if self.ranks > 1 else ''}"),
            ("", ", ".join(sizes[:3])),
            ("", ", ".join(sizes[3:])),
            ("disk", _size(self.disk_bytes)),
        ]
        return "\n".join(["plan", *(f"  {name:<12} {text}" for name, text in lines)])

    def _part_lines(self) -> list[tuple[str, str]]:
        if self.part is None:
            return []
        start, stop = self.rows
        num_shards = -(-self.num_roots // self.rows_per_shard)
        shards = self.part.shards(num_shards)
        text = f"{self.part}: {stop - start:,} rows in {len(shards)} of {num_shards} shards"
        return [("part", f"{text}; the lines below describe this part")]

    def _accuracy(self) -> str:
        config = self.config
        if self.method == "push":
            return f"tolerance {config.push_tolerance:g}"
        if config.sweeps or config.diffusion.steps != "inf":
            return f"{expected_sweeps(config):.0f} sweeps"
        return f"sweeps until less than {config.sweep_tolerance:g} of the mass is missing"


def plan_build(
    engine: RowEngine,
    *,
    roots: NodeIds | None,
    method: Method,
    totals: NDArray[np.float64],
    rows_per_shard: int,
    target: Target | None = None,
    part: Part | None = None,
    structure_bytes: int = 0,
    sample_roots: int = SAMPLE_ROOTS,
) -> Plan:
    """Choose the settings of a build, and estimate its kept mass, time, memory and disk space.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.diffusion.transition import transition_matrix
    >>> from precompute.mpi import SingleProcess
    >>> S = transition_matrix(build_graph([0, 1], [1, 2]), "rw", self_loops=True)
    >>> engine = RowEngine(S, PPRConfig(k=3), SingleProcess(), threads=1)
    >>> options = {"method": "push", "totals": np.ones(3), "rows_per_shard": 256}
    >>> round(plan_build(engine, roots=None, **options).mean_kept_mass, 3)  # 3 of 3 nodes
    1.0

    Args:
        engine: The engine of the build.
        roots: The roots; None for all nodes.
        method: How rows will be computed.
        totals: Mass of every node's full row, (N,).
        rows_per_shard: Rows of each shard but the last.
        target: What the rows must reach; None to leave the configuration as it is.
        part: The part that will be computed, to which time, memory and disk space refer; None for
            the whole build. The settings do not depend on it.
        structure_bytes: Size of the graph's structure, which a store keeps.
        sample_roots: Largest number of sampled roots.

    Raises:
        ConfigError: the target mass cannot be reached.
    """
    num_roots = engine.num_nodes if roots is None else len(roots)
    choice = choose_settings(engine, roots, method, totals, target, sample_roots=sample_roots)
    config, num_rows = choice.config, num_roots
    if part is not None:
        start, stop = part.rows(num_roots, rows_per_shard)
        num_rows = stop - start
    disk = disk_bytes(
        engine.num_nodes,
        num_rows,
        choice.mean_entries,
        config.clusters,
        rows_per_shard,
        structure_bytes,
    )
    if part is not None and config.clusters:
        disk += 4 * engine.num_nodes  # the total mass of nodes is kept until the store is finished
    shard_rows = min(rows_per_shard, num_rows)
    part_rows = None if part is None else num_rows
    return Plan(
        config=config,
        method=method,
        num_roots=num_roots,
        sampled_roots=choice.num_sampled,
        mean_kept_mass=float(choice.kept_mass[config.k - 1]),
        seconds=estimate_seconds(engine, config, method, num_rows, choice.seconds_per_root),
        threads=engine.threads,
        ranks=engine.comm.size,
        memory=estimate_memory(engine, config, method, shard_rows, part_rows),
        disk_bytes=disk,
        rows_per_shard=rows_per_shard,
        part=part,
    )


def _size(num_bytes: int) -> str:
    return f"{num_bytes / 2**20:,.2f} MiB"
