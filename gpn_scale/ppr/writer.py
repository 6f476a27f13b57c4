"""Writes a store of PPR rows shard by shard; a build can be interrupted at any time and resumed.

Several processes may write shards of one store; the module `store` describes its files.
"""

from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.errors import StoreError
from gpn_scale.files import remove, write_json
from gpn_scale.ppr.claiming import Existing, claim_directory
from gpn_scale.ppr.manifest import (
    BUILD,
    CLUSTERS,
    CUT,
    MANIFEST,
    MOVED,
    ROOTS,
    SECONDS,
    Build,
    read_build,
    read_build_seconds,
)
from gpn_scale.ppr.node_file import npy_bytes, read_node_file, write_node_file
from gpn_scale.ppr.open_shard import OpenShard
from gpn_scale.ppr.part_files import check_same_build, remove_part_files
from gpn_scale.ppr.rows import Rows
from gpn_scale.ppr.sealed import (
    RESUME,
    RESUME_ARGUMENTS,
    as_stored,
    checksum,
    file_checksum,
    holds,
    sealed,
    write_if_other,
)
from gpn_scale.ppr.shard import ShardInfo, shard_entry, shard_name, write_shard
from gpn_scale.ppr.stored_graph import graph_arrays, graph_facts, graph_files

if TYPE_CHECKING:
    from gpn_scale.data.graph import Graph


