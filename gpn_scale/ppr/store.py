"""Reader of a store of top-k PPR rows: a directory of memory-mapped shards (see `writer`).

Files, in the order in which they are written:

- `build.json` claims the directory for one build;
- `roots.npy` lists the roots, unless they are all nodes;
- `clusters.npy` holds the cluster of every node, if there are clusters;
- `shard-*.ppr` hold the rows of consecutive roots; several processes may write them;
- `cut.npy`, with clusters, holds the mass that all rows together cut from every node;
- `manifest.json` makes the store complete;
- `build_seconds.json`, written along the way, holds the time that the build took so far.

Every file is renamed into place, and equal builds have equal bytes (apart from the time), so a
killed build can be resumed.

Shapes: N nodes of the graph, B requested rows, E kept entries of these, P clusters.
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
from gpn_scale.ppr.rows import Rows
from gpn_scale.ppr.shard import (
    FORMAT,
    FORMAT_VERSION,
    REBUILD,
    REBUILD_ARGUMENTS,
    RESUME,
    RESUME_ARGUMENTS,
    ShardInfo,
    checksum,
    differences,
    map_shard,
    read_sealed,
    read_shard_info,
    sealed,
    shard_entry,
    shard_name,
)

BUILD, MANIFEST, ROOTS = "build.json", "manifest.json", "roots.npy"
CLUSTERS, CUT = "clusters.npy", "cut.npy"
SECONDS = "build_seconds.json"

_MAX_MAPPED = 256  # each mapped shard holds a file descriptor


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """The content of `build.json`: what is built, and how it is divided into shards.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> with TemporaryDirectory() as folder:
    ...     build = Build.of(example_store(folder).manifest)
    >>> build.num_shards, build.shard_rows(0)
    (1, (0, 3))
    """

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    graph_fingerprint: str
    """`Graph.structure_fingerprint()` of the graph."""
    parameters: Mapping[str, Any]
    """Everything that the rows depend on besides the graph."""
    num_nodes: int
    """Number of nodes N."""
    num_roots: int
    """Number of rows."""
    roots: str | None
    """Checksum of `roots.npy`; None if the roots are all nodes."""
    rows_per_shard: int
    """Rows of each shard but the last."""
    k: int
    """Largest number of entries of a row."""
    num_clusters: int
    """Number of clusters P; 0 without clusters."""

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "Build":
        """Return the build that a `build.json` or `manifest.json` describes."""
        return cls(**{field.name: stored[field.name] for field in fields(cls)})

    @property
    def text(self) -> str:
        """The text of `build.json`."""
        return sealed(asdict(self))

    @property
    def fingerprint(self) -> str:
        """Hash of `build.json`, which every shard contains."""
        return checksum(self.text.encode())

    @property
    def num_shards(self) -> int:
        """Number of shards."""
        return -(-self.num_roots // self.rows_per_shard)

    def shard_rows(self, index: int) -> tuple[int, int]:
        """Return the first root position of shard `index`, and the one after its last."""
        start = index * self.rows_per_shard
        return start, min(start + self.rows_per_shard, self.num_roots)

    def shard_info(self, directory: Path, index: int, clusters: str | None) -> ShardInfo:
        """Return the header of shard `index` without reading its data.

        Raises:
            StoreError: the header is damaged or belongs to another build.
        """
        info = read_shard_info(directory / shard_name(index))
        start, stop = self.shard_rows(index)
        expected = (self.fingerprint, clusters, start, stop - start, self.num_clusters)
        if (info.build, info.clusters, info.first, info.rows, info.num_clusters) != expected:
            raise StoreError(f"{directory / shard_name(index)} belongs to another build")
        return info


class PPRStore:
    """A complete store, open for reading; create it with `PPRStore.open`. It can be pickled.

    Rows are copied out of memory-mapped shards, so only the pages that hold them are read.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> with TemporaryDirectory() as folder:
    ...     store = PPRStore.open(example_store(folder).path)
    ...     ids, weights = store.row(1)
    >>> ids.tolist(), weights.tolist()
    ([1, 0], [0.5, 0.25])
    """

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        build = Build.of(manifest)
        for name, facts in manifest["files"].items():
            _check_size(path / name, facts["bytes"])
        self._infos = [
            manifest_shard_info(path, manifest, build, index) for index in range(build.num_shards)
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
        self._shard: Callable[[int], Rows] = lru_cache(_MAX_MAPPED)(self._map)

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        graph_fingerprint: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> "PPRStore":
        """Return the store in `path`, reading only JSON, headers and file sizes.

        Args:
            path: The directory.
            graph_fingerprint: Required `Graph.structure_fingerprint()` of the store's graph.
            parameters: Required values of some of the store's parameters.

        Raises:
            StoreError: there is no complete store, it is damaged, or it is not as required.
        """
        directory = Path(path)
        manifest = read_manifest(directory)
        wanted: dict[str, Any] = {"parameters": json.loads(json.dumps(dict(parameters or {})))}
        if graph_fingerprint is not None:
            wanted["graph_fingerprint"] = graph_fingerprint
        if different := differences(manifest, wanted):
            raise StoreError(
                f"{directory} is not the requested store: {different}; {REBUILD}",
                arguments=REBUILD_ARGUMENTS,
            )
        try:
            return cls(directory, manifest)
        except StoreError as error:
            raise StoreError(
                f"{error}; to repair it, {RESUME}", arguments=RESUME_ARGUMENTS
            ) from error

    def __reduce__(self) -> tuple[Callable[..., "PPRStore"], tuple[Any, ...]]:
        return PPRStore.open, (self.path,)

    @cached_property
    def roots(self) -> NDArray[np.int64]:
        """Node ids of the stored rows, sorted; (num_roots,)."""
        return self._ended_roots[:-1]

    @cached_property
    def _ended_roots(self) -> NDArray[np.int64]:
        """`roots` and a final -1, so that every position from `searchsorted` can be looked up."""
        if self._build.roots is None:
            roots = np.arange(self.num_roots, dtype=np.int64)
        else:
            roots = np.load(self.path / ROOTS, allow_pickle=False)
        return np.append(roots, np.int64(-1)).astype(np.int64)

    @cached_property
    def missing_mass(self) -> NDArray[np.float32]:
        """Mass that the cut removed from each row, in the order of `roots`; (num_roots,)."""
        mass = np.empty(self.num_roots, np.float32)
        for index, info in enumerate(self._infos):
            mass[info.first : info.first + info.rows] = self._shard(index).missing_mass
        return mass

    @cached_property
    def cluster_of_node(self) -> NDArray[np.int32] | None:
        """Cluster of every node, memory-mapped, (N,); None without clusters."""
        return self._of_nodes(CLUSTERS)

    @cached_property
    def cut_mass_of_node(self) -> NDArray[np.float32] | None:
        """Mass that all rows together cut from every node, like `cluster_of_node`, (N,)."""
        return self._of_nodes(CUT)

    def _of_nodes(self, name: str) -> NDArray[Any] | None:
        return np.load(self.path / name, mmap_mode="r") if self.num_clusters else None

    @property
    def build_seconds(self) -> float:
        """Time that the build took, summed over resumed builds; 0 if it was not recorded."""
        return read_build_seconds(self.path)

    @property
    def fingerprint(self) -> str:
        """Hash of the whole content: the manifest names every file's checksum."""
        return checksum(json.dumps(dict(self.manifest), sort_keys=True).encode())

    @property
    def clusters_checksum(self) -> str | None:
        """Checksum of the clusters and of their nodes' weights; None without clusters."""
        files = self.manifest["files"]
        if CLUSTERS not in files:
            return None
        return " ".join(files[name]["checksum"] for name in (CLUSTERS, CUT))

    def row(self, node: int) -> tuple[NDArray[np.integer[Any]], NDArray[np.float32]]:
        """Return the kept nodes of the root `node` and their weights, by decreasing weight."""
        rows = self.rows([node])
        return rows.ids, rows.weights

    def rows(self, nodes: ArrayLike) -> Rows:
        """Return the rows of `nodes`, which may have any order and repeats; no other rows are read.

        Raises:
            StoreError: `nodes` are not integers, or one is out of range or not among the roots.
        """
        position_B = self._positions(nodes)
        shard_B = position_B // self._build.rows_per_shard
        local_B = position_B - shard_B * self._build.rows_per_shard
        # Roots of one shard are read together: `by_shard` holds positions in `nodes`.
        order = np.argsort(shard_B, kind="stable")
        used, starts = np.unique(shard_B[order], return_index=True)
        by_shard = list(zip(used.tolist(), np.split(order, starts[1:]), strict=False))

        count_B = np.zeros(len(position_B), np.int64)
        missing_B = np.empty(len(position_B), np.float32)
        cut_BP = np.empty((len(position_B), self.num_clusters), np.float32)
        for index, chosen in by_shard:
            shard, local = self._shard(index), local_B[chosen]
            count_B[chosen] = shard.row_ptr[local + 1] - shard.row_ptr[local]
            missing_B[chosen] = shard.missing_mass[local]
            cut_BP[chosen] = shard.cut_mass[local]
        row_ptr = np.concatenate([[0], np.cumsum(count_B)])
        ids_E = np.empty(row_ptr[-1], np.int32)
        weights_E = np.empty(row_ptr[-1], np.float32)
        for index, chosen in by_shard:
            shard, count = self._shard(index), count_B[chosen]
            source = ranges(shard.row_ptr[local_B[chosen]], count)
            target = ranges(row_ptr[chosen], count)
            ids_E[target] = shard.ids[source]
            weights_E[target] = shard.weights[source]
        return Rows(
            row_ptr=row_ptr,
            ids=ids_E,
            weights=weights_E,
            missing_mass=missing_B,
            cut_mass=cut_BP,
        )

    def _map(self, index: int) -> Rows:
        return map_shard(self.path / shard_name(index), self._infos[index])

    def _positions(self, nodes: ArrayLike) -> NDArray[np.int64]:
        """Return the position of each node in the list of roots."""
        ids = np.asarray(nodes)
        if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
            raise StoreError(
                f"nodes must be a vector of integer ids, got {ids.dtype} of shape {ids.shape}"
            )
        wrong = ids[(ids < 0) | (ids >= self.num_nodes)]
        if len(wrong):
            raise StoreError(
                f"node {wrong[0]} is out of range: {self.path} belongs to a graph of "
                f"{self.num_nodes} nodes, expected ids in [0, {self.num_nodes})"
            )
        ids = ids.astype(np.int64)
        if self._build.roots is None:
            return ids
        positions = np.searchsorted(self.roots, ids)
        without_row = ids[self._ended_roots[positions] != ids]
        if len(without_row):
            raise StoreError(
                f"node {without_row[0]} is not among the {self.num_roots} roots of {self.path}; "
                "to have all nodes, build the store again with roots=None",
                arguments=("roots=None",),
            )
        return positions


