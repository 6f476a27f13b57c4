"""The files `build.json` and `manifest.json`, which describe a store."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from gpn_scale.errors import StoreError
from gpn_scale.ppr.manifest_schema import (
    GENERATIONS,
    check_build,
    check_entries,
    check_generations,
    check_lists,
)
from gpn_scale.ppr.sealed import (
    FORMAT,
    FORMAT_VERSION,
    RESUME,
    RESUME_ARGUMENTS,
    checksum,
    read_sealed,
    sealed,
)
from gpn_scale.ppr.shard import ShardInfo, read_shard_info, shard_entry, shard_name
from gpn_scale.ppr.stored_graph import graph_files
from gpn_scale.reading import JSON_BYTES, read_bytes, read_json

BUILD, MANIFEST, ROOTS = "build.json", "manifest.json", "roots.npy"
CLUSTERS, CUT, MOVED = "clusters.npy", "cut.npy", "moved.npy"
SECONDS, LOCK = "build_seconds.json", "update.lock"
PARTS, TOTAL_MASS = "parts.json", "total_mass.npy"
PART_FILES = r"parts\.json|total_mass\.npy|part-\d{5,}-of-\d{5,}\.json"
"""Regular expression for the files of parts, which `StoreWriter.finish` removes."""
STORE_FILES = (
    r"(manifest\.json|build\.json|build_seconds\.json|roots\.npy|clusters\.npy|cut\.npy|moved\.npy"
    rf"|graph_(indptr|indices|weight)\.npy|shard-\d{{5,}}\.ppr|{PART_FILES})"
)
"""Regular expression for all files of a store."""
LEFT_OVER = rf"\.{STORE_FILES}\.\d+\.tmp"
"""Regular expression for temporary files of a store, see `gpn_scale.files.replacing`."""


@dataclass(frozen=True, kw_only=True)  # slots would not allow the cached hash
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
    """Parameters, besides the graph, that determine the rows."""
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
    graph: Mapping[str, Any] | None = None
    """Facts about the stored graph besides its arrays; None if the store does not contain it."""

    @classmethod
    def of(cls, stored: Mapping[str, Any], source: Path | str = BUILD) -> "Build":
        """Return the build that a `build.json` or `manifest.json` describes.

        Args:
            stored: Content of the file.
            source: Its name in messages.

        Raises:
            StoreError: an entry is missing, of another type, or out of range.
        """
        check_build(source, stored)
        return cls(**{field.name: stored[field.name] for field in fields(cls)})

    @property
    def node_files(self) -> set[str]:
        """Names of the files of the store that hold one number per node or root."""
        of_clusters = {CLUSTERS, CUT} if self.num_clusters else set()
        of_roots = set() if self.roots is None else {ROOTS}
        return of_clusters | of_roots | set(graph_files(self.graph))

    @property
    def text(self) -> str:
        """The text of `build.json`."""
        return sealed(asdict(self))

    @cached_property
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


def read_build(path: Path) -> Build:
    """Return the build that the file `path` describes, a `build.json` or `manifest.json`.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> with TemporaryDirectory() as folder:
    ...     read_build(example_store(folder).path / BUILD).num_nodes
    3

    Raises:
        StoreError: the file is missing, damaged, or not written by a build.
    """
    return Build.of(read_sealed(path), path)


def read_manifest(directory: Path) -> dict[str, Any]:
    """Return the manifest of the store in `directory`.

    >>> read_manifest(Path("no_store"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    gpn_scale.errors.StoreError: no_store is not a PPR store (no manifest.json): ...

    Raises:
        StoreError: the manifest is missing, damaged, or not written by a build.
    """
    if (directory / MANIFEST).exists():
        path = directory / MANIFEST
        manifest = read_sealed(path)
        check_entries(path, manifest)
        listed = [manifest]
        if GENERATIONS in manifest:
            Build.of(manifest, path)
            listed = check_generations(path, manifest)
        for each in listed:
            build = Build.of(each, path)
            check_lists(path, each, build.node_files, build.num_shards, optional={MOVED})
        return manifest
    if is_store(directory):
        if any(re.fullmatch(PART_FILES, path.name) for path in directory.iterdir()):
            raise StoreError(
                f"{directory} holds parts of an unfinished PPR store (no {MANIFEST}): complete it "
                "with precompute.parts.finish_store",
                arguments=("finish_store",),
            )
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
    """Return the recorded build time of the store in `directory` in seconds; 0 without a record.

    >>> read_build_seconds(Path("no_store"))
    0.0
    """
    try:
        return float(read_json(directory / SECONDS)["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0


def is_store(directory: Path) -> bool:
    """Return whether `directory` holds (part of) a store, even damaged or of another version.

    >>> is_store(Path("no_store"))
    False
    """
    signature = f'"format": "{FORMAT}"'.encode()
    paths = [directory / BUILD, directory / MANIFEST]
    return any(path.is_file() and signature in read_bytes(path, JSON_BYTES) for path in paths)


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


def check_size(path: Path, num_bytes: int) -> None:
    """Check that a file has the expected size.

    >>> check_size(Path("no_file"), 3)
    Traceback (most recent call last):
        ...
    gpn_scale.errors.StoreError: no_file is missing

    Raises:
        StoreError: the file is missing or has a different size.
    """
    if not path.is_file():
        raise StoreError(f"{path} is missing")
    if (actual := path.stat().st_size) != num_bytes:
        raise StoreError(f"{path} is truncated or corrupt: {actual} bytes, expected {num_bytes}")
