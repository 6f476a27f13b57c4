"""What a store says about itself: the files `build.json` and `manifest.json`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from gpn_scale.errors import FileError, StoreError
from gpn_scale.field_types import shown
from gpn_scale.json_shapes import check_shape
from gpn_scale.ppr.sealed import (
    FORMAT,
    FORMAT_VERSION,
    REBUILD,
    REBUILD_ARGUMENTS,
    RESUME,
    RESUME_ARGUMENTS,
    checksum,
    read_sealed,
    sealed,
)
from gpn_scale.ppr.shard import ShardInfo, read_shard_info, shard_entry, shard_name
from gpn_scale.reading import JSON_BYTES, read_bytes, read_json

BUILD, MANIFEST, ROOTS = "build.json", "manifest.json", "roots.npy"
CLUSTERS, CUT = "clusters.npy", "cut.npy"
SECONDS = "build_seconds.json"
_MOST_NODES, _MOST_SHARDS = 1 << 31, 1 << 20
_SHAPE = {
    "format": str,
    "format_version": int,
    "graph_fingerprint": str,
    "parameters": dict,
    "num_nodes": int,
    "num_roots": int,
    "roots": (str, None),
    "rows_per_shard": int,
    "k": int,
    "num_clusters": int,
    "files?": {str: {"bytes": int, "checksum": str}},
    "shards?": [dict],
    "entries?": int,
}
"""What a reader uses of both files; `build.json` has no files and shards."""


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
        """Return the build that a `build.json` or `manifest.json` describes.

        Raises:
            StoreError: an entry is missing or has another type, though the checksum is right.
        """
        try:
            check_shape(dict(stored), _SHAPE, "the description of the store")
            build = cls(**{field.name: stored[field.name] for field in fields(cls)})
            build._check_numbers()
            if len(stored.get("shards", range(build.num_shards))) != build.num_shards:
                raise FileError(f"the store lists other shards than the {build.num_shards} it has")
        except FileError as error:
            raise StoreError(
                f"{error}, so it is damaged; {REBUILD}", arguments=REBUILD_ARGUMENTS
            ) from error
        return build

    def _check_numbers(self) -> None:
        """Refuse sizes that no build has.

        Raises:
            FileError: a number is out of range.
        """
        ranges = {
            "num_nodes": (0, _MOST_NODES),
            "num_roots": (0, self.num_nodes),
            "rows_per_shard": (1, _MOST_NODES),
            "k": (1, _MOST_NODES),
            "num_clusters": (0, _MOST_NODES),
        }
        for name, (least, most) in ranges.items():
            if not least <= getattr(self, name) <= most:
                raise FileError(
                    f"{name} of the store is {shown(getattr(self, name))}, expected {least:,} to "
                    f"{most:,}"
                )
        if self.num_shards > _MOST_SHARDS:
            raise FileError(
                f"the store has {self.num_shards:,} shards, expected at most {_MOST_SHARDS:,}"
            )

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
        manifest = read_sealed(directory / MANIFEST)
        _check_complete(Build.of(manifest), manifest)
        return manifest
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


def _check_complete(build: Build, manifest: Mapping[str, Any]) -> None:
    """Refuse a manifest that does not list all files of its build."""
    needed = {CLUSTERS, CUT} if build.num_clusters else set()
    needed |= set() if build.roots is None else {ROOTS}
    try:
        check_shape(manifest, {"files": dict, "shards": list, "entries": int}, MANIFEST)
        if missing := needed - manifest["files"].keys():
            raise FileError(f"{MANIFEST} does not list {min(missing)}")
    except FileError as error:
        raise StoreError(
            f"{error}, so the store is damaged; {REBUILD}", arguments=REBUILD_ARGUMENTS
        ) from error


def read_build_seconds(directory: Path) -> float:
    """Return the recorded build time of the store in `directory`; 0 if there is none.

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
    """Check that a file has a size.

    >>> check_size(Path("no_file"), 3)
    Traceback (most recent call last):
        ...
    gpn_scale.errors.StoreError: no_file is missing

    Raises:
        StoreError: it is missing or has another size.
    """
    if not path.is_file():
        raise StoreError(f"{path} is missing")
    if (actual := path.stat().st_size) != num_bytes:
        raise StoreError(f"{path} is truncated or corrupt: {actual} bytes, expected {num_bytes}")
