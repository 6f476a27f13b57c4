"""Update of a store after its graph has changed: rows that may have moved far are recomputed.

Diffusing a single column bounds how far every row can have moved (`row_movement`). Rows above a
tolerance are recomputed and written to a new generation of the store; the others are kept, and
their missing mass grows by the bound. docs/updates.md explains the method.

Shapes: N nodes of the new graph, R roots of the updated store.
"""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.config import PPRConfig
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.diffusion.transition import transition_matrix
from gpn_scale.errors import ConfigError, StoreError
from gpn_scale.locks import claimed
from gpn_scale.ppr.generations import generation_folder
from gpn_scale.ppr.manifest import LOCK, Build
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.stored_graph import names_checksum, structure_bytes
from gpn_scale.ppr.updated_manifest import next_number, write_updated_manifest
from gpn_scale.ppr.writer import StoreWriter
from precompute.build import rows_per_shard, store_parameters
from precompute.clusters import clusters_of_new_nodes
from precompute.graph_changes import EdgeCounts, edge_counts
from precompute.memory_estimate import disk_bytes
from precompute.mpi import SingleProcess
from precompute.resources import Resources, default_resources
from precompute.rounding import round_up_to_single
from precompute.row_engine import Method, RowEngine, chosen_method
from precompute.row_movement import row_movement
from precompute.row_sums import row_totals, total_mass
from precompute.scratch_memory import plan_slots
from precompute.shard_builder import BuildClock, Say, ShardBuilder
from precompute.stored_settings import settings_of
from precompute.time_estimate import estimate_seconds

