"""Files in the directory of a build that its parts keep until the store is finished.

With clusters, every part writes `total_mass.npy`, which finishing needs and only a process with the
graph can compute, and `parts.json` with the checksums of this array and of `clusters.npy`. Their
bytes are the same in every process. `part-00003-of-00016.json` holds the time that a part has
taken. `StoreWriter.finish` removes all of them.
"""

import math
import re
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpn_scale.errors import StoreError
from gpn_scale.files import remove, remove_left_over, write_json
from gpn_scale.ppr.manifest import (
    BUILD,
    CLUSTERS,
    PART_FILES,
    PARTS,
    ROOTS,
    STORE_FILES,
    TOTAL_MASS,
    Build,
)
from gpn_scale.ppr.node_file import most_file_bytes, npy_bytes, read_node_file
from gpn_scale.ppr.sealed import (
    FORMAT,
    FORMAT_VERSION,
    checksum,
    differences,
    file_checksum,
    read_sealed,
    sealed,
    write_if_other,
)
from gpn_scale.reading import read_json

_RECORD = re.compile(r"part-(\d{5,})-of-(\d{5,})\.json")


@dataclass(frozen=True, slots=True)
class PartFiles:
    """The files of parts in the directory of a build.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> with TemporaryDirectory() as folder:
    ...     files = PartFiles.of(example_store(folder).path)
    ...     files.write_total_mass(np.array([0.5, 0.0, 1.0]))
    ...     files.record_seconds(3, 16, 1.5)
    ...     files.are_intact, files.read_total_mass(), files.all_seconds, files.counts
    (True, array([0.5, 0. , 1. ]), 1.5, [16])
    """

    directory: Path
    build: Build

    @classmethod
    def of(cls, path: Path | str) -> "PartFiles":
        """Return the files of the build that a process began in `path`.

        Raises:
            StoreError: `build.json` is missing or damaged.
        """
        return cls(Path(path), Build.of(read_sealed(Path(path) / BUILD)))

    @property
    def are_intact(self) -> bool:
        """Whether the arrays that all parts share exist and are intact."""
        try:
            self.read_total_mass()
        except StoreError:
            return False
        return True

    def write_total_mass(self, total_mass: NDArray[np.float64]) -> None:
        """Write `total_mass.npy` and `parts.json`, after `clusters.npy`.

        Args:
            total_mass: Mass that the full rows of all roots together put on every node, (N,).

        Raises:
            StoreError: the disk is full or not writable.
        """
        data = npy_bytes(total_mass.astype("<f8"))
        facts = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "build": self.build.fingerprint,
            "clusters": file_checksum(self.directory / CLUSTERS),
            "total_mass": checksum(data),
        }
        write_if_other(self.directory / TOTAL_MASS, data)
        write_if_other(self.directory / PARTS, sealed(facts).encode())

    def read_total_mass(self) -> NDArray[np.float64] | None:
        """Return the array of `write_total_mass`, after checking all arrays that parts share.

        Without clusters this is None.

        Raises:
            StoreError: a file is missing, damaged, or of another build.
        """
        if self.build.roots is not None:
            self._check(ROOTS, self.build.roots)
        if not self.build.num_clusters:
            return None
        facts = read_sealed(self.directory / PARTS)
        if facts.get("build") != self.build.fingerprint:
            raise StoreError(f"{self.directory / PARTS} belongs to another build")
        self._check(CLUSTERS, facts.get("clusters"))
        path, size = self.directory / TOTAL_MASS, self.build.num_nodes
        return read_node_file(path, str(facts.get("total_mass")), "<f8", size, below=np.inf)

    def _check(self, name: str, wanted: str | None) -> None:
        most = most_file_bytes(self.build.num_nodes)
        if (actual := file_checksum(self.directory / name, most_bytes=most)) != wanted:
            raise StoreError(
                f"{self.directory / name} is damaged: its checksum is {actual}, expected {wanted}"
            )

    @property
    def counts(self) -> list[int]:
        """Total number of parts that each part recorded here was started with."""
        matches = [_RECORD.fullmatch(path.name) for path in sorted(self.directory.iterdir())]
        return [int(match[2]) for match in matches if match]

    @property
    def all_seconds(self) -> float:
        """Time that all parts together have taken."""
        paths = sorted(self.directory.iterdir())
        return sum(_seconds(path) for path in paths if _RECORD.fullmatch(path.name))

    def seconds(self, index: int, count: int) -> float:
        """Return the time that part `index` of `count` has taken so far."""
        return _seconds(self.directory / _record_name(index, count))

    def record_seconds(self, index: int, count: int, seconds: float) -> None:
        """Record the time of part `index` of `count`, including earlier processes."""
        write_json(self.directory / _record_name(index, count), {"seconds": seconds})


def check_same_build(directory: Path, build: Build) -> None:
    """Check that `directory` holds `build`, no matter which process began it.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> with TemporaryDirectory() as folder:
    ...     check_same_build(Path(folder), Build.of(example_store(folder).manifest))

    Raises:
        StoreError: it holds another build, or `build.json` is missing or damaged.
    """
    advice = "choose another directory, or remove this one"
    try:
        stored = PartFiles.of(directory).build
    except StoreError as error:
        raise StoreError(
            f"{directory} cannot take parts of a store ({error}): {advice}", arguments=("out",)
        ) from error
    if different := differences(asdict(stored), asdict(build), exact=True):
        raise StoreError(
            f"{directory} belongs to another build: {different}; {advice}", arguments=("out",)
        )


def remove_part_files(directory: Path) -> None:
    """Remove the files of parts in `directory`, and temporary files of processes that ended.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> with TemporaryDirectory() as folder:
    ...     files = PartFiles.of(example_store(folder).path)
    ...     files.record_seconds(3, 16, 1.5)
    ...     remove_part_files(Path(folder))
    ...     files.counts
    []
    """
    remove(*(path for path in directory.iterdir() if re.fullmatch(PART_FILES, path.name)))
    remove_left_over(directory, lambda name: re.fullmatch(STORE_FILES, name) is not None)


def _record_name(index: int, count: int) -> str:
    return f"part-{index:05d}-of-{count:05d}.json"


def _seconds(path: Path) -> float:
    try:
        seconds = float(read_json(path)["seconds"])
        return seconds if 0.0 <= seconds < math.inf else 0.0
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0
