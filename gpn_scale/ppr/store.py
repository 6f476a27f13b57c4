"""Reader of a store of top-k PPR rows: a directory of memory-mapped shards (see `writer`).

Files, in the order in which they are written:

- `build.json` claims the directory for one build;
- `roots.npy` lists the roots, unless they are all nodes;
- `clusters.npy` holds the cluster of every node, if there are clusters;
- `shard-*.ppr` hold the rows of consecutive roots; several processes may write them;
- `cut.npy`, with clusters, holds the mass that all rows together cut from every node;
- `graph/` holds the structure of the graph, with which an update compares the next one;
- `manifest.json` makes the store complete;
- `build_seconds.json`, written during the build, holds the time that it has taken so far.

While parts are computed there are further files, see `part_files`; completing the store removes
them.

Every file is renamed into place, and equal builds have equal bytes (apart from the time), so a
killed build can be resumed. An update adds a folder (see `generations`) and replaces the manifest.
Every file is checked before it is used: JSON files when the store is opened, arrays of nodes when
they are first used, and shards block by block, as rows are read.

Shapes: N nodes of the graph, B requested rows, E kept entries of these, P clusters.
"""

import json
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpn_scale.csr import ranges
from gpn_scale.errors import StoreError
from gpn_scale.locks import InUse
from gpn_scale.ppr.block_guard import BlockGuard
from gpn_scale.ppr.generations import (
    RowPlaces,
    ShardPlace,
    listed_generations,
    open_generations,
)
from gpn_scale.ppr.manifest import BUILD, CLUSTERS, CUT, Build, read_build_seconds, read_manifest
from gpn_scale.ppr.manifest_schema import HISTORY
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
from gpn_scale.ppr.stored_graph import read_stored_graph

if TYPE_CHECKING:
    from gpn_scale.data.graph import Graph  # loads scipy, which readers of rows do not need

