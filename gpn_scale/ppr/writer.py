"""Writer of a store of PPR rows, shard by shard: a build can be stopped at any time and resumed.

Several processes may write shards of one store; the module `store` describes its files.
"""

import io
import re
from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property
from math import fsum
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gpn_scale.errors import StoreError
from gpn_scale.files import write_json
from gpn_scale.ppr.manifest import (
    BUILD,
    CLUSTERS,
    CUT,
    MANIFEST,
    ROOTS,
    SECONDS,
    Build,
    is_store,
    read_build_seconds,
)
from gpn_scale.ppr.open_shard import OpenShard
from gpn_scale.ppr.rows import Rows
from gpn_scale.ppr.sealed import (
    REBUILD,
    REBUILD_ARGUMENTS,
    RESUME,
    RESUME_ARGUMENTS,
    as_stored,
    checksum,
    differences,
    file_checksum,
    read_sealed,
    replacing_file,
    sealed,
)
from gpn_scale.ppr.shard import ShardInfo, shard_entry, shard_name, write_shard
from gpn_scale.reading import check_file, read_bytes

Existing = Literal["refuse", "resume", "overwrite"]
"""What to do with a store that already exists in the directory."""

_OWN = (
    r"(manifest\.json|build\.json|build_seconds\.json|roots\.npy|clusters\.npy|cut\.npy"
    r"|shard-\d{5,}\.ppr)"
)
_LEFT_OVER = rf"\.{_OWN}\.\d+\.tmp"  # temporary file of a killed process, see `files.replacing`


class StoreWriter:
    """Writes a store; one process begins it, others may join, and each writes its own shards.

    With clusters, call `write_clusters` before the first shard is written and before others join: a
    shard contains the checksum of the clusters, and with other clusters it counts as not done.

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
    ) -> "StoreWriter":
        """Claim the directory `path` (created if missing) for a build, and return its writer.

        Called by one process.

        Args:
            path: The directory.
            graph_fingerprint: `Graph.structure_fingerprint()` of the graph.
            parameters: Everything that the rows depend on besides the graph; a flat JSON dict.
            num_nodes: N, at most 2**31.
            roots: Sorted node ids without repeats; None for all nodes.
            num_clusters: P; 0 for none.
            rows_per_shard: Rows of each shard but the last.
            k: Largest number of entries of a row.
            existing: What to do with a store in `path`: `refuse` it, `resume` it if it is of the
                same build, or `overwrite` it; other files are never touched.

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
        )
        _claim(directory, build, existing)
        _write_if_other(directory / BUILD, build.text.encode())
        if root_file is not None:
            _write_if_other(directory / ROOTS, root_file)
        return cls(directory, build)

    @classmethod
    def join(cls, path: Path | str) -> "StoreWriter":
        """Return another writer for the build that a process began in `path`."""
        return cls(Path(path), Build.of(read_sealed(Path(path) / BUILD)))

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
        data = _npy(cluster_of_node)
        self.__dict__.pop("_clusters", None)  # may be the checksum of former clusters
        if not _holds(self.path / CLUSTERS, data):
            (self.path / MANIFEST).unlink(missing_ok=True)
            _write_if_other(self.path / CLUSTERS, data)

    @property
    def cluster_of_node(self) -> NDArray[np.int32] | None:
        """The clusters that `write_clusters` wrote, in any process; None without clusters."""
        if not self._build.num_clusters:
            return None
        check_file(self.path / CLUSTERS)
        clusters: NDArray[np.int32] = np.load(self.path / CLUSTERS, allow_pickle=False)
        return clusters

    def write_shard(self, index: int, rows: Rows) -> None:
        """Write shard `index`, replacing a former one.

        Args:
            index: Number of the shard.
            rows: Rows of the shard's roots; ids are int32 and cut masses float16.

        Raises:
            StoreError: the disk is full or not writable; no part of the shard is left.
        """
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
        # A store whose shards change is incomplete until `finish` has checked all of them again.
        (self.path / MANIFEST).unlink(missing_ok=True)
        write_shard(self.path / shard_name(index), info, rows)

    @property
    def is_complete(self) -> bool:
        """Whether the manifest exists; its content is not checked."""
        return (self.path / MANIFEST).exists()

    @property
    def build_seconds(self) -> float:
        """Time that the build has taken so far, in this and in former processes."""
        return read_build_seconds(self.path)

    def record_seconds(self, seconds: float) -> None:
        """Record the time of the build so far, former processes included; called by one process."""
        write_json(self.path / SECONDS, {"seconds": seconds})

    def finish(self, total_mass: NDArray[np.float64] | None = None) -> None:
        """Write the manifest, which completes the store; called by one process after all others.

        Args:
            total_mass: Mass that the full rows of all roots together put on every node, (N,);
                required with clusters, None without.

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
        # An exact sum, which depends neither on the order of additions nor on the machine.
        missing_mass = fsum(
            mass
            for index, info in enumerate(infos)
            for mass in self._open_shard(index, info).rows.missing_mass.tolist()
        )
        text = sealed(_manifest_of(self.path, build, infos, missing_mass))
        _write_if_other(self.path / MANIFEST, text.encode())

    def _write_cut(self, total_mass: NDArray[np.float64], infos: list[ShardInfo]) -> None:
        assert total_mass.shape == (self._build.num_nodes,)
        cut_N = total_mass.astype(np.float64)
        for index, info in enumerate(infos):
            shard = self._open_shard(index, info)
            shard.check_all()
            np.subtract.at(cut_N, shard.rows.ids, shard.rows.weights)
        data = _npy(np.maximum(cut_N, 0.0).astype(np.float32))
        _write_if_other(self.path / CUT, data)

    def _open_shard(self, index: int, info: ShardInfo) -> OpenShard:
        return OpenShard(self.path / shard_name(index), info, self._build.num_nodes)

    @cached_property
    def _clusters(self) -> str | None:
        return file_checksum(self.path / CLUSTERS) if self._build.num_clusters else None


def _claim(directory: Path, build: Build, existing: Existing) -> None:
    """Prepare `directory` for `build`, or refuse it; `overwrite` removes the former store."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        names = sorted(path.name for path in directory.iterdir())
    except OSError as error:
        raise StoreError(
            f"{directory} cannot hold a store ({error}): choose another directory",
            arguments=("out",),
        ) from error
    kept = [name for name in names if not re.fullmatch(_LEFT_OVER, name)]
    if kept and not is_store(directory):
        raise StoreError(
            f"{directory} is not empty and not a PPR store (it contains {kept[0]}): choose another "
            "directory",
            arguments=("out",),
        )
    if kept and existing == "refuse":
        state = "complete" if MANIFEST in kept else "unfinished"
        raise StoreError(
            f"{directory} already holds a store ({state}): pass existing='resume' to continue it, "
            "existing='overwrite' to replace it, or choose another directory",
            arguments=("existing", "out"),
        )
    if kept and existing == "resume":
        _check_resumable(directory, build)
    overwrite = existing == "overwrite"
    if overwrite:
        (directory / MANIFEST).unlink(missing_ok=True)
    for name in names:
        # build.json stays until the new one replaces it, so the directory is always a store.
        old = overwrite and name != BUILD and re.fullmatch(_OWN, name)
        if old or re.fullmatch(_LEFT_OVER, name):
            (directory / name).unlink(missing_ok=True)


