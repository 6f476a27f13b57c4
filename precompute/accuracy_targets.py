"""Choice of k, or of the accuracy, that reaches a target on a sample of roots.

The sample is pushed once. The sample and the choice depend only on graph, configuration and seed;
measured times are only used for estimates.
"""

import time
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpn_scale.config import PPRConfig
from gpn_scale.data.graph import NodeIds
from gpn_scale.diffusion.transition import steps_to_tolerance
from gpn_scale.errors import ConfigError
from precompute.padded_row_kernels import finish_rows_into
from precompute.push_kernels import push_roots_into
from precompute.row_engine import UNLIMITED, Method, RowEngine
from precompute.row_kernels import PaddedRows
from precompute.scratch_memory import new_rows, new_work

SAMPLE_ROOTS, FEWEST_ROOTS = 64, 32
"""Number of sampled roots, and its lower limit when fewer roots would allow a finer tolerance."""
MAX_K = 4096
"""Largest k that is chosen for a target mass."""
TOLERANCES = (1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 3e-7, 1e-7)
"""Tolerances of sampled pushes, from coarse to fine."""
PLAN_WORK, TARGET_WORK = 1e8, 1e9
"""Bounds on the edges that sampled pushes visit: about one second, or ten to reach a target."""
SWEEP_LOSS = 0.025
"""Mass that sweeps lose besides the cut at k, as a fraction of it (0.013 to 0.025 on one graph)."""