def read_manifest(directory: Path) -> dict[str, Any]:
    """Return the manifest of the store in `directory`.

    >>> read_manifest(Path("no_store"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    gpn_scale.errors.StoreError: no_store is not a PPR store (no manifest.json): ...

    Raises:
        StoreError: there is no manifest, or it is damaged.
    """
    if (directory / MANIFEST).exists():
        return read_sealed(directory / MANIFEST)
    if is_store(directory):
        raise StoreError(
            f"{directory} is an unfinished PPR store (no {MANIFEST}): {RESUME}",
            arguments=RESUME_ARGUMENTS,
        )
    raise StoreError(
        f"{directory} is not a PPR store (no {MANIFEST}): build one with "
        "precompute.build.build_store",
        arguments=("build_store",),
    )


def read_build_seconds(directory: Path) -> float:
    """Return the recorded build time of the store in `directory`; 0 if there is none.

    >>> read_build_seconds(Path("no_store"))
    0.0
    """
    try:
        return float(json.loads((directory / SECONDS).read_bytes())["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0


def is_store(directory: Path) -> bool:
    """Return whether `directory` holds (part of) a store, even damaged or of another version.

    >>> is_store(Path("no_store"))
    False
    """
    signature = f'"format": "{FORMAT}"'.encode()
    paths = [directory / BUILD, directory / MANIFEST]
    return any(path.is_file() and signature in path.read_bytes() for path in paths)


def manifest_shard_info(
    directory: Path, manifest: Mapping[str, Any], build: Build, index: int
) -> ShardInfo:
    """Return the header of shard `index`.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> with TemporaryDirectory() as folder:
    ...     manifest = example_store(folder).manifest
    ...     manifest_shard_info(Path(folder), manifest, Build.of(manifest), 0).entries
    6

    Raises:
        StoreError: the header is damaged, or not the one that the manifest lists.
    """
    clusters = manifest["files"].get(CLUSTERS, {}).get("checksum")
    info = build.shard_info(directory, index, clusters)
    if shard_entry(index, info) != manifest["shards"][index]:
        raise StoreError(f"{directory / shard_name(index)} is not the shard that {MANIFEST} names")
    return info


def _check_size(path: Path, num_bytes: int) -> None:
    if not path.is_file():
        raise StoreError(f"{path} is missing")
    if (actual := path.stat().st_size) != num_bytes:
        raise StoreError(f"{path} is truncated or corrupt: {actual} bytes, expected {num_bytes}")
