"""Verification of a store: hashes of all files, compared with the recorded ones."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gpn_scale.errors import StoreError
from gpn_scale.ppr.manifest import (
    BUILD,
    MANIFEST,
    ROOTS,
    Build,
    manifest_shard_info,
    read_manifest,
)
from gpn_scale.ppr.open_shard import OpenShard
from gpn_scale.ppr.sealed import file_checksum, read_sealed
from gpn_scale.ppr.shard import read_shard_info, shard_name


def verify_store(path: Path | str) -> list[str]:
    """Hash all files of the store in `path` again; return one sentence for each damaged file.

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
        # Check the other files as well: build.json also says which shards there are.
        record = directory / BUILD
        problems += _complaints(read_sealed, record)
    if problems and (len(problems) > 1 or record.name == MANIFEST):
        return problems
    stored = read_sealed(record)
    if damage := _complaints(Build.of, stored):
        return [*problems, *damage]
    build = Build.of(stored)
    files = {name: facts["checksum"] for name, facts in stored.get("files", {}).items()}
    expected = {BUILD: build.fingerprint, ROOTS: build.roots} | files
    for name, wanted in expected.items():
        if wanted is not None:
            problems += _complaints(_check_file, directory / name, wanted)
    for index in range(build.num_shards):
        problems += _complaints(_check_shard, directory, stored, build, index)
    return problems


def _check_shard(directory: Path, stored: Mapping[str, Any], build: Build, index: int) -> None:
    path = directory / shard_name(index)
    listed = "shards" in stored
    info = manifest_shard_info(directory, stored, build, index) if listed else read_shard_info(path)
    OpenShard(path, info, build.num_nodes).check_all()


def _check_file(path: Path, wanted: str) -> None:
    if (actual := file_checksum(path)) != wanted:
        raise StoreError(f"{path} is corrupt or truncated: checksum {actual}, expected {wanted}")


def _complaints(check: Callable[..., object], *arguments: object) -> list[str]:
    try:
        check(*arguments)
    except StoreError as error:
        return [str(error)]
    return []
