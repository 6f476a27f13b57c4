"""Writes a store of PPR rows, shard by shard, so that it can be stopped at any moment and resumed.

Several processes may write shards of one store; `store` tells which files there are.
"""

import io
import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property
from math import fsum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.errors import StoreError
from gpn_scale.ppr.shard import (
    REBUILD,
    RESUME,
    ShardArrays,
    ShardInfo,
    check_shard_data,
    checksum,
    differences,
    file_checksum,
    map_shard,
    read_sealed,
    replacing_file,
    sealed,
    write_shard,
)
from gpn_scale.ppr.store import (
    BUILD,
    CLUSTERS,
    CUT,
    MANIFEST,
    ROOTS,
    Build,
    is_store,
    shard_entry,
    shard_name,
)

_OWN = r"(manifest\.json|build\.json|roots\.npy|clusters\.npy|cut\.npy|shard-\d{5,}\.ppr)"
_LEFT_OVER = rf"\.{_OWN}\.\d+\.tmp"  # of a killed process: see `files.replacing`


class StoreWriter:
    """Writes a store; one process begins it, others may join, each writes shards of its own.

    With clusters, `write_clusters` comes before the first shard (and before others join): a shard
    remembers which clusters it counted by, so that other clusters make it not done.
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
        resume: bool,
        overwrite: bool,
    ) -> "StoreWriter":
        """Claims the directory `path` (made if need be) for a build; one process only.

        Args:
            path: The directory.
            graph_fingerprint: `Graph.structure_fingerprint()` of the graph.
            parameters: All that the rows depend on beside the graph; a flat JSON dict.
            num_nodes: N, at most 2**31.
            roots: Rising node ids without repeats; None for all nodes.
            num_clusters: P; 0 for none.
            rows_per_shard: Rows of each shard but the last.
            k: Most entries that a row can have.
            resume: Go on with what is there, if it is of the same build.
            overwrite: Remove the store that is there, and nothing else.

        Raises:
            StoreError: the directory is not empty and not a store, holds a build that neither flag
                allows to touch, holds another build than the one to resume, or is not writable.
        """
        assert 0 <= num_nodes <= 2**31
        assert min(rows_per_shard, k) >= 1
        assert num_clusters >= 0
        directory = Path(path)
        root_file = _root_file(roots, num_nodes)
        build = Build(
            graph_fingerprint=graph_fingerprint,
            parameters=json.loads(json.dumps(dict(parameters), allow_nan=False)),
            num_nodes=num_nodes,
            num_roots=num_nodes if roots is None else len(roots),
            roots=None if root_file is None else checksum(root_file),
            rows_per_shard=rows_per_shard,
            k=k,
            num_clusters=num_clusters,
        )
        _claim(directory, build, resume=resume, overwrite=overwrite)
        _write_if_other(directory / BUILD, build.text.encode())
        if root_file is not None:
            _write_if_other(directory / ROOTS, root_file)
        return cls(directory, build)

    @classmethod
    def join(cls, path: Path | str) -> "StoreWriter":
        """A further writer for the build that another process began in `path`."""
        return cls(Path(path), Build.of(read_sealed(Path(path) / BUILD)))

    @property
    def num_shards(self) -> int:
        """Number of shards of the whole build."""
        return self._build.num_shards

    def shard_rows(self, index: int) -> tuple[int, int]:
        """First root position of shard `index`, and the one after its last."""
        return self._build.shard_rows(index)

    def is_done(self, index: int) -> bool:
        """Whether shard `index` is there, of this build and intact; reads all of it."""
        try:
            info = self._build.shard_info(self.path, index, self._clusters)
            check_shard_data(self.path / shard_name(index), info)
        except StoreError:
            return False
        return True

    def write_clusters(self, cluster_of_node: NDArray[np.int32]) -> None:
        """Writes the cluster of every node, (N,) in [0, P); shards of other clusters are void."""
        assert cluster_of_node.dtype == np.int32
        assert cluster_of_node.shape == (self._build.num_nodes,)
        assert self._build.num_clusters, "this build has no clusters"
        data = _npy(cluster_of_node)
        self.__dict__.pop("_clusters", None)  # it may be that of the clusters before
        if not _holds(self.path / CLUSTERS, data):
            (self.path / MANIFEST).unlink(missing_ok=True)
            _write_if_other(self.path / CLUSTERS, data)

    @property
    def cluster_of_node(self) -> NDArray[np.int32] | None:
        """What `write_clusters` wrote, in this process or another; None without clusters."""
        if not self._build.num_clusters:
            return None
        clusters: NDArray[np.int32] = np.load(self.path / CLUSTERS, allow_pickle=False)
        return clusters

    def write_shard(
        self,
        index: int,
        row_ptr: NDArray[np.int64],
        ids: NDArray[np.int32],
        weights: NDArray[np.float32],
        missing_mass: NDArray[np.float32],
        cluster_mass: NDArray[np.float16] | None,
    ) -> None:
        """Writes shard `index`, over one that may be there; arrays as in `ShardArrays`.

        Raises:
            StoreError: the disk is full or not writable; no part of the shard is left.
        """
        start, stop = self.shard_rows(index)
        assert 0 <= start < stop, index
        assert (row_ptr[0], row_ptr[-1]) == (0, len(ids))
        assert ((np.diff(row_ptr) >= 0) & (np.diff(row_ptr) <= self._build.k)).all()
        assert (cluster_mass is None) == (self._build.num_clusters == 0)
        info = ShardInfo(
            build=self._build.fingerprint,
            clusters=self._clusters,
            first=start,
            rows=stop - start,
            entries=len(ids),
            num_clusters=self._build.num_clusters,
        )
        if cluster_mass is None:
            cluster_mass = np.empty((stop - start, 0), np.float16)
        # A store whose shards change is unfinished until `finish` has seen them all again.
        (self.path / MANIFEST).unlink(missing_ok=True)
        arrays = ShardArrays(row_ptr, ids, weights, missing_mass, cluster_mass)
        write_shard(self.path / shard_name(index), info, arrays)

    def finish(self, total_mass: NDArray[np.float64] | None = None) -> None:
        """Writes the manifest, which makes the store readable; one process, after all others.

        Args:
            total_mass: What the uncut rows of all roots together put on every node, (N,); with
                clusters only.

        Raises:
            StoreError: shards or the clusters are missing or not of this build.
        """
        build, infos, lacking = self._build, [], []
        assert (total_mass is None) == (build.num_clusters == 0)
        clusters = self._clusters
        for index in range(build.num_shards):
            try:
                infos.append(build.shard_info(self.path, index, clusters))
            except StoreError:
                lacking.append(shard_name(index))
        if lacking:
            names = ", ".join(lacking[:10]) + (" ..." if len(lacking) > 10 else "")
            raise StoreError(
                f"{self.path} lacks {len(lacking)} of {build.num_shards} shards ({names}): {RESUME}"
            )
        if total_mass is not None:
            self._write_cut(total_mass, infos)
        text = sealed(_manifest_of(self.path, build, infos))
        _write_if_other(self.path / MANIFEST, text.encode())

    def _write_cut(self, total_mass: NDArray[np.float64], infos: list[ShardInfo]) -> None:
        assert total_mass.shape == (self._build.num_nodes,)
        left_N = total_mass.astype(np.float64)
        for index, info in enumerate(infos):
            shard = map_shard(self.path / shard_name(index), info)
            np.subtract.at(left_N, shard.ids, shard.weights)
        data = _npy(np.maximum(left_N, 0.0).astype(np.float32))
        _write_if_other(self.path / CUT, data)

    @cached_property
    def _clusters(self) -> str | None:
        return file_checksum(self.path / CLUSTERS) if self._build.num_clusters else None


def _claim(directory: Path, build: Build, *, resume: bool, overwrite: bool) -> None:
    """Makes `directory` ready for `build`, or says why not; removes what `overwrite` allows."""
    if resume and overwrite:
        raise StoreError("--resume and --overwrite exclude each other, got both")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        names = sorted(path.name for path in directory.iterdir())
    except OSError as error:
        raise StoreError(f"{directory} cannot hold a store ({error}); use another --out") from error
    held = [name for name in names if not re.fullmatch(_LEFT_OVER, name)]
    if held and not is_store(directory):
        raise StoreError(
            f"{directory} is not empty and not a PPR store (it holds {held[0]}): use another --out"
        )
    if held and not (resume or overwrite):
        what = "a finished store" if MANIFEST in held else "an unfinished store"
        raise StoreError(
            f"{directory} already holds {what}: use --resume to go on with it, --overwrite to "
            "build it anew, or another --out"
        )
    if held and resume:
        _check_resumable(directory, build)
    if overwrite:
        (directory / MANIFEST).unlink(missing_ok=True)
    for name in names:
        # build.json stays until the new one takes its place: the directory is a store throughout.
        old = overwrite and name != BUILD and re.fullmatch(_OWN, name)
        if old or re.fullmatch(_LEFT_OVER, name):
            (directory / name).unlink(missing_ok=True)


def _check_resumable(directory: Path, build: Build) -> None:
    try:
        stored = Build.of(read_sealed(directory / BUILD))
    except StoreError as error:  # damaged: the manifest says the same, if there is one
        try:
            stored = Build.of(read_sealed(directory / MANIFEST))
        except StoreError:
            raise StoreError(f"{directory} cannot be resumed ({error}); {REBUILD}") from error
    if different := differences(asdict(stored), asdict(build), exact=True):
        raise StoreError(f"{directory} is of another build: {different}; {REBUILD}")


def _root_file(roots: NDArray[np.integer[Any]] | None, num_nodes: int) -> bytes | None:
    """Content of `roots.npy`; None if the roots are all nodes."""
    if roots is None:
        return None
    if roots.ndim != 1 or roots.dtype.kind not in "iu":
        raise StoreError(
            f"roots must be a vector of integer node ids, got {roots.dtype} of shape {roots.shape}"
        )
    if (falls := np.flatnonzero(roots[1:] <= roots[:-1])).size:
        raise StoreError(
            f"roots must rise without repeats, got {roots[falls[0]]} before {roots[falls[0] + 1]}"
        )
    if len(roots) and not (roots[0] >= 0 and roots[-1] < num_nodes):
        wrong = roots[0] if roots[0] < 0 else roots[-1]
        raise StoreError(f"root {wrong} is out of range, expected ids in [0, {num_nodes})")
    return None if len(roots) == num_nodes else _npy(roots.astype(np.int32))


def _manifest_of(directory: Path, build: Build, infos: list[ShardInfo]) -> dict[str, Any]:
    clustered = build.num_clusters > 0
    files = {ROOTS: build.roots is not None, CLUSTERS: clustered, CUT: clustered}
    # An exact sum: it does not depend on the order of additions, so not on the machine.
    missing = fsum(
        mass
        for index, info in enumerate(infos)
        for mass in map_shard(directory / shard_name(index), info).missing_mass.tolist()
    )
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
        "mean_missing_mass": missing / build.num_roots if build.num_roots else None,
    }


def _write_if_other(path: Path, data: bytes) -> None:
    if not _holds(path, data):
        with replacing_file(path, len(data)) as file:
            file.write(data)


def _holds(path: Path, data: bytes) -> bool:
    return path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data


def _npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()
