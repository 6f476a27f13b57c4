"""Generations of a store: the original build, and a folder for every update.

An update recomputes some rows and writes them to a new folder, which is an ordinary store of these
rows. The manifest of the store then lists its generations, oldest first, and a row is read from the
newest one that has it. Older files do not change, so that readers which opened the store earlier
can continue.

Shapes: G generations, S shards of all of them, B requested rows, R rows of the later generations.
"""

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.errors import StoreError
from gpn_scale.files import remove, remove_folder, remove_left_over
from gpn_scale.ppr.manifest import (
    MANIFEST,
    MOVED,
    ROOTS,
    STORE_FILES,
    Build,
    check_size,
    manifest_shard_info,
)
from gpn_scale.ppr.manifest_schema import FIRST_FOLDER, GENERATIONS, is_generation_folder
from gpn_scale.ppr.node_file import read_node_file
from gpn_scale.ppr.sealed import read_sealed
from gpn_scale.ppr.shard import ShardInfo, shard_name


def generation_folder(number: int) -> str:
    """Return the name of the folder of a later generation.

    >>> generation_folder(3)
    'generation-00003'
    """
    return f"generation-{number:05d}"


@dataclass(frozen=True, slots=True, eq=False)
class Generation:
    """One generation; its file sizes and shard headers have been checked.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> from gpn_scale.ppr.manifest import read_manifest
    >>> with TemporaryDirectory() as folder:
    ...     path = example_store(folder).path
    ...     generation = open_generations(path, read_manifest(path))[0]
    ...     generation.roots().tolist(), len(generation.infos)
    ([0, 1, 2], 1)
    """

    path: Path
    manifest: Mapping[str, Any]
    build: Build
    infos: tuple[ShardInfo, ...]
    """Headers of its shards."""

    def roots(self) -> NDArray[np.int64]:
        """Return the node ids of its rows, sorted.

        Raises:
            StoreError: the list is damaged.
        """
        if self.build.roots is None:
            return np.arange(self.build.num_roots, dtype=np.int64)
        return self.node_file(ROOTS, "<i4", self.build.num_roots, below=self.build.num_nodes)

    def node_file(self, name: str, dtype: str, size: int, *, below: float) -> NDArray[Any]:
        """Return an array that its manifest lists, after checking it.

        Raises:
            StoreError: the file is missing or damaged.
        """
        wanted = self.manifest["files"][name]["checksum"]
        return read_node_file(self.path / name, wanted, dtype, size, below=below)

    def moved(self, num_roots: int) -> NDArray[np.float32] | None:
        """Return bounds on how far the rows of the whole store moved; None if none did.

        Raises:
            StoreError: the file is damaged.
        """
        if MOVED not in self.manifest["files"]:
            return None
        return self.node_file(MOVED, "<f4", num_roots, below=np.inf)