TOLERANCE = 0.01
"""Mass by which a root's true row may have moved before its stored row is replaced."""
PUSH_TOLERANCE = 3e-5
"""Accuracy of pushed rows that replace swept ones and keep as much mass (docs/updates.md)."""
_SAMPLE_ROOTS = 64
_ROWS_AT_A_TIME = 1 << 16
_LEAST_ROWS_PER_SHARD = 1 << 12
"""Rows per shard at least: each shard waits for the disk twice, as long as hundreds of pushes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatePlan:
    """Plan of an update.

    >>> counts = EdgeCounts(nodes_added=0, added=3, removed=0, reweighted=0)
    >>> plan = UpdatePlan(
    ...     changes=counts,
    ...     num_roots=1000,
    ...     computed_rows=50,
    ...     largest_movement=0.008,
    ...     method="push",
    ...     seconds=0.5,
    ...     rebuild_seconds=4.0,
    ...     disk_bytes=10_000,
    ... )
    >>> plan.rebuild_is_cheaper
    False
    """

    changes: EdgeCounts
    """Nodes and edges that were added, removed or reweighted."""
    num_roots: int
    """Number of rows of the updated store."""
    computed_rows: int
    """Number of rows to compute."""
    largest_movement: float
    """Largest bound on the movement of a row that is kept."""
    method: Method
    """How rows are computed."""
    seconds: float
    """Estimated time of the update, without compilation."""
    rebuild_seconds: float
    """Estimated time of building the whole store, for comparison."""
    disk_bytes: int
    """Size of the files that the update adds."""

    @property
    def rebuild_is_cheaper(self) -> bool:
        """Whether a build of the whole store would take less time."""
        return self.rebuild_seconds < self.seconds

    def table(self) -> str:
        """Return the plan as text, one line per topic."""
        fraction = self.computed_rows / max(self.num_roots, 1)
        kept = self.num_roots - self.computed_rows
        lines = [
            ("changes", self.changes.summary),
            ("rows", f"compute {self.computed_rows:,} of {self.num_roots:,} ({fraction:.1%})"),
            ("others", f"keep {kept:,}, which moved by at most {self.largest_movement:.3g}"),
            ("method", self.method),
            ("seconds", f"{self.seconds:.3g}; a rebuild takes {self.rebuild_seconds:.3g}"),
            ("disk", f"{self.disk_bytes / 2**20:,.2f} MiB more"),
        ]
        text = "\n".join(["update", *(f"  {name:<12} {text}" for name, text in lines)])
        if self.rebuild_is_cheaper:
            text += "\nthe graph has changed so much that rebuilding the store would be faster"
        if self.changes.may_be_renumbered:
            text += (
                "\nmore than half of the edges are gone: were the nodes numbered anew? Without "
                "ids, an update cannot recognise that, and rows would belong to other nodes"
            )
        return text


def update_store(
    path: Path | str,
    graph: Graph,
    *,
    tolerance: float = TOLERANCE,
    roots: NodeIds | None = None,
    resources: Resources | None = None,
    plan_only: bool = False,
    say: Say | None = None,
) -> UpdatePlan:
    """Update the rows of a store to those of a changed graph; return the plan that was carried out.

    `graph` must begin with the nodes of the store's graph, in the same order. A node that is gone
    keeps its place, without edges. Readers that have the store open keep reading the old rows. A
    killed update leaves the store unchanged, and the next call continues it.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale import build_graph
    >>> from precompute.build import build_store
    >>> with TemporaryDirectory() as folder:
    ...     plan = build_store(build_graph([0, 1], [1, 2]), PPRConfig(k=2, clusters=0), folder)
    ...     plan = update_store(folder, build_graph([0, 1, 2], [1, 2, 3]))
    ...     PPRStore.open(folder).num_nodes, plan.computed_rows
    (4, 4)

    Args:
        path: The store.
        graph: The new graph.
        tolerance: Rows of which more than this mass may have moved are recomputed; 0 recomputes
            all rows that a change can reach.
        roots: Additional nodes that get rows, sorted. None keeps the roots of the store; if these
            are all nodes, new nodes get rows too.
        resources: Threads and memory to use; None for all that this machine has free.
        plan_only: Return the plan without writing anything.
        say: Called with the plan; None prints nothing.

    Raises:
        ConfigError: the tolerance is not a number of at least 0.
        StoreError: the store is incomplete, damaged or being updated, or the graph is not a later
            version of its graph.
    """
    if not 0.0 <= tolerance < np.inf:
        raise ConfigError(
            f"tolerance is {tolerance}, expected a number of at least 0", arguments=("tolerance",)
        )
    directory = Path(path)
    PPRStore.open(directory)  # fail before a lock file is left in a directory that is not a store
    with claimed(directory / LOCK, wait=False) as is_alone:
        if not is_alone:
            raise StoreError(
                f"{directory} is being updated by another process: wait until it is done"
            )
        resources = resources or default_resources()
        update = _Update(PPRStore.open(directory), graph, tolerance, roots, resources)
        plan = update.plan()
        if say is not None:
            say(plan.table())
        if not plan_only and update.is_needed:
            update.write(say or (lambda text: None))
    return plan


class _Update:
    """The update of one store: plans it and carries it out."""

    def __init__(
        self,
        store: PPRStore,
        graph: Graph,
        tolerance: float,
        roots: NodeIds | None,
        resources: Resources,
    ) -> None:
        self.store, self.graph, self.tolerance = store, graph, tolerance
        old = _comparable_graph(store, graph)
        self.changes = edge_counts(old, graph)
        config = _config_of(store)
        diffusion = config.diffusion
        before = transition_matrix(old, diffusion.normalisation, diffusion.self_loops)
        after = transition_matrix(graph, diffusion.normalisation, diffusion.self_loops)
        movement_N = row_movement(before, after, diffusion)
        del before
        self.roots = _roots_after(store, graph, roots)
        self.moved_R, self.computed_R = self._movement(movement_N)
        num_computed = int(self.computed_R.sum())
        self.method: Method = chosen_method(config, num_computed, graph.num_nodes)
        config = replace(config, method=self.method)
        slots = plan_slots(
            graph.num_nodes,
            resources.threads,
            resources.memory_bytes,
            push=self.method == "push",
        ).slots
        self.engine = RowEngine(after, config, SingleProcess(), threads=slots)

    @property
    def is_needed(self) -> bool:
        """Whether graph, roots or any row of the store change."""
        same_graph = self.store.graph_fingerprint == self.graph.structure_fingerprint()
        return bool(self.computed_R.any()) or not same_graph

    def _movement(
        self, movement_N: NDArray[np.float64]
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Return how far each row may have moved in total, (R,), and which are recomputed."""
        has_row = np.isin(self.roots, self.store.roots, assume_unique=True)
        moved_R = movement_N[self.roots]
        moved_R[has_row] += self.store.moved(self.roots[has_row])
        computed_R = (moved_R > self.tolerance) | ~has_row
        moved_R[computed_R] = 0.0
        return round_up_to_single(moved_R), computed_R

    def plan(self) -> UpdatePlan:
        """Return what the update will do, with its time estimated from some pushes."""
        engine, config = self.engine, self.engine.config
        computed = self.roots[self.computed_R]
        rng = np.random.default_rng(0)
        picked = rng.choice(computed, min(_SAMPLE_ROOTS, len(computed)), replace=False)
        seconds_per_root = 0.0
        if self.method == "push" and len(picked):
            engine.push(picked)  # compile the kernel, and map the pages of scratch memory
            began = time.perf_counter()
            engine.push(picked)
            seconds_per_root = (time.perf_counter() - began) * engine.threads / len(picked)
        fresh = _config_of(self.store)
        full = chosen_method(fresh, len(self.roots), engine.num_nodes)
        return UpdatePlan(
            changes=self.changes,
            num_roots=len(self.roots),
            computed_rows=len(computed),
            largest_movement=float(self.moved_R.max(initial=0.0)),
            method=self.method,
            seconds=estimate_seconds(
                engine, config, self.method, len(computed), seconds_per_root, partition=False
            ),
            rebuild_seconds=estimate_seconds(
                engine, fresh, full, len(self.roots), seconds_per_root
            ),
            disk_bytes=self._disk_bytes(len(computed)),
        )

    def _disk_bytes(self, computed_rows: int) -> int:
        mean_entries = self.store.manifest["entries"] / max(self.store.num_roots, 1)
        rows = disk_bytes(
            self.graph.num_nodes,
            computed_rows,
            mean_entries,
            self.store.num_clusters,
            _rows_per_shard(computed_rows),
            structure_bytes(self.graph),
        )
        return rows + 4 * len(self.roots)

    def write(self, say: Say) -> None:
        """Write the new generation, then the manifest that names it."""
        began = time.monotonic()
        store, engine = self.store, self.engine
        number = next_number(store.manifest)
        folder = store.path / generation_folder(number)
        computed = self.roots[self.computed_R]
        writer = self._open_writer(folder, computed)
        clock = BuildClock(writer, began, active=True)
        todo = [index for index in range(writer.num_shards) if not writer.is_done(index)]
        mass_N = self._mass_left(engine) if store.num_clusters else None
        if todo:
            totals = row_totals(engine)
            if not store.num_clusters:
                engine.release_exact_weight()
            ShardBuilder(
                engine, self.method, totals, self.graph, writer, computed, say, clock
            ).write(todo)
        writer.finish(mass_N, self.moved_R)
        clock.record()
        write_updated_manifest(store, number, roots=self.roots, record=self._record())

    def _open_writer(self, folder: Path, computed: NodeIds) -> StoreWriter:
        store, config = self.store, self.engine.config

        def begin(existing: Any) -> StoreWriter:
            return StoreWriter.begin(
                folder,
                graph_fingerprint=self.graph.structure_fingerprint(),
                parameters=store_parameters(config, self.method),
                num_nodes=self.graph.num_nodes,
                roots=computed,
                num_clusters=store.num_clusters,
                rows_per_shard=_rows_per_shard(len(computed)),
                k=store.k,
                existing=existing,
                graph=self.graph,
            )

        try:
            writer = begin("resume")
        except StoreError:  # left over from an update to another graph
            writer = begin("overwrite")
        if store.cluster_of_node is not None:
            writer.write_clusters(clusters_of_new_nodes(self.graph, store.cluster_of_node))
        return writer

    def _mass_left(self, engine: RowEngine) -> NDArray[np.float64]:
        """Return the mass that all full rows put on every node, minus that of rows that stay."""
        mass_N = total_mass(engine, self.roots)
        staying = self.roots[~self.computed_R]
        for start in range(0, len(staying), _ROWS_AT_A_TIME):
            rows = self.store.rows(staying[start : start + _ROWS_AT_A_TIME])
            mass_N -= np.bincount(rows.ids, rows.weights, minlength=len(mass_N))
        return mass_N

    def _record(self) -> dict[str, Any]:
        """Return the entry of the store's history for this update."""
        return {
            "parent": self.store.fingerprint,
            "nodes_added": self.changes.nodes_added,
            "edges_added": self.changes.added,
            "edges_removed": self.changes.removed,
            "edges_reweighted": self.changes.reweighted,
            "tolerance": self.tolerance,
            "computed_rows": int(self.computed_R.sum()),
            "num_roots": len(self.roots),
        }


