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
killed build can be resumed. Every file is checked before it is believed: JSON when the store is
opened, whole arrays of nodes when they are first used, and shards block by block, as rows are read.

Shapes: N nodes of the graph, B requested rows, E kept entries of these, P clusters.
"""

import json
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpn_scale.csr import ranges
from gpn_scale.errors import StoreError
from gpn_scale.ppr.block_guard import BlockGuard
from gpn_scale.ppr.manifest import (
    CLUSTERS,
    CUT,
    ROOTS,
    Build,
    check_size,
    manifest_shard_info,
    read_build_seconds,
    read_manifest,
)
from gpn_scale.ppr.node_file import read_node_file
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
)
from gpn_scale.ppr.shard import shard_name

_MAX_MAPPED = 192  # each open shard holds two file descriptors


class PPRStore:
    """A complete store, open for reading; create it with `PPRStore.open`. It can be pickled.

    Rows are copied out of memory-mapped shards, so only the blocks that hold them are read, and
    checked when a process first reads them.

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
            check_size(path / name, facts["bytes"])
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
        self._shard = lru_cache(_MAX_MAPPED)(self._open_shard)
        self._guard = BlockGuard(self._infos, self._shard)

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
        wanted: dict[str, Any] = {"parameters": as_stored(parameters or {})}
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
            roots: NDArray[Any] = np.arange(self.num_roots, dtype=np.int64)
        else:
            roots = self._of_nodes(ROOTS, "<i4", self.num_roots, below=self.num_nodes)
        return np.append(roots, np.int64(-1)).astype(np.int64)

    @cached_property
    def missing_mass(self) -> NDArray[np.float32]:
        """Mass that the cut removed from each row, in the order of `roots`; (num_roots,)."""
        mass = np.empty(self.num_roots, np.float32)
        for index, info in enumerate(self._infos):
            local = np.arange(info.rows)
            self._guard.check_rows(np.full(info.rows, index), local)
            mass[info.first : info.first + info.rows] = self._shard(index).rows.missing_mass
        return mass

    @cached_property
    def cluster_of_node(self) -> NDArray[np.int32] | None:
        """Cluster of every node, (N,); None without clusters."""
        if not self.num_clusters:
            return None
        return self._of_nodes(CLUSTERS, "<i4", self.num_nodes, below=self.num_clusters)

    @cached_property
    def cut_mass_of_node(self) -> NDArray[np.float32] | None:
        """Mass that all rows together cut from every node, like `cluster_of_node`, (N,)."""
        if not self.num_clusters:
            return None
        return self._of_nodes(CUT, "<f4", self.num_nodes, below=np.inf)

    def _of_nodes(self, name: str, dtype: str, size: int, *, below: float) -> NDArray[Any]:
        wanted = self.manifest["files"][name]["checksum"]
        return read_node_file(self.path / name, wanted, dtype, size, below=below)

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
            StoreError: `nodes` are not integers, one is out of range or not among the roots, or
                the file is damaged where it holds their rows.
        """
        position_B = self._positions(nodes)
        try:
            return self._rows_at(position_B)
        except StoreError:
            # Files may have been repaired under new inodes since they were opened.
            self._shard.cache_clear()
            return self._rows_at(position_B)

    def _rows_at(self, position_B: NDArray[np.int64]) -> Rows:
        """Return the rows at positions in the list of roots."""
        shard_B = position_B // self._build.rows_per_shard
        local_B = position_B - shard_B * self._build.rows_per_shard
        # Roots of one shard are read together: `by_shard` holds positions in `nodes`.
        order = np.argsort(shard_B, kind="stable")
        used, starts = np.unique(shard_B[order], return_index=True)
        by_shard = list(zip(used.tolist(), np.split(order, starts[1:]), strict=False))

        self._guard.check_rows(shard_B, local_B)
        start_B, stop_B = np.zeros((2, len(position_B)), np.int64)
        missing_B = np.empty(len(position_B), np.float32)
        cut_BP = np.empty((len(position_B), self.num_clusters), np.float32)
        for index, chosen in by_shard:
            shard, local = self._shard(index).rows, local_B[chosen]
            start_B[chosen] = shard.row_ptr[local]
            stop_B[chosen] = shard.row_ptr[local + 1]
            missing_B[chosen] = shard.missing_mass[local]
            cut_BP[chosen] = shard.cut_mass[local]
        self._check_pointers(shard_B, start_B, stop_B)
        self._guard.check_entries(shard_B, start_B, stop_B)
        row_ptr = np.concatenate([[0], np.cumsum(stop_B - start_B)])
        ids_E = np.empty(row_ptr[-1], np.int32)
        weights_E = np.empty(row_ptr[-1], np.float32)
        for index, chosen in by_shard:
            shard, count = self._shard(index).rows, stop_B[chosen] - start_B[chosen]
            source = ranges(start_B[chosen], count)
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

    def _open_shard(self, index: int) -> OpenShard:
        shard = OpenShard(self.path / shard_name(index), self._infos[index], self.num_nodes)
        self._guard.forget(index, shard)
        return shard

    def _check_pointers(
        self, shard_B: NDArray[np.int64], start_B: NDArray[np.int64], stop_B: NDArray[np.int64]
    ) -> None:
        """Refuse row pointers that no build writes, though their checksum is right."""
        if (wrong := np.flatnonzero((start_B > stop_B) | (stop_B - start_B > self.k))).size:
            name = shard_name(int(shard_B[wrong[0]]))
            raise StoreError(
                f"{self.path / name} is damaged: the pointers of a row are {start_B[wrong[0]]} and "
                f"{stop_B[wrong[0]]}, expected at most {self.k} entries; {REBUILD}",
                arguments=REBUILD_ARGUMENTS,
            )

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
