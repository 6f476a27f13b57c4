"""Claims a directory for a build: checks its content, and removes files of an earlier store."""

import re
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from gpn_scale.errors import StoreError
from gpn_scale.files import make_folder, remove, remove_left_over
from gpn_scale.ppr.generations import remove_generation, was_updated
from gpn_scale.ppr.manifest import (
    BUILD,
    LEFT_OVER,
    LOCK,
    MANIFEST,
    STORE_FILES,
    Build,
    is_store,
    read_build,
)
from gpn_scale.ppr.manifest_schema import is_generation_folder
from gpn_scale.ppr.part_files import check_same_build
from gpn_scale.ppr.sealed import REBUILD, REBUILD_ARGUMENTS, differences

Existing = Literal["refuse", "resume", "overwrite", "share"]
"""What to do with a store that already exists in the directory."""


def claim_directory(directory: Path, build: Build, existing: Existing) -> None:
    """Prepare `directory` for `build`, or refuse it; `overwrite` removes the earlier store.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> with TemporaryDirectory() as folder:
    ...     build = Build.of(example_store(folder).manifest)
    ...     claim_directory(Path(folder), build, "overwrite")
    ...     [path.name for path in Path(folder).iterdir()]
    ['build.json']

    Raises:
        StoreError: the directory is not empty and not a store, holds a store that `existing` does
            not allow changing, holds a different build from the one to resume, or is not writable.
    """
    try:
        make_folder(directory)
        names = sorted(path.name for path in directory.iterdir())
    except OSError as error:
        raise StoreError(
            f"{directory} cannot hold a store ({error}): choose another directory",
            arguments=("out",),
        ) from error
    kept = [name for name in names if not re.fullmatch(LEFT_OVER, name) and name != LOCK]
    if kept and not is_store(directory):
        raise StoreError(
            f"{directory} is not empty and not a PPR store (it contains {kept[0]}): choose another "
            "directory",
            arguments=("out",),
        )
    if kept and existing == "refuse":
        state = "complete" if MANIFEST in kept else "unfinished"
        raise StoreError(
            f"{directory} already holds a store ({state}): pass existing='resume' to continue it, "
            "existing='overwrite' to replace it, or choose another directory",
            arguments=("existing", "out"),
        )
    if kept and existing == "resume":
        _check_resumable(directory, build)
    if existing == "share":
        if kept:
            check_not_updated(directory, "parts cannot be computed in it")
            check_same_build(directory, build)
        return
    if existing == "overwrite":
        remove(directory / MANIFEST)
        for name in filter(is_generation_folder, names):
            remove_generation(directory / name)
        # build.json stays until the new one replaces it, so the directory is always a store.
        own = (name for name in names if name != BUILD and re.fullmatch(STORE_FILES, name))
        remove(*(directory / name for name in own))
    remove_left_over(directory, lambda name: re.fullmatch(STORE_FILES, name) is not None)


def check_not_updated(directory: Path, consequence: str) -> None:
    """Refuse to change the first build of a store that has been updated since.

    >>> check_not_updated(Path("no_store"), "its build cannot be resumed")

    Args:
        directory: The store.
        consequence: What cannot be done, for the message.

    Raises:
        StoreError: the store has been updated.
    """
    if was_updated(directory):
        raise StoreError(
            f"{directory} has been updated since it was built, so {consequence}: repair it with "
            "repair_store if it is damaged, or build it again with existing='overwrite'",
            arguments=("repair_store", "existing=overwrite"),
        )


def _check_resumable(directory: Path, build: Build) -> None:
    check_not_updated(directory, "its build cannot be resumed")
    try:
        stored = read_build(directory / BUILD)
    except StoreError as error:  # damaged; the manifest, if there is one, contains the same
        try:
            stored = read_build(directory / MANIFEST)
        except StoreError:
            raise StoreError(
                f"{directory} cannot be resumed ({error}); {REBUILD}", arguments=REBUILD_ARGUMENTS
            ) from error
    if different := differences(asdict(stored), asdict(build), exact=True):
        raise StoreError(
            f"{directory} belongs to another build: {different}; {REBUILD}",
            arguments=REBUILD_ARGUMENTS,
        )