def _comparable_graph(store: PPRStore, graph: Graph) -> Graph:
    """Return the store's graph after checking that `graph` can be a later version of it."""
    old, facts = store.stored_graph(), store.manifest["graph"]
    next_step = (
        "keep the old nodes in their places and put new nodes after them (as gpn-import --like "
        "OLD does), or rebuild the store with existing='overwrite'"
    )
    if graph.num_nodes < old.num_nodes:
        raise StoreError(
            f"the new graph has {graph.num_nodes} nodes and the graph of {store.path} has "
            f"{old.num_nodes}, expected at least as many, since removed nodes keep their places: "
            f"{next_step}",
            arguments=("existing=overwrite",),
        )
    if facts["node_names"] != names_checksum(graph.node_names, old.num_nodes):
        raise StoreError(
            f"the first {old.num_nodes} nodes of the new graph do not have the ids of the nodes of "
            f"{store.path}, expected the same nodes in the same order: {next_step}",
            arguments=("existing=overwrite",),
        )
    if graph.directed != old.directed:
        kinds = ("undirected", "directed")
        raise StoreError(
            f"the new graph is {kinds[graph.directed]}, but the graph of {store.path} is "
            f"{kinds[old.directed]}: rebuild the store with existing='overwrite'",
            arguments=("existing=overwrite",),
        )
    return old


def _rows_per_shard(computed_rows: int) -> int:
    return max(rows_per_shard(computed_rows), _LEAST_ROWS_PER_SHARD)


def _roots_after(store: PPRStore, graph: Graph, roots: NodeIds | None) -> NodeIds:
    if store.num_roots == store.num_nodes:
        return np.arange(graph.num_nodes)
    return store.roots if roots is None else np.union1d(store.roots, roots)


def _config_of(store: PPRStore) -> PPRConfig:
    """Return settings for the rows of an update: swept rows may be replaced by pushed ones."""
    config, method = settings_of(Build.of(store.manifest), push_tolerance=PUSH_TOLERANCE)
    return replace(config, method="push" if method == "push" else "auto")
