"""Parts of a build: ranges of shards that independent processes compute, and their joining.

Pushes are independent of each other, so a part needs nothing from the other parts. docs/parts.md
explains how to run them.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpn_scale.config import PPRConfig
from gpn_scale.errors import ConfigError, StoreError
from gpn_scale.files import remove
from gpn_scale.ppr.claiming import Existing, check_not_updated
from gpn_scale.ppr.manifest import BUILD, CLUSTERS, MANIFEST, read_manifest
from gpn_scale.ppr.node_file import most_file_bytes
from gpn_scale.ppr.open_shard import OpenShard
from gpn_scale.ppr.part_files import PartFiles, remove_part_files
from gpn_scale.ppr.sealed import RESUME, RESUME_ARGUMENTS, file_checksum
from gpn_scale.ppr.shard import read_shard_info, shard_name
from gpn_scale.ppr.stored_graph import graph_files, read_stored_graph
from gpn_scale.ppr.verification import verify_store
from gpn_scale.ppr.writer import StoreWriter

MOST_PARTS = 1_000_000
"""Largest number of parts."""
_MOST_NAMES = 10  # parts and ranges of shards that a message names


@dataclass(frozen=True, slots=True)
class Part:
    """Part `index` of `count`, counted from 1.

    >>> part = Part(2, 3)
    >>> str(part), list(part.shards(num_shards=7)), part.rows(num_roots=65, rows_per_shard=10)
    ('2/3', [2, 3], (20, 40))
    """

    index: int
    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MOST_PARTS:
            raise ConfigError(
                f"part is {self}, expected at least 1 and at most {MOST_PARTS} parts",
                arguments=("part",),
            )
        if not 1 <= self.index <= self.count:
            raise ConfigError(
                f"part is {self}, expected a number from 1/{self.count} to "
                f"{self.count}/{self.count}: parts are numbered from 1",
                arguments=("part",),
            )

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def shards(self, num_shards: int) -> range:
        """Return the shards of this part; parts differ by at most one shard, and may be empty."""
        first, last = (num_shards * index // self.count for index in (self.index - 1, self.index))
        return range(first, last)

    def rows(self, num_roots: int, rows_per_shard: int) -> tuple[int, int]:
        """Return the first root position of this part, and the one after its last."""
        shards = self.shards(-(-num_roots // rows_per_shard))
        first, last = (
            min(index * rows_per_shard, num_roots) for index in (shards.start, shards.stop)
        )
        return first, last


def checked_part(
    part: tuple[int, int] | None, config: PPRConfig, existing: Existing, ranks: int
) -> tuple[Part | None, PPRConfig, Existing]:
    """Return the part, and settings that suit a part: it pushes and shares its directory.

    >>> part, config, existing = checked_part((3, 16), PPRConfig(), "refuse", ranks=1)
    >>> part, config.method, existing
    (Part(index=3, count=16), 'push', 'share')

    Raises:
        ConfigError: the part does not exist, or the settings do not allow parts.
    """
    if part is None:
        return None, config, existing
    own = Part(*part)
    if config.method == "sweep":
        raise ConfigError(
            f"part is {own}, but method is 'sweep', which computes rows from each other: parts "
            "need the method 'push' or 'auto'",
            arguments=("part", "method"),
        )
    if existing == "overwrite":
        raise ConfigError(
            f"part is {own}, but existing is 'overwrite', which would remove the other parts: "
            "remove the directory before the first part starts",
            arguments=("part", "existing"),
        )
    if ranks > 1:
        raise ConfigError(
            f"part is {own}, but {ranks} MPI ranks were started, expected one process per part: "
            "start parts without MPI, or ranks without parts",
            arguments=("part",),
        )
    return own, replace(config, method="push"), "share"


@dataclass(frozen=True, slots=True)
class PartProgress:
    """Progress of one part: the shards that are left, and the time spent so far.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> with TemporaryDirectory() as folder:
    ...     progress = PartProgress(StoreWriter.join(example_store(folder).path), Part(1, 2))
    ...     progress.todo, progress.is_over
    ([], True)
    """

    writer: StoreWriter
    part: Part

    @property
    def todo(self) -> list[int]:
        """Shards of the part that are missing or damaged; reads all others."""
        shards = self.part.shards(self.writer.num_shards)
        return [index for index in shards if not self.writer.is_done(index)]

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to write: neither shards nor the arrays that finishing needs."""
        if self.writer.num_shards and not self.part.shards(self.writer.num_shards):
            return True
        return self.writer.is_complete and not self.todo

    @property
    def build_seconds(self) -> float:
        """Time that the part has taken so far, in this process and earlier ones."""
        files = PartFiles.of(self.writer.path)
        return files.seconds(self.part.index, self.part.count)

    def record_seconds(self, seconds: float) -> None:
        """Record the time of the part so far."""
        files = PartFiles.of(self.writer.path)
        files.record_seconds(self.part.index, self.part.count, seconds)

    def share_arrays(
        self,
        clusters: Callable[[], NDArray[np.int32]],
        total_mass: Callable[[], NDArray[np.float64]],
    ) -> None:
        """Write the node arrays that finishing needs, unless another part has written them.

        They are computed only if they are missing or damaged. A finished store that lacks some of
        this part's shards is marked as unfinished.

        Args:
            clusters: Computes the cluster of every node, (N,).
            total_mass: Computes the mass that all full rows together put on every node, (N,).
        """
        files = PartFiles.of(self.writer.path)
        if files.build.num_clusters and not files.are_intact:
            cluster_N, mass_N = clusters(), total_mass()
            if self.is_over:  # another process has computed this part, and the store was finished
                return
            if not files.are_intact:
                self.writer.write_clusters(cluster_N)
                files.write_total_mass(mass_N)
        if self.todo:
            remove(self.writer.path / MANIFEST)


