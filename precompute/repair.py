"""Repair of a store: damaged shards are recomputed from the graph that the store contains."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpn_scale.diffusion.transition import transition_matrix
from gpn_scale.errors import StoreError
from gpn_scale.locks import claimed
from gpn_scale.ppr.generations import listed_generations
from gpn_scale.ppr.manifest import CLUSTERS, LOCK, ROOTS, Build, read_manifest
from gpn_scale.ppr.node_file import read_node_file
from gpn_scale.ppr.rows import Rows
from gpn_scale.ppr.sealed import REBUILD, REBUILD_ARGUMENTS
from gpn_scale.ppr.shard import shard_entry, shard_name, with_checksum, write_shard
from gpn_scale.ppr.stored_graph import read_stored_graph
from gpn_scale.ppr.writer import StoreWriter
from precompute.mpi import SingleProcess
from precompute.resources import Resources, default_resources
from precompute.row_engine import RowEngine
from precompute.row_sums import row_totals
from precompute.scratch_memory import plan_slots
from precompute.shard_builder import BuildClock, Say, ShardBuilder
from precompute.stored_settings import FOLDED, settings_of


def repair_store(
    path: Path | str, *, resources: Resources | None = None, say: Say | None = None
) -> list[Path]:
    """Recompute the damaged and missing shards of a store; return their paths.

    This needs nothing but the store, whether it was updated or not: it contains its graph, and
    recomputed rows have the same bytes. Processes may keep reading the intact shards meanwhile.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale import build_graph
    >>> from gpn_scale.config import PPRConfig
    >>> from precompute.build import build_store
    >>> with TemporaryDirectory() as folder:
    ...     plan = build_store(build_graph([0, 1], [1, 2]), PPRConfig(k=2, clusters=0), folder)
    ...     (Path(folder) / shard_name(0)).unlink()
    ...     [path.name for path in repair_store(folder)]
    ['shard-00000.ppr']

    Args:
        path: The store.
        resources: Threads and memory to use; None for all that this machine has free.
        say: Called with messages; None prints nothing.

    Raises:
        StoreError: the store is unfinished or being updated, a file other than a shard is damaged,
            a damaged generation was folded, or this version of the library computes other rows.
    """
    directory, repaired = Path(path), []
    manifest = read_manifest(directory)
    with claimed(directory / LOCK, wait=False) as is_alone:
        if not is_alone:
            raise StoreError(
                f"{directory} is being updated by another process: wait until it is done"
            )
        for folder, listed in listed_generations(manifest):
            repairer = _Repairer(directory / folder, listed)
            if todo := repairer.damaged_shards():
                repairer.repair(todo, resources or default_resources(), say or (lambda text: None))
                repaired += [repairer.path / shard_name(index) for index in todo]
    return repaired


class _Repairer(StoreWriter):
    """Replaces shards of a generation, which stays complete meanwhile."""

    def __init__(self, path: Path, manifest: Mapping[str, Any]) -> None:
        super().__init__(path, Build.of(manifest))
        self._manifest = manifest
        facts = manifest["files"].get(CLUSTERS)
        self._clusters = None if facts is None else facts["checksum"]

    def damaged_shards(self) -> list[int]:
        """Return the numbers of the shards that are missing or damaged; reads all of them."""
        return [index for index in range(self.num_shards) if not self.is_done(index)]

    def repair(self, todo: list[int], resources: Resources, say: Say) -> None:
        """Recompute shards from the graph, roots and clusters of the generation."""
        build, files = self._build, self._manifest["files"]
        if build.parameters.get(FOLDED):
            raise StoreError(
                f"{self.path / shard_name(todo[0])} is damaged and cannot be repaired, because its "
                f"rows were computed on several graphs before they were folded: {REBUILD}",
                arguments=REBUILD_ARGUMENTS,
            )
        graph = read_stored_graph(
            self.path, self._manifest, build.graph_fingerprint, build.num_nodes
        )
        roots = None
        if build.roots is not None:
            wanted, size = files[ROOTS]["checksum"], build.num_roots
            roots = read_node_file(
                self.path / ROOTS, wanted, "<i4", size, below=build.num_nodes
            ).astype("int64")
        config, method = settings_of(build)
        slots = plan_slots(
            build.num_nodes, resources.threads, resources.memory_bytes, push=method == "push"
        ).slots
        diffusion = config.diffusion
        transition = transition_matrix(graph, diffusion.normalisation, diffusion.self_loops)
        engine = RowEngine(transition, config, SingleProcess(), threads=slots)
        totals = row_totals(engine)
        if not config.clusters:
            engine.release_exact_weight()
        clock = BuildClock(self, 0.0, active=False)
        ShardBuilder(engine, method, totals, graph, self, roots, say, clock).write(todo)

    def write_shard(self, index: int, rows: Rows, *, shared: bool = False) -> None:
        """Replace a damaged shard, if the new one is identical to the one in the manifest."""
        assert not shared
        path, info = self.path / shard_name(index), self._shard_info(index, rows)
        if shard_entry(index, with_checksum(info, rows)) != self._manifest["shards"][index]:
            raise StoreError(
                f"{path} cannot be repaired: this version of gpn_scale "
                f"computes rows that differ from the stored ones; {REBUILD}",
                arguments=REBUILD_ARGUMENTS,
            )
        write_shard(path, info, rows)