def _check_resumable(directory: Path, build: Build) -> None:
    try:
        stored = Build.of(read_sealed(directory / BUILD))
    except StoreError as error:  # damaged; the manifest, if there is one, contains the same
        try:
            stored = Build.of(read_sealed(directory / MANIFEST))
        except StoreError:
            raise StoreError(
                f"{directory} cannot be resumed ({error}); {REBUILD}", arguments=REBUILD_ARGUMENTS
            ) from error
    if different := differences(asdict(stored), asdict(build), exact=True):
        raise StoreError(
            f"{directory} belongs to another build: {different}; {REBUILD}",
            arguments=REBUILD_ARGUMENTS,
        )


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
    return None if len(roots) == num_nodes else _npy(roots.astype(np.int32))


def _manifest_of(
    directory: Path, build: Build, infos: list[ShardInfo], missing_mass: float
) -> dict[str, Any]:
    clustered = build.num_clusters > 0
    files = {ROOTS: build.roots is not None, CLUSTERS: clustered, CUT: clustered}
    return asdict(build) | {
        "files": {
            name: {
                "bytes": (directory / name).stat().st_size,
                "checksum": file_checksum(directory / name),
            }
            for name, used in files.items()
            if used
        },
        "shards": [shard_entry(index, info) for index, info in enumerate(infos)],
        "entries": sum(info.entries for info in infos),
        "mean_missing_mass": missing_mass / build.num_roots if build.num_roots else None,
    }


def _write_if_other(path: Path, data: bytes) -> None:
    if not _holds(path, data):
        with replacing_file(path, len(data)) as file:
            file.write(data)


def _holds(path: Path, data: bytes) -> bool:
    is_as_long = path.is_file() and path.stat().st_size == len(data)
    return is_as_long and read_bytes(path, len(data)) == data


def _npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()
