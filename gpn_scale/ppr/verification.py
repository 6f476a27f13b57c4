"""Verification of a store: hashes of all files, compared with the recorded ones."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gpn_scale.errors import StoreError
from gpn_scale.ppr.generations import listed_generations
from gpn_scale.ppr.manifest import (
    BUILD,
    MANIFEST,
    ROOTS,
    Build,
    manifest_shard_info,
    read_build,
    read_manifest,
)
from gpn_scale.ppr.open_shard import OpenShard
from gpn_scale.ppr.sealed import file_checksum
from gpn_scale.ppr.shard import read_shard_info, shard_name
from gpn_scale.reading import JSON_BYTES

_ROOT_BYTES, _NPY_HEADER_BYTES = 4, 1024
"""Bytes of a root in `roots.npy`, and more than its header has."""
_MOST_PROBLEMS = 1000
"""Number of damaged files after which the check stops, since the others may not exist at all."""


def verify_store(path: Path | str) -> list[str]:
    """Check the hashes of all files of the store in `path`; return a sentence per damaged file.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> with TemporaryDirectory() as folder:
    ...     verify_store(example_store(folder).path)
    []
    """
    directory = Path(path)
    problems = _complaints(read_manifest, directory)
    record = directory / MANIFEST
    if problems and record.exists():
        # Check the other files as well: build.json also defines the shards.
        record = directory / BUILD
        problems += _complaints(read_build, record)
    if problems and (len(problems) > 1 or record.name == MANIFEST):
        return problems
    if record.name == MANIFEST:
        for folder, listed in listed_generations(read_manifest(directory)):
            problems += _problems_of(directory / folder, Build.of(listed), listed)
        return problems
    return problems + _problems_of(directory, read_build(record), None)


def _problems_of(directory: Path, build: Build, manifest: Mapping[str, Any] | None) -> list[str]:
    """Return the problems of one generation; `manifest` is None if only `build.json` is intact."""
    problems: list[str] = []
    files = {} if manifest is None else manifest["files"]
    expected = {BUILD: build.fingerprint, ROOTS: build.roots}
    expected |= {name: facts["checksum"] for name, facts in files.items()}
    most = {BUILD: JSON_BYTES, ROOTS: _ROOT_BYTES * build.num_roots + _NPY_HEADER_BYTES}
    for name, wanted in expected.items():
        if wanted is not None:
            path, size = directory / name, files[name]["bytes"] if name in files else None
            problems += _complaints(_check_file, path, wanted, size, most.get(name, 0))
    for index in range(build.num_shards):
        problems += _complaints(_check_shard, directory, manifest, build, index)
        if len(problems) >= _MOST_PROBLEMS and index + 1 < build.num_shards:
            return [*problems, f"the shards after {shard_name(index)} were not checked"]
    return problems


def _check_shard(
    directory: Path, manifest: Mapping[str, Any] | None, build: Build, index: int
) -> None:
    path = directory / shard_name(index)
    if manifest is None:
        info = read_shard_info(path)
    else:
        info = manifest_shard_info(directory, manifest, build, index)
    OpenShard(path, info, build.num_nodes).check_all()


def _check_file(path: Path, wanted: str, size: int | None, most: int) -> None:
    """Check a file's checksum, and before its size, since a file may have grown without end.

    Args:
        path: The file.
        wanted: Its checksum.
        size: Its size in bytes; None if it is not recorded.
        most: The largest size of a file whose size is not recorded.
    """
    try:
        actual_size = path.stat().st_size
    except OSError as error:
        raise StoreError(f"{path} is missing or cannot be read ({error})") from error
    if actual_size > most if size is None else actual_size != size:
        expected = f"at most {most:,}" if size is None else f"{size:,}"
        raise StoreError(
            f"{path} is corrupt or truncated: it has {actual_size:,} bytes, expected {expected}"
        )
    if (actual := file_checksum(path)) != wanted:
        raise StoreError(f"{path} is corrupt or truncated: checksum {actual}, expected {wanted}")


def _complaints(check: Callable[..., object], *arguments: object) -> list[str]:
    try:
        check(*arguments)
    except StoreError as error:
        return [str(error)]
    return []