@dataclass(frozen=True, slots=True)
class Target:
    """A goal for the rows: a mean kept mass, or a recall of each exact top k.

    >>> Target("mass", 0.9)
    Target(kind='mass', value=0.9)
    """

    kind: Literal["mass", "recall"]
    value: float

    def __post_init__(self) -> None:
        if not 0.0 < self.value < 1.0:
            raise ConfigError(
                f"the target {self.kind} is {self.value}, expected a number in (0, 1)",
                arguments=("target",),
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampledChoice:
    """Settings that reach the target, and properties of the sampled rows.

    >>> choice = SampledChoice(
    ...     config=PPRConfig(k=2),
    ...     num_sampled=1,
    ...     kept_mass=np.array([0.5, 0.75]),
    ...     mean_entries=2.0,
    ...     seconds_per_root=1e-3,
    ... )
    >>> float(choice.kept_mass[choice.config.k - 1])
    0.75
    """

    config: PPRConfig
    """Final settings, with the chosen k, keep and accuracy."""
    num_sampled: int
    """Number of sampled roots."""
    kept_mass: NDArray[np.float64]
    """Mean fraction of its full mass that a row keeps, for k = 1, 2, ...; never decreases."""
    mean_entries: float
    """Mean number of entries that a row has."""
    seconds_per_root: float
    """Time of one push in one thread."""


def choose_settings(
    engine: RowEngine,
    roots: NodeIds | None,
    method: Method,
    totals: NDArray[np.float64],
    target: Target | None = None,
    *,
    sample_roots: int = SAMPLE_ROOTS,
    rng_seed: int = 0,
) -> SampledChoice:
    """Choose settings that reach the target, by pushing a sample of the roots.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.diffusion.transition import transition_matrix
    >>> from precompute.mpi import SingleProcess
    >>> S = transition_matrix(build_graph([0, 1, 2], [1, 2, 3]), "rw", self_loops=True)
    >>> engine = RowEngine(S, PPRConfig(k=1), SingleProcess(), threads=1)
    >>> choose_settings(engine, None, "push", np.ones(4), Target("mass", 0.9)).config.k
    3

    Args:
        engine: The engine of the build.
        roots: The roots; None for all nodes.
        method: How rows will be computed.
        totals: Mass of every node's full row, (N,).
        target: A target mass replaces k; a target recall replaces keep and the tolerances.
        sample_roots: Largest number of sampled roots.
        rng_seed: Seed of the sample.

    Raises:
        ConfigError: even `MAX_K` entries do not reach the target mass.
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
    sample = RootSample(engine, picked if roots is None else roots[picked])
    if target is not None and kind == "recall" and method == "push":
        tolerance = sample.coarsest(tolerance, target.value, config.k)
        config = replace(config, push_tolerance=tolerance)
    elif target is not None and kind == "recall":
        config = accuracy_for_recall(config, target.value)
    kept_mass = sample.kept_mass(tolerance, totals)
    if method == "sweep":
        kept_mass = kept_mass - SWEEP_LOSS * (1.0 - kept_mass)
    if target is not None and kind == "mass":
        config = replace(config, k=smallest_k(kept_mass, target.value))
    rows, seconds_per_root = sample.timed(tolerance)
    return SampledChoice(
        config=config,
        num_sampled=count,
        kept_mass=kept_mass,
        mean_entries=float(np.minimum(rows.sizes, config.k).sum() / max(count, 1)),
        seconds_per_root=seconds_per_root,
    )


def visited_edges(engine: RowEngine, tolerance: float) -> float:
    """Return a bound on the edges that the push of one root visits, at least 1.

    A push that visits d edges distributes t x tolerance x d of a mass of about 1, and ends after
    log(tolerance) / log(1 - t) rounds. K steps continue from at most 1 / tolerance nodes each.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.config import DiffusionConfig
    >>> from gpn_scale.diffusion.transition import transition_matrix
    >>> from precompute.mpi import SingleProcess
    >>> S = transition_matrix(build_graph([0, 1], [1, 2]), "rw", self_loops=True)
    >>> config = PPRConfig(k=2, diffusion=DiffusionConfig(steps=3))
    >>> engine = RowEngine(S, config, SingleProcess(), threads=1)
    >>> visited_edges(engine, tolerance=1e-4)  # 3 steps x 7 edges, loops included
    21
    """
    num_edges, teleport = len(engine.indices), engine.config.diffusion.teleport
    if engine.steps == UNLIMITED:
        rounds = steps_to_tolerance(teleport, tolerance)
        return max(1.0, min(1.0 / (teleport * tolerance), num_edges * rounds))
    mean_degree = num_edges / max(engine.num_nodes, 1)
    return max(1.0, engine.steps * min(num_edges, mean_degree / tolerance))


def finest_tolerance(engine: RowEngine, work: float, num_roots: int) -> float:
    """Return the finest of `TOLERANCES` with which pushes from `num_roots` stay within `work`.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.diffusion.transition import transition_matrix
    >>> from precompute.mpi import SingleProcess
    >>> S = transition_matrix(build_graph([0, 1], [1, 2]), "rw", self_loops=True)
    >>> engine = RowEngine(S, PPRConfig(k=2), SingleProcess(), threads=1)
    >>> finest_tolerance(engine, work=1e6, num_roots=3)
    1e-07
    """
    fitting = [t for t in TOLERANCES if num_roots * visited_edges(engine, t) <= work]
    return min(fitting, default=TOLERANCES[0])


def smallest_k(kept_mass: NDArray[np.float64], target: float) -> int:
    """Return the smallest k whose mean kept mass, `kept_mass[k - 1]`, reaches the target.

    >>> smallest_k(np.array([0.5, 0.75, 0.9]), target=0.7)
    2

    Raises:
        ConfigError: no k reaches the target.
    """
    reached = np.flatnonzero(kept_mass >= target)
    if not len(reached):
        largest = kept_mass[-1] if len(kept_mass) else 0.0
        raise ConfigError(
            f"the target mass {target} cannot be reached: even {len(kept_mass)} entries per row "
            f"keep a mean mass of only {largest:.3f}; choose a smaller target, or set k and let "
            "clusters account for the cut mass (clusters=32)",
            arguments=("target", "k", "clusters"),
        )
    return int(reached[0]) + 1


def accuracy_for_recall(config: PPRConfig, recall: float) -> PPRConfig:
    """Return sweep settings for a target recall, which a sample of roots cannot determine.

    The rule is cautious: on a graph of ogbn-arxiv's size, sweeps with the default tolerance that
    keep 2 k entries find 0.96 of the exact top 32 (benchmarks/results/ppr_2cores_202611.md).

    >>> config = accuracy_for_recall(PPRConfig(k=32), recall=0.99)
    >>> config.keep, config.sweep_tolerance
    (128, 0.001)
    """
    keep = (2 if recall <= 0.95 else 4) * config.k
    tolerance = 8e-3 if recall <= 0.93 else 4e-3 if recall <= 0.95 else 1e-3
    return replace(config, keep=keep, sweep_tolerance=tolerance)


def mean_recall(rows: PaddedRows, exact: PaddedRows, k: int) -> float:
    """Return the mean fraction of an exact row's first k entries that `rows` has in its first k.

    >>> exact, rows = new_rows(1, entries=2), new_rows(1, entries=2)
    >>> exact.ids[0], rows.ids[0] = [5, 7], [7, 8]
    >>> exact.sizes[0] = rows.sizes[0] = 2
    >>> mean_recall(rows, exact, k=2)
    0.5
    """
    recalls = [
        np.isin(exact.ids[i, : min(size, k)], rows.ids[i, : min(rows.sizes[i], k)]).mean()
        for i, size in enumerate(exact.sizes)
    ]
    return float(np.mean(recalls)) if recalls else 1.0


class RootSample:
    """Sorted rows of some roots, pushed in one thread and computed once per tolerance.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.diffusion.transition import transition_matrix
    >>> from precompute.mpi import SingleProcess
    >>> S = transition_matrix(build_graph([0, 1], [1, 2]), "rw", self_loops=True)
    >>> engine = RowEngine(S, PPRConfig(k=2), SingleProcess(), threads=1)
    >>> sample = RootSample(engine, np.array([0, 2]))
    >>> sample.kept_mass(1e-6, totals=np.ones(3)).round(3)[-1:]  # three entries are everything
    array([1.])
    """

    def __init__(self, engine: RowEngine, roots: NodeIds) -> None:
        self._engine, self._roots = engine, np.ascontiguousarray(roots, np.int64)
        self._entries = min(engine.num_nodes, max(MAX_K, engine.config.k))
        self._work = new_work(engine.num_nodes, 1, push=True)
        for array in self._work:
            array.fill(0)  # map the pages before the clock starts
        self._done: dict[float, tuple[PaddedRows, float]] = {}
        self._push(self._roots[:1], 0.1)  # compiles the kernel

    def _push(self, roots: NodeIds, tolerance: float) -> PaddedRows:
        engine, rows = self._engine, new_rows(len(roots), self._entries)
        matrix = (engine.indptr, engine.indices, engine.weight)
        options = (engine.config.diffusion.teleport, engine.steps, tolerance)
        push_roots_into(roots, *matrix, *options, self._work, *rows)
        return rows

    def timed(self, tolerance: float) -> tuple[PaddedRows, float]:
        """Return the rows, and the mean time of one of them in seconds."""
        if tolerance not in self._done:
            start = time.perf_counter()
            rows = self._push(self._roots, tolerance)
            seconds = (time.perf_counter() - start) / max(len(self._roots), 1)
            finish_rows_into(self._entries, *rows)
            self._done[tolerance] = rows, seconds
        return self._done[tolerance]

    def coarsest(self, finest: float, recall: float, k: int) -> float:
        """Return the coarsest tolerance whose rows reach the recall, compared with the finest."""
        exact = self.timed(finest)[0]
        return next(t for t in TOLERANCES if mean_recall(self.timed(t)[0], exact, k) >= recall)

    def kept_mass(self, tolerance: float, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean kept fraction of the full mass for k = 1, 2, ...; it never decreases."""
        if not len(self._roots):
            return np.ones(self._entries)
        kept = np.cumsum(self.timed(tolerance)[0].weights, axis=1, dtype=np.float64)
        return np.asarray((kept / totals[self._roots, None]).mean(0))
