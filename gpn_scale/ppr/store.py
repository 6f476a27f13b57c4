"""The store of top-k PPR rows: a directory of shards, read by memory map; see `writer` to write.

`build.json` comes first and claims the directory for one build; then `roots.npy` (if the roots are
not all nodes), `clusters.npy` (if there are clusters) and one `shard-*.ppr` per chunk of roots, by
any number of processes; then, with clusters, `cut.npy`, and `manifest.json` last: without it the
store is unfinished. Every file is renamed into place, and equal builds have equal bytes, so a
killed build can be resumed.

Shapes: N nodes of the graph, B asked rows, E kept entries of these, P clusters.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpn_scale.csr import ranges
from gpn_scale.errors import StoreError
from gpn_scale.ppr.shard import (
    FORMAT,
    FORMAT_VERSION,
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
    read_shard_info,
    sealed,
)

BUILD, MANIFEST, ROOTS = "build.json", "manifest.json", "roots.npy"
CLUSTERS, CUT = "clusters.npy", "cut.npy"

_MAX_MAPPED = 256  # each mapped shard holds a file descriptor


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PPRRows:
    """Some rows of a store, in the order in which they were asked for."""

    row_ptr: NDArray[np.int64]
    """Offsets of the rows in `ids` and `weights`, (B + 1,)."""
    ids: NDArray[np.int32]
    """Kept nodes, by falling weight, (E,)."""
    weights: NDArray[np.float32]
    """Their weights, (E,)."""
    missing_mass: NDArray[np.float32]
    """What each row lost by the cut, (B,)."""
    cluster_mass: NDArray[np.float32]
    """The lost mass by cluster, (B, P)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """The content of `build.json`: what is built, and into how many shards."""

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    graph_fingerprint: str
    parameters: Mapping[str, Any]
    num_nodes: int
    num_roots: int
    roots: str | None
    """Checksum of `roots.npy`; None if the roots are all nodes."""
    rows_per_shard: int
    k: int
    num_clusters: int

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "Build":
        """The build that a `build.json` or `manifest.json` tells of."""
        return cls(**{field.name: stored[field.name] for field in fields(cls)})

    @property
    def text(self) -> str:
        """Content of the file."""
        return sealed(asdict(self))

    @property
    def fingerprint(self) -> str:
        """Hash of the file, which every shard carries."""
        return checksum(self.text.encode())

    @property
    def num_shards(self) -> int:
        """Number of shards."""
        return -(-self.num_roots // self.rows_per_shard)

    def shard_rows(self, index: int) -> tuple[int, int]:
        """First root position of shard `index`, and the one after its last."""
        start = index * self.rows_per_shard
        return start, min(start + self.rows_per_shard, self.num_roots)

    def shard_info(self, directory: Path, index: int, clusters: str | None) -> ShardInfo:
        """Header of shard `index`, which must be of this build; the data are not read."""
        info = read_shard_info(directory / shard_name(index))
        start, stop = self.shard_rows(index)
        expected = (self.fingerprint, clusters, start, stop - start, self.num_clusters)
        if (info.build, info.clusters, info.first, info.rows, info.num_clusters) != expected:
            raise StoreError(f"{directory / shard_name(index)} belongs to another build")
        return info


class PPRStore:
    """A finished store, open for reading: `open` makes one; it can be sent to other processes.

    Rows are copied out of the mapped shards; only the pages that hold them are read.
    """

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        build = Build.of(manifest)
        for name, facts in manifest["files"].items():
            _check_size(path / name, facts["bytes"])
        self._infos = [
            _manifest_info(path, manifest, build, index) for index in range(build.num_shards)
        ]
        self.path = path
        self.manifest = MappingProxyType(manifest)
        self.parameters = MappingProxyType(build.parameters)
        self.graph_fingerprint = build.graph_fingerprint
        self.num_nodes = build.num_nodes
        self.num_roots = build.num_roots
        self.num_clusters = build.num_clusters
        self.k = build.k
        self._build = build
        self._shard: Callable[[int], ShardArrays] = lru_cache(_MAX_MAPPED)(self._map)

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        graph_fingerprint: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> "PPRStore":
        """The store in `path`; reads JSON, headers and file sizes only.

        Args:
            path: The directory.
            graph_fingerprint: `Graph.structure_fingerprint()` that the store must be of.
            parameters: Parameters that the store must be built with; others may be anything.

        Raises:
            StoreError: it is no finished store, is damaged, or is not the one wanted.
        """
        directory = Path(path)
        manifest = read_manifest(directory)
        wanted: dict[str, Any] = {"parameters": json.loads(json.dumps(dict(parameters or {})))}
        if graph_fingerprint is not None:
            wanted["graph_fingerprint"] = graph_fingerprint
        if different := differences(manifest, wanted):
            raise StoreError(f"{directory} is not the store wanted: {different}; {REBUILD}")
        try:
            return cls(directory, manifest)
        except StoreError as error:
            raise StoreError(f"{error}; to repair it, {RESUME}") from error

    def __reduce__(self) -> tuple[Callable[..., "PPRStore"], tuple[Any, ...]]:
        return PPRStore.open, (self.path,)

    @cached_property
    def roots(self) -> NDArray[np.int64]:
        """Node ids of the stored rows, rising; (num_roots,)."""
        return self._ended_roots[:-1]

    @cached_property
    def _ended_roots(self) -> NDArray[np.int64]:
        """`roots` and -1, so that each position that `searchsorted` gives can be looked up."""
        if self._build.roots is None:
            roots = np.arange(self.num_roots, dtype=np.int64)
        else:
            roots = np.load(self.path / ROOTS, allow_pickle=False)
        return np.append(roots, np.int64(-1)).astype(np.int64)

    @cached_property
    def missing_mass(self) -> NDArray[np.float32]:
        """What each row lost by the cut, in the order of `roots`; (num_roots,)."""
        mass = np.empty(self.num_roots, np.float32)
        for index, info in enumerate(self._infos):
            mass[info.first : info.first + info.rows] = self._shard(index).missing_mass
        return mass

    @cached_property
    def cluster_of_node(self) -> NDArray[np.int32] | None:
        """Cluster of every node, mapped, (N,); None without clusters."""
        return self._of_nodes(CLUSTERS)

    @cached_property
    def cut_mass_of_node(self) -> NDArray[np.float32] | None:
        """What all stored rows together cut off from every node, mapped, (N,); None without."""
        return self._of_nodes(CUT)

    def _of_nodes(self, name: str) -> NDArray[Any] | None:
        return np.load(self.path / name, mmap_mode="r") if self.num_clusters else None

    @property
    def fingerprint(self) -> str:
        """Of all that is stored: the manifest names every file's checksum."""
        return checksum(json.dumps(dict(self.manifest), sort_keys=True).encode())

    @property
    def clusters_checksum(self) -> str | None:
        """Which clusters these are, and what their nodes weigh; None without."""
        files = self.manifest["files"]
        if CLUSTERS not in files:
            return None
        return " ".join(files[name]["checksum"] for name in (CLUSTERS, CUT))

    def row(self, node: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Kept nodes and their weights for the root `node`, by falling weight."""
        rows = self.rows([node])
        return rows.ids, rows.weights

    def rows(self, nodes: ArrayLike) -> PPRRows:
        """The rows of `nodes`, in any order and with repeats; costs as much as is returned.

        Raises:
            StoreError: `nodes` are not integers, or one is out of range or not among the roots.
        """
        position_B = self._positions(nodes)
        shard_B = position_B // self._build.rows_per_shard
        local_B = position_B - shard_B * self._build.rows_per_shard
        # Roots of one shard are served together: `parts` are index vectors into the asked nodes.
        order = np.argsort(shard_B, kind="stable")
        used, starts = np.unique(shard_B[order], return_index=True)
        parts = list(zip(used.tolist(), np.split(order, starts[1:]), strict=False))

        count_B = np.zeros(len(position_B), np.int64)
        missing_B = np.empty(len(position_B), np.float32)
        cluster_BP = np.empty((len(position_B), self.num_clusters), np.float32)
        for index, part in parts:
            shard, local = self._shard(index), local_B[part]
            count_B[part] = shard.row_ptr[local + 1] - shard.row_ptr[local]
            missing_B[part] = shard.missing_mass[local]
            cluster_BP[part] = shard.cluster_mass[local]
        row_ptr = np.concatenate([[0], np.cumsum(count_B)])
        ids_E = np.empty(row_ptr[-1], np.int32)
        weights_E = np.empty(row_ptr[-1], np.float32)
        for index, part in parts:
            shard, count = self._shard(index), count_B[part]
            source = ranges(shard.row_ptr[local_B[part]], count)
            target = ranges(row_ptr[part], count)
            ids_E[target] = shard.ids[source]
            weights_E[target] = shard.weights[source]
        return PPRRows(
            row_ptr=row_ptr,
            ids=ids_E,
            weights=weights_E,
            missing_mass=missing_B,
            cluster_mass=cluster_BP,
        )

    def _map(self, index: int) -> ShardArrays:
        return map_shard(self.path / shard_name(index), self._infos[index])

    def _positions(self, nodes: ArrayLike) -> NDArray[np.int64]:
        """Position of each node in the list of roots."""
        asked = np.asarray(nodes)
        if asked.ndim != 1 or (asked.size and asked.dtype.kind not in "iu"):
            raise StoreError(
                f"nodes must be a vector of integer ids, got {asked.dtype} of shape {asked.shape}"
            )
        wrong = asked[(asked < 0) | (asked >= self.num_nodes)]
        if len(wrong):
            raise StoreError(
                f"node {wrong[0]} is out of range: {self.path} is of a graph of {self.num_nodes} "
                f"nodes, expected ids in [0, {self.num_nodes})"
            )
        asked = asked.astype(np.int64)
        if self._build.roots is None:
            return asked
        positions = np.searchsorted(self.roots, asked)
        found = self._ended_roots[positions]
        if (found != asked).any():
            raise StoreError(
                f"node {asked[found != asked][0]} is not among the {self.num_roots} roots of "
                f"{self.path}; to have all nodes, build it again with `--roots all --overwrite`"
            )
        return positions


def verify_store(path: Path | str) -> list[str]:
    """Re-hashes all files of the store in `path`; one sentence for each that is not right."""
    directory = Path(path)
    problems = _complaints(read_manifest, directory)
    known = directory / MANIFEST
    if problems and known.exists():
        # A damaged manifest does not hide what else is: build.json tells which shards there are.
        known = directory / BUILD
        problems += _complaints(read_sealed, known)
    if problems and (len(problems) > 1 or known.name == MANIFEST):
        return problems
    stored = read_sealed(known)
    build = Build.of(stored)
    files = {name: facts["checksum"] for name, facts in stored.get("files", {}).items()}
    expected = {BUILD: build.fingerprint, ROOTS: build.roots} | files
    for name, wanted in expected.items():
        if wanted is not None:
            problems += _complaints(_check_file, directory / name, wanted)
    for index in range(build.num_shards):
        problems += _complaints(_check_shard, directory, stored, build, index)
    return problems


def shard_name(index: int) -> str:
    """File name of a shard."""
    return f"shard-{index:05d}.ppr"


def shard_entry(index: int, info: ShardInfo) -> dict[str, Any]:
    """What the manifest tells of a shard."""
    return {
        "file": shard_name(index),
        "first": info.first,
        "rows": info.rows,
        "entries": info.entries,
        "bytes": info.num_bytes,
        "checksum": info.checksum,
    }


def read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest of the store in `directory`, or the reason why it has none."""
    if (directory / MANIFEST).exists():
        return read_sealed(directory / MANIFEST)
    if is_store(directory):
        raise StoreError(f"{directory} is an unfinished PPR store (no {MANIFEST}): {RESUME}")
    raise StoreError(
        f"{directory} is not a PPR store (no {MANIFEST}): build one with "
        "`python -m precompute ... --out STORE`"
    )


def is_store(directory: Path) -> bool:
    """Whether `directory` holds a store or a part of one, of any version, sound or not."""
    mark = f'"format": "{FORMAT}"'.encode()
    paths = [directory / BUILD, directory / MANIFEST]
    return any(path.is_file() and mark in path.read_bytes() for path in paths)


def _manifest_info(
    directory: Path, manifest: Mapping[str, Any], build: Build, index: int
) -> ShardInfo:
    clusters = manifest["files"].get(CLUSTERS, {}).get("checksum")
    info = build.shard_info(directory, index, clusters)
    if shard_entry(index, info) != manifest["shards"][index]:
        raise StoreError(f"{directory / shard_name(index)} is not the shard that {MANIFEST} names")
    return info


def _check_shard(directory: Path, stored: Mapping[str, Any], build: Build, index: int) -> None:
    path = directory / shard_name(index)
    told = "shards" in stored
    info = _manifest_info(directory, stored, build, index) if told else read_shard_info(path)
    check_shard_data(path, info)


def _check_file(path: Path, wanted: str) -> None:
    if (found := file_checksum(path)) != wanted:
        raise StoreError(f"{path} is corrupt or truncated: checksum {found}, expected {wanted}")


def _complaints(check: Callable[..., object], *arguments: object) -> list[str]:
    try:
        check(*arguments)
    except StoreError as error:
        return [str(error)]
    return []


def _check_size(path: Path, num_bytes: int) -> None:
    found = path.stat().st_size if path.is_file() else None
    if found is None:
        raise StoreError(f"{path} is missing")
    if found != num_bytes:
        raise StoreError(f"{path} is truncated or corrupt: {found} bytes, expected {num_bytes}")