class StoreWriter:
    """Writes a store; one process begins it, others may join, and each writes its own shards.

    With clusters, call `write_clusters` before the first shard is written and before others join:
    a shard contains the checksum of the clusters, and is not valid with other clusters.

    >>> from tempfile import TemporaryDirectory
    >>> rows = Rows(
    ...     row_ptr=np.array([0, 1, 2]),
    ...     ids=np.array([0, 1], np.int32),
    ...     weights=np.array([0.75, 0.5], np.float32),
    ...     missing_mass=np.array([0.25, 0.5], np.float32),
    ...     cut_mass=np.empty((2, 0), np.float16),
    ... )
    >>> sizes = {"num_nodes": 2, "roots": None, "num_clusters": 0, "rows_per_shard": 2, "k": 1}
    >>> with TemporaryDirectory() as folder:
    ...     writer = StoreWriter.begin(folder, graph_fingerprint="f00d", parameters={}, **sizes)
    ...     writer.write_shard(0, rows)
    ...     writer.finish()
    ...     StoreWriter.join(folder).is_done(0), writer.is_complete
    (True, True)
    """

    def __init__(self, path: Path, build: Build) -> None:
        self.path = path
        self._build = build

    @classmethod
    def begin(
        cls,
        path: Path | str,
        *,
        graph_fingerprint: str,
        parameters: Mapping[str, Any],
        num_nodes: int,
        roots: NDArray[np.integer[Any]] | None,
        num_clusters: int,
        rows_per_shard: int,
        k: int,
        existing: Existing = "refuse",
        graph: "Graph | None" = None,
        node_names: str | None = None,
    ) -> "StoreWriter":
        """Claim the directory `path` (created if missing) for a build, and return its writer.

        Called by one process, unless the directory is shared.

        Args:
            path: The directory.
            graph_fingerprint: `Graph.structure_fingerprint()` of the graph.
            parameters: Parameters, besides the graph, that determine the rows; a flat JSON dict.
            num_nodes: N, at most 2**31.
            roots: Sorted node ids without repeats; None for all nodes.
            num_clusters: P; 0 for none.
            rows_per_shard: Rows of each shard but the last.
            k: Largest number of entries of a row.
            existing: What to do with a store in `path`: `refuse` it, `resume` it if it is of the
                same build, or `overwrite` it; other files are never touched. `share` resumes
                without removing anything, in any number of processes at once.
            graph: The graph, whose structure is stored so that the store can be updated; None for
                a store that cannot be updated.
            node_names: `names_checksum` of the nodes, for a `graph` without their names.

        Raises:
            StoreError: the directory is not empty and not a store, holds a store that `existing`
                does not allow changing, holds a different build from the one to resume, or is
                not writable.
        """
        assert 0 <= num_nodes <= 2**31
        assert min(rows_per_shard, k) >= 1
        assert num_clusters >= 0
        directory = Path(path)
        root_file = _root_file(roots, num_nodes)
        build = Build(
            graph_fingerprint=graph_fingerprint,
            parameters=as_stored(parameters),
            num_nodes=num_nodes,
            num_roots=num_nodes if roots is None else len(roots),
            roots=None if root_file is None else checksum(root_file),
            rows_per_shard=rows_per_shard,
            k=k,
            num_clusters=num_clusters,
            graph=None if graph is None else graph_facts(graph, node_names),
        )
        claim_directory(directory, build, existing)
        write_if_other(directory / BUILD, build.text.encode())
        if root_file is not None:
            write_if_other(directory / ROOTS, root_file)
        if graph is not None:
            for name, array in graph_arrays(graph):
                write_node_file(directory / name, array)
        return cls(directory, build)

    @classmethod
    def join(cls, path: Path | str) -> "StoreWriter":
        """Return another writer for the build that a process began in `path`."""
        return cls(Path(path), read_build(Path(path) / BUILD))

    @property
    def num_shards(self) -> int:
        """Number of shards of the whole build."""
        return self._build.num_shards

    def shard_rows(self, index: int) -> tuple[int, int]:
        """Return the first root position of shard `index`, and the one after its last."""
        return self._build.shard_rows(index)

    def is_done(self, index: int) -> bool:
        """Return whether shard `index` of this build exists and is intact; reads all of it."""
        try:
            info = self._build.shard_info(self.path, index, self._clusters)
            self._open_shard(index, info).check_all()
        except StoreError:
            return False
        return True

    def write_clusters(self, cluster_of_node: NDArray[np.int32]) -> None:
        """Write the cluster of every node, (N,) in [0, P); invalidates shards of other clusters."""
        assert cluster_of_node.dtype == np.int32
        assert cluster_of_node.shape == (self._build.num_nodes,)
        assert cluster_of_node.min(initial=0) >= 0
        assert cluster_of_node.max(initial=0) < max(self._build.num_clusters, 1)
        assert self._build.num_clusters, "this build has no clusters"
        data = npy_bytes(cluster_of_node)
        self.__dict__.pop("_clusters", None)  # may be the checksum of former clusters
        if not holds(self.path / CLUSTERS, data):
            remove(self.path / MANIFEST)
            write_if_other(self.path / CLUSTERS, data)

    @property
    def cluster_of_node(self) -> NDArray[np.int32] | None:
        """The clusters that `write_clusters` wrote, in any process; None without clusters.

        Raises:
            StoreError: the file is missing or damaged, or a cluster is out of range.
        """
        wanted = self._clusters
        if wanted is None:
            return None
        size, below = self._build.num_nodes, self._build.num_clusters
        return read_node_file(self.path / CLUSTERS, wanted, "<i4", size, below=below)

    def write_shard(self, index: int, rows: Rows, *, shared: bool = False) -> None:
        """Write shard `index`, replacing an earlier version of it.

        Args:
            index: Number of the shard.
            rows: Rows of the shard's roots; ids are int32 and cut masses float16.
            shared: Whether other processes may write the same shard, with the same bytes.

        Raises:
            StoreError: the disk is full or not writable; no part of the shard is left. A shared
                directory has been taken by another build.
        """
        if shared:
            check_same_build(self.path, self._build)
        else:
            # If its shards change, a store is incomplete until `finish` has checked them again.
            remove(self.path / MANIFEST)
        write_shard(self.path / shard_name(index), self._shard_info(index, rows), rows)

    def _shard_info(self, index: int, rows: Rows) -> ShardInfo:
        """Return the header of a shard with these rows, without its checksum."""
        start, stop = self.shard_rows(index)
        assert 0 <= start < stop, index
        counts = np.diff(rows.row_ptr)
        assert (rows.row_ptr[0], rows.row_ptr[-1]) == (0, rows.num_entries)
        assert ((counts >= 0) & (counts <= self._build.k)).all()
        assert rows.ids.min(initial=0) >= 0
        assert rows.ids.max(initial=-1) < self._build.num_nodes
        for masses in (rows.weights, rows.missing_mass, rows.cut_mass):
            assert masses.min(initial=0) >= 0
            assert masses.max(initial=0) < np.inf
        info = ShardInfo(
            build=self._build.fingerprint,
            clusters=self._clusters,
            first=start,
            rows=stop - start,
            entries=rows.num_entries,
            num_clusters=self._build.num_clusters,
        )
        assert rows.cut_mass.shape == (info.rows, info.num_clusters)
        return info

    @property
    def is_complete(self) -> bool:
        """Whether the manifest exists; its content is not checked."""
        return (self.path / MANIFEST).exists()

    @property
    def build_seconds(self) -> float:
        """Time that the build has taken so far, in this process and earlier ones."""
        return read_build_seconds(self.path)

    def record_seconds(self, seconds: float) -> None:
        """Record the time of the build so far, with earlier processes; called by one process."""
        write_json(self.path / SECONDS, {"seconds": seconds})

    def finish(
        self,
        total_mass: NDArray[np.float64] | None = None,
        moved: NDArray[np.float32] | None = None,
    ) -> None:
        """Write the manifest, which completes the store; for one process, after all others.

        Args:
            total_mass: Mass that the full rows of all roots together put on every node, (N,);
                required with clusters, None without.
            moved: Mass by which each row of the generation's store may differ from the true one,
                in addition to its missing mass; None if no row differs.

        Raises:
            StoreError: shards or the clusters are missing or not of this build.
        """
        build, infos, missing = self._build, [], []
        assert (total_mass is None) == (build.num_clusters == 0)
        clusters = self._clusters
        for index in range(build.num_shards):
            try:
                infos.append(build.shard_info(self.path, index, clusters))
            except StoreError:
                missing.append(shard_name(index))
        if missing:
            names = ", ".join(missing[:10]) + (" ..." if len(missing) > 10 else "")
            raise StoreError(
                f"{len(missing)} of {build.num_shards} shards are missing in {self.path} "
                f"({names}): {RESUME}",
                arguments=RESUME_ARGUMENTS,
            )
        if total_mass is not None:
            self._write_cut(total_mass, infos)
        if moved is not None:
            write_node_file(self.path / MOVED, moved)
        # An exact sum, which depends neither on the order of additions nor on the machine.
        missing_mass = fsum(
            mass
            for index, info in enumerate(infos)
            for mass in self._open_shard(index, info).rows.missing_mass.tolist()
        )
        files = [CLUSTERS, CUT] if build.num_clusters else []
        files += [ROOTS] if build.roots is not None else []
        files += [*graph_files(build.graph), *([MOVED] if moved is not None else [])]
        text = sealed(_manifest_of(self.path, build, infos, missing_mass, files))
        write_if_other(self.path / MANIFEST, text.encode())
        remove_part_files(self.path)

    def _write_cut(self, total_mass: NDArray[np.float64], infos: list[ShardInfo]) -> None:
        assert total_mass.shape == (self._build.num_nodes,)
        cut_N = total_mass.astype(np.float64)
        for index, info in enumerate(infos):
            shard = self._open_shard(index, info)
            shard.check_all()
            np.subtract.at(cut_N, shard.rows.ids, shard.rows.weights)
        data = npy_bytes(np.maximum(cut_N, 0.0).astype(np.float32))
        write_if_other(self.path / CUT, data)

    def _open_shard(self, index: int, info: ShardInfo) -> OpenShard:
        return OpenShard(self.path / shard_name(index), info, self._build.num_nodes)

    @cached_property
    def _clusters(self) -> str | None:
        return file_checksum(self.path / CLUSTERS) if self._build.num_clusters else None