Names = tuple[str, ...]
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
        self._generations = open_generations(path, manifest)
        self._marks = [_mark_in_use(each.path / BUILD) for each in self._generations]
        self._places = RowPlaces(self._generations)
        self.path = path
        self.manifest = MappingProxyType(manifest)
        self.parameters = MappingProxyType(build.parameters)
        self.graph_fingerprint = build.graph_fingerprint
        self.num_nodes = build.num_nodes
        self.num_roots = build.num_roots
        self.num_clusters = build.num_clusters
        self.k = build.k
        self._build = build
        # There is no reference cycle, so the marks end with the last reference to the store.
        guards: list[BlockGuard] = []
        self._shard = lru_cache(_MAX_MAPPED)(partial(_open_shard, self._places.shards, guards))
        self._guard = BlockGuard([place.info for place in self._places.shards], self._shard)
        guards.append(self._guard)

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
            StoreError: there is no complete store, or it is damaged or not as required.
        """
        directory = Path(path)
        manifest = read_manifest(directory)
        try:
            return cls._opened(directory, manifest, graph_fingerprint, parameters)
        except StoreError:
            # An update or `compact` may have replaced the manifest in the meantime.
            if (newer := read_manifest(directory)) == manifest:
                raise
            return cls._opened(directory, newer, graph_fingerprint, parameters)

    @classmethod
    def _opened(
        cls,
        directory: Path,
        manifest: dict[str, Any],
        graph_fingerprint: str | None,
        parameters: Mapping[str, Any] | None,
    ) -> "PPRStore":
        wanted: dict[str, Any] = {"parameters": as_stored(parameters or {})}
        if graph_fingerprint is not None:
            wanted["graph_fingerprint"] = graph_fingerprint
        if different := differences(manifest, wanted):
            advice, arguments = _advice(manifest, graph_fingerprint)
            raise StoreError(
                f"{directory} is not the requested store: {different}; {advice}",
                arguments=arguments,
            )
        try:
            return cls(directory, manifest)
        except StoreError as error:
            raise StoreError(
                f"{error}; to repair it, {RESUME}", arguments=RESUME_ARGUMENTS
            ) from error

    def __reduce__(self) -> tuple[Callable[..., "PPRStore"], tuple[Any, ...]]:
        # The copy has the same rows, even if the store on disk has been updated meanwhile.
        return PPRStore, (self.path, dict(self.manifest))

    @cached_property
    def roots(self) -> NDArray[np.int64]:
        """Node ids of the stored rows, sorted; (num_roots,)."""
        return self._ended_roots[:-1]

    @cached_property
    def _ended_roots(self) -> NDArray[np.int64]:
        """`roots` and a final -1, so that every position from `searchsorted` can be looked up."""
        return np.append(self._places.roots, np.int64(-1))

    @cached_property
    def missing_mass(self) -> NDArray[np.float32]:
        """Mass that the cut removed from each row, in the order of `roots`; (num_roots,)."""
        mass = np.empty(self.num_roots, np.float32)
        shard, local = self._places.of(self.roots)
        for index, chosen in _groups(shard):
            self._guard.check_rows(shard[chosen], local[chosen])
            mass[chosen] = self._shard(index).rows.missing_mass[local[chosen]]
        return mass

    @property
    def num_entries(self) -> int:
        """Number of entries of all rows."""
        shard, local = self._places.of(self.roots)
        count = 0
        for index, chosen in _groups(shard):
            self._guard.check_rows(shard[chosen], local[chosen])
            count += int(np.diff(self._shard(index).rows.row_ptr)[local[chosen]].sum())
        return count

    @property
    def history(self) -> list[dict[str, Any]]:
        """Record of each update of the store, oldest first."""
        return list(self.manifest.get(HISTORY, []))

    def update(self, graph: "Graph", *, tolerance: float = 0.01) -> "PPRStore":
        """Update the rows on disk to those of a changed graph, and return the updated store.

        This object keeps reading the old rows. `precompute.update.update_store` has further
        arguments and returns the plan that was carried out.

        Args:
            graph: The new graph, which begins with the nodes of the store's graph.
            tolerance: Rows of which more than this mass may have moved are recomputed.

        Raises:
            ConfigError: the tolerance is not a number of at least 0.
            StoreError: the graph is not a later version of the store's, or the store is damaged.
        """
        from precompute.update import update_store

        update_store(self.path, graph, tolerance=tolerance)
        return PPRStore.open(self.path)

    def stored_graph(self) -> "Graph":
        """Return the structure of the graph of the rows, without features and labels.

        Raises:
            StoreError: the store does not contain its graph, or the graph is damaged.
        """
        newest = self._generations[-1]
        return read_stored_graph(
            newest.path, newest.manifest, self.graph_fingerprint, self.num_nodes
        )

    def moved(self, nodes: ArrayLike) -> NDArray[np.float32]:
        """Return the mass by which the true rows of `nodes` may differ from the stored ones, (B,).

        It is 0 for rows computed on the current graph; only updates keep rows of an older graph.
        It comes on top of the mass that the cut removed.

        Raises:
            StoreError: as in `rows`.
        """
        positions = self._positions(nodes)
        if self._moved is None:
            return np.zeros(len(positions), np.float32)
        return self._moved[positions]

    @cached_property
    def _moved(self) -> NDArray[np.float32] | None:
        return self._generations[-1].moved(self.num_roots)

    @cached_property
    def cluster_of_node(self) -> NDArray[np.int32] | None:
        """Cluster of every node, (N,); None without clusters."""
        if not self.num_clusters:
            return None
        return self._of_nodes(CLUSTERS, "<i4", self.num_nodes, below=self.num_clusters)

    @cached_property
    def cut_mass_of_node(self) -> NDArray[np.float32] | None:
        """Mass that the cut of all rows removed from every node, (N,); None without clusters."""
        if not self.num_clusters:
            return None
        return self._of_nodes(CUT, "<f4", self.num_nodes, below=np.inf)

    def _of_nodes(self, name: str, dtype: str, size: int, *, below: float) -> NDArray[Any]:
        return self._generations[-1].node_file(name, dtype, size, below=below)

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
        files = self._generations[-1].manifest["files"]
        if CLUSTERS not in files:
            return None
        return " ".join(files[name]["checksum"] for name in (CLUSTERS, CUT))

    def row(self, node: int) -> tuple[NDArray[np.integer[Any]], NDArray[np.float32]]:
        """Return the kept nodes of the root `node` and their weights, by decreasing weight."""
        rows = self.rows([node])
        return rows.ids, rows.weights

    def rows(self, nodes: ArrayLike) -> Rows:
        """Return the rows of `nodes`, which may be unsorted and repeated; reads no other rows.

        Raises:
            StoreError: `nodes` are not integers, one is out of range or not among the roots, or
                the file is damaged where it holds their rows.
        """
        self._positions(nodes)
        places = self._places.of(np.asarray(nodes, np.int64))
        try:
            return self._rows_at(*places)
        except StoreError:
            # A repair may have replaced files since they were opened.
            self._shard.cache_clear()
            return self._rows_at(*places)

    def _rows_at(self, shard_B: NDArray[np.int64], local_B: NDArray[np.int64]) -> Rows:
        """Return the rows at places in shards."""
        by_shard = _groups(shard_B)
        self._guard.check_rows(shard_B, local_B)
        start_B, stop_B = np.zeros((2, len(shard_B)), np.int64)
        missing_B = np.empty(len(shard_B), np.float32)
        cut_BP = np.empty((len(shard_B), self.num_clusters), np.float32)
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

    def _check_pointers(
        self, shard_B: NDArray[np.int64], start_B: NDArray[np.int64], stop_B: NDArray[np.int64]
    ) -> None:
        """Refuse row pointers that no build writes, even if their checksum is correct."""
        if (wrong := np.flatnonzero((start_B > stop_B) | (stop_B - start_B > self.k))).size:
            path = self._places.shards[int(shard_B[wrong[0]])].path
            raise StoreError(
                f"{path} is damaged: the pointers of a row are {start_B[wrong[0]]} and "
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
                f"node {without_row[0]} is not among the {self.num_roots} roots of {self.path}; to "
                "get rows of all nodes, build the store again with roots=None",
                arguments=("roots=None",),
            )
        return positions


def _advice(manifest: Mapping[str, Any], graph_fingerprint: str | None) -> tuple[str, Names]:
    """Return advice about a store that is not the requested one, and the arguments to change."""
    of_graphs = [listed["graph_fingerprint"] for _, listed in listed_generations(manifest)]
    if graph_fingerprint in (None, of_graphs[-1]):
        return REBUILD, REBUILD_ARGUMENTS
    if graph_fingerprint in of_graphs:
        return "it has been updated to a later version of this graph: put that in its place", ()
    return (
        "if this is a later version of its graph, update the store with update(graph), else "
        f"{REBUILD}",
        ("update_store", *REBUILD_ARGUMENTS),
    )


def _open_shard(places: list[ShardPlace], guards: list[BlockGuard], index: int) -> OpenShard:
    shard = OpenShard(places[index].path, places[index].info, places[index].num_nodes)
    for guard in guards:
        guard.forget(index, shard)
    return shard


def _mark_in_use(path: Path) -> InUse:
    try:
        return InUse(path)
    except OSError as error:
        raise StoreError(f"{path} is missing or cannot be read ({error})") from error


def _groups(shard_B: NDArray[np.int64]) -> list[tuple[int, NDArray[np.int64]]]:
    """Return each distinct shard with its positions, so that it is read once."""
    order = np.argsort(shard_B, kind="stable")
    used, starts = np.unique(shard_B[order], return_index=True)
    return list(zip(used.tolist(), np.split(order, starts[1:]), strict=False))