def listed_generations(manifest: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return folder and manifest of each generation that a store's manifest lists, oldest first.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> with TemporaryDirectory() as folder:
    ...     [place for place, _ in listed_generations(example_store(folder).manifest)]
    ['.']
    """
    if GENERATIONS not in manifest:
        return [(FIRST_FOLDER, manifest)]
    return [(entry["folder"], entry["manifest"]) for entry in manifest[GENERATIONS]]


def open_generations(directory: Path, manifest: Mapping[str, Any]) -> list[Generation]:
    """Return the generations that `manifest` lists; reads file sizes and the headers of shards.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> with TemporaryDirectory() as folder:
    ...     store = example_store(folder)
    ...     [each.build.num_roots for each in open_generations(store.path, store.manifest)]
    [3]

    Raises:
        StoreError: a file is missing, has another size, or its header is damaged.
    """
    generations = []
    for folder, listed in listed_generations(manifest):
        path, build = directory / folder, Build.of(listed)
        for name, facts in listed["files"].items():
            check_size(path / name, facts["bytes"])
        infos = tuple(
            manifest_shard_info(path, listed, build, index) for index in range(build.num_shards)
        )
        generations.append(Generation(path, listed, build, infos))
    return generations


def was_updated(directory: Path) -> bool:
    """Return whether the store in `directory` has been updated since its build.

    A store with folders of generations and a damaged manifest may have been, so it counts as such.

    >>> was_updated(Path("no_store"))
    False
    """
    manifest = directory / MANIFEST
    try:
        return GENERATIONS in read_sealed(manifest)
    except StoreError:
        folders = (path.name for path in directory.glob("generation-*"))
        return manifest.exists() and any(map(is_generation_folder, folders))


def remove_generation(folder: Path, *, keep: Collection[str] = ()) -> None:
    """Remove the files of a generation, and its folder unless that holds anything else.

    Files named in `keep` stay.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> with TemporaryDirectory() as folder:
    ...     path = example_store(f"{folder}/{generation_folder(1)}").path
    ...     remove_generation(path)
    ...     path.exists()
    False
    """
    if not folder.is_dir():
        return
    names = [path.name for path in folder.iterdir() if path.name not in keep]
    remove(*(folder / name for name in names if re.fullmatch(STORE_FILES, name)))
    remove_left_over(folder, lambda name: re.fullmatch(STORE_FILES, name) is not None)
    with suppress(OSError):  # the folder is not empty
        remove_folder(folder)


@dataclass(frozen=True, slots=True)
class ShardPlace:
    """Location of a shard of any generation.

    >>> info = ShardInfo(build="f00d", clusters=None, first=0, rows=2, entries=3, num_clusters=0)
    >>> ShardPlace(Path("store") / shard_name(0), info, num_nodes=7).path.name
    'shard-00000.ppr'
    """

    path: Path
    info: ShardInfo
    num_nodes: int
    """Number of nodes of the graph of its generation; ids are below it."""


class RowPlaces:
    """Finds the rows of a store, each in the newest generation that has it.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> with TemporaryDirectory() as folder:
    ...     store = example_store(folder)
    ...     places = RowPlaces(open_generations(store.path, store.manifest))
    ...     places.of(np.array([2, 0]))
    (array([0, 0]), array([2, 0]))

    Args:
        generations: The generations, oldest first.
    """

    def __init__(self, generations: list[Generation]) -> None:
        self._generations = generations
        counts = [len(generation.infos) for generation in generations]
        self._first_shard_G = np.cumsum([0, *counts])
        self.shards = [
            ShardPlace(each.path / shard_name(index), info, each.build.num_nodes)
            for each in generations
            for index, info in enumerate(each.infos)
        ]
        """All shards, those of older generations first."""

    @cached_property
    def roots(self) -> NDArray[np.int64]:
        """Node ids of all rows, sorted."""
        if len(self._generations) == 1:
            return self._generations[0].roots().astype(np.int64)
        return np.union1d(self._generations[0].roots(), self._later[0]).astype(np.int64)

    def of(self, nodes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the shard of each node's row, and its position there, (B,); all must have rows."""
        if len(self._generations) == 1:
            return self._in_generation(0, self._position_in_first(nodes))
        later_R, shard_R, local_R = self._later
        shard_B, local_B = np.zeros((2, len(nodes)), np.int64)
        place_B = np.searchsorted(later_R, nodes)
        is_later_B = np.append(later_R, -1)[place_B] == nodes
        shard_B[is_later_B] = shard_R[place_B[is_later_B]]
        local_B[is_later_B] = local_R[place_B[is_later_B]]
        first_B = self._position_in_first(nodes[~is_later_B])
        shard_B[~is_later_B], local_B[~is_later_B] = self._in_generation(0, first_B)
        return shard_B, local_B

    def _position_in_first(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        if self._generations[0].build.roots is None:
            return nodes
        return np.searchsorted(self._first_roots, nodes)

    @cached_property
    def _first_roots(self) -> NDArray[np.int64]:
        return self._generations[0].roots()

    def _in_generation(
        self, number: int, position_B: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        rows_per_shard = self._generations[number].build.rows_per_shard
        shard_B = position_B // rows_per_shard
        return shard_B + self._first_shard_G[number], position_B - shard_B * rows_per_shard

    @cached_property
    def _later(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Roots, shards and places in shards of the rows of later generations, (R,) each."""
        roots, shards, locals_ = [], [], []
        for number in range(len(self._generations) - 1, 0, -1):
            nodes = self._generations[number].roots().astype(np.int64)
            shard, local = self._in_generation(number, np.arange(len(nodes)))
            roots.append(nodes)
            shards.append(shard)
            locals_.append(local)
        unique, newest = np.unique(np.concatenate(roots), return_index=True)  # the first: newest
        return unique, np.concatenate(shards)[newest], np.concatenate(locals_)[newest]