def finish_store(path: Path | str) -> None:
    """Check that all parts of the store in `path` have been computed, and complete the store.

    This needs neither the graph nor the settings. A store that is already complete is not changed.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale import PPRStore, build_graph
    >>> from precompute.build import build_store
    >>> graph, config = build_graph([0, 1], [1, 2]), PPRConfig(k=2, clusters=0)
    >>> with TemporaryDirectory() as folder:
    ...     for index in (2, 1):
    ...         plan = build_store(graph, config, folder, part=(index, 2))
    ...     finish_store(folder)
    ...     PPRStore.open(folder).row(0)[0].tolist()
    [0, 1]

    Raises:
        StoreError: there are no parts in `path`, or some are missing, damaged, or belong to another
            graph or other settings; the message names the parts to compute again.
    """
    directory = Path(path)
    if not (directory / BUILD).exists():
        raise StoreError(
            f"{directory} holds no parts of a store (no {BUILD}): compute them with "
            "precompute.build.build_store",
            arguments=("build_store",),
        )
    files, writer = PartFiles.of(directory), StoreWriter.join(directory)
    seconds = writer.build_seconds + files.all_seconds
    if writer.is_complete:
        _check_complete(files)
        remove_part_files(directory)
    else:
        try:
            total_mass = _total_mass(files)
            _check_graph(files)
            _check_shards(files, _clusters_checksum(files))
        except StoreError:
            if not writer.is_complete:  # another process may have finished the store meanwhile
                raise
        else:
            writer.finish(total_mass)
    if seconds > writer.build_seconds:
        writer.record_seconds(seconds)


def _check_complete(files: PartFiles) -> None:
    """Check a store that has a manifest."""
    problems = verify_store(files.directory)
    if not problems:
        return
    check_not_updated(files.directory, f"it cannot be finished again ({problems[0]})")
    manifest = read_manifest(files.directory)
    _check_shards(files, manifest["files"].get(CLUSTERS, {}).get("checksum"))
    raise StoreError(f"{problems[0]}; to repair it, {RESUME}", arguments=RESUME_ARGUMENTS)


def _total_mass(files: PartFiles) -> NDArray[np.float64] | None:
    try:
        return files.read_total_mass()
    except StoreError as error:
        raise _unfinished(files, error) from error