def _root_file(roots: NDArray[np.integer[Any]] | None, num_nodes: int) -> bytes | None:
    """Return the content of `roots.npy`; None if the roots are all nodes."""
    if roots is None:
        return None
    if roots.ndim != 1 or roots.dtype.kind not in "iu":
        raise StoreError(
            f"roots must be a vector of integer node ids, got {roots.dtype} of shape {roots.shape}"
        )
    if (place := np.flatnonzero(roots[1:] <= roots[:-1])).size:
        raise StoreError(
            f"roots must be sorted without repeats, got {roots[place[0]]} before "
            f"{roots[place[0] + 1]}"
        )
    if len(roots) and not (roots[0] >= 0 and roots[-1] < num_nodes):
        wrong = roots[0] if roots[0] < 0 else roots[-1]
        raise StoreError(f"root {wrong} is out of range, expected ids in [0, {num_nodes})")
    return None if len(roots) == num_nodes else npy_bytes(roots.astype(np.int32))


def _manifest_of(
    directory: Path, build: Build, infos: list[ShardInfo], missing_mass: float, names: list[str]
) -> dict[str, Any]:
    return asdict(build) | {
        "files": {
            name: {
                "bytes": (directory / name).stat().st_size,
                "checksum": file_checksum(directory / name),
            }
            for name in names
        },
        "shards": [shard_entry(index, info) for index, info in enumerate(infos)],
        "entries": sum(info.entries for info in infos),
        "mean_missing_mass": missing_mass / build.num_roots if build.num_roots else None,
    }