def _check_graph(files: PartFiles) -> None:
    """Check the graph that parts have stored, since the manifest will vouch for its files."""
    directory, build, names = files.directory, files.build, graph_files(files.build.graph)
    edges = 0 if build.graph is None else int(build.graph["edges"])
    most = most_file_bytes(max(build.num_nodes + 1, edges))
    try:
        sums = {name: file_checksum(directory / name, most_bytes=most) for name in names}
        listed = {name: {"checksum": value} for name, value in sums.items()}
        facts = {"graph": build.graph, "files": listed}
        if listed:
            read_stored_graph(directory, facts, build.graph_fingerprint, build.num_nodes)
    except StoreError as error:
        reason = f"{' and '.join(names)} do not hold the graph of its rows"
        raise _unfinished(files, reason) from error


def _unfinished(files: PartFiles, reason: object) -> StoreError:
    some = Part(1, _usual_count(files))
    return StoreError(
        f"{files.directory} cannot be finished ({reason}): compute any part again, such as part "
        f"{some}, to write the missing files",
        arguments=(f"part={some}",),
    )


def _clusters_checksum(files: PartFiles) -> str | None:
    return file_checksum(files.directory / CLUSTERS) if files.build.num_clusters else None


def _check_shards(files: PartFiles, clusters: str | None) -> None:
    """Check all shards; the error names the bad ones and the parts that would replace them."""
    num_shards = files.build.num_shards
    problems = {index: _problem(files, index, clusters) for index in range(num_shards)}
    bad = {index: problem for index, problem in problems.items() if problem}
    if not bad:
        return
    names = [f"{_shard_names(run)} {problem}" for problem, run in _runs(bad)]
    count = _usual_count(files)
    parts = [Part(index, count) for index in range(1, count + 1)]
    again = [part for part in parts if bad.keys() & set(part.shards(num_shards))]
    raise StoreError(
        f"{files.directory} cannot be finished, because {len(bad)} of {num_shards} shards are not "
        f"usable ({_some(names)}): compute part {_numbers(again)} of {count}, then finish",
        arguments=tuple(f"part={part}" for part in again[:_MOST_NAMES]),
    )


def _problem(files: PartFiles, index: int, clusters: str | None) -> str:
    """Return what is wrong with a shard, as the end of a sentence, or an empty text."""
    path = files.directory / shard_name(index)
    if not path.exists():
        return "missing"
    try:
        info = read_shard_info(path)
        if info.build != files.build.fingerprint:
            return "of another graph or other settings"
        if info.clusters != clusters:
            return f"computed with clusters other than those in {CLUSTERS}"
        files.build.shard_info(files.directory, index, clusters)
        OpenShard(path, info, files.build.num_nodes).check_all()
    except StoreError:
        return "damaged"
    return ""


def _usual_count(files: PartFiles) -> int:
    """Return the number of parts that most parts have recorded, or else one part per shard."""
    counts = Counter(files.counts)
    if not counts:
        return max(files.build.num_shards, 1)
    return max(counts, key=lambda count: (counts[count], count))


def _runs(values: Mapping[int, str]) -> list[tuple[str, list[int]]]:
    """Return runs of consecutive numbers with the same value."""
    keyed = groupby(enumerate(values.items()), key=lambda each: (each[1][1], each[1][0] - each[0]))
    return [(value, [number for _, (number, _) in run]) for (value, _), run in keyed]


def _shard_names(indices: list[int]) -> str:
    if len(indices) == 1:
        return f"{shard_name(indices[0])} is"
    return f"{shard_name(indices[0])} to {shard_name(indices[-1])} are"


def _numbers(parts: list[Part]) -> str:
    """Return the numbers of parts in the syntax of job arrays, such as 3,5-9."""
    ends = [(run[0], run[-1]) for _, run in _runs({part.index: "" for part in parts})]
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ends)


def _some(texts: list[str]) -> str:
    return "; ".join([*texts[:_MOST_NAMES], "..."] if len(texts) > _MOST_NAMES else texts)
