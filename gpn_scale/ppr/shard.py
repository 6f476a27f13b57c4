"""The files of a store, one by one: shards, JSON with a checksum in it, and how they are written.

A shard holds the rows of consecutive roots: the header's length (8 bytes, little-endian), the
header (JSON, padded with spaces), then the data section, which begins at a multiple of 64 bytes; in
it every array does too, at the offset that the header gives from the section's start. The header
follows from `ShardInfo`, so a reader compares it byte by byte, and no flipped bit escapes both
`read_shard_info` and `check_shard_data`.

Shapes: R rows, E kept entries, P clusters.
"""

import errno
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpn_scale.errors import StoreError
from gpn_scale.files import replacing

FORMAT = "gpn_scale.ppr"
FORMAT_VERSION = 2
REBUILD = "build it again with `python -m precompute ... --overwrite`"
RESUME = "go on with `python -m precompute ... --resume`"

_ALIGNMENT = 64
_MAX_HEADER_BYTES = 1 << 16  # a damaged length must not make a reader load the whole file


class ShardArrays(NamedTuple):
    """The arrays of a shard, in the order in which they are stored."""

    row_ptr: NDArray[np.int64]
    """Offsets of the rows in `ids` and `weights`, (R + 1,)."""
    ids: NDArray[np.int32]
    """Kept nodes, (E,)."""
    weights: NDArray[np.float32]
    """Their weights, (E,)."""
    missing_mass: NDArray[np.float32]
    """What each row lost by the cut, (R,)."""
    cluster_mass: NDArray[np.float16]
    """The cut mass of each row by cluster, (R, P); not stored if P is 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardInfo:
    """All that a shard's header says."""

    build: str
    """Fingerprint of the build that wrote it."""
    clusters: str | None
    """Checksum of the clusters that `cluster_mass` counts by."""
    first: int
    """Position of the first row in the list of roots."""
    rows: int
    entries: int
    num_clusters: int
    checksum: str = ""
    """blake2b-128 of the data section."""

    def layout(self) -> dict[str, tuple[str, tuple[int, ...], int]]:
        """Data type, shape and offset in the data section of each array."""
        shapes: dict[str, tuple[str, tuple[int, ...]]] = {
            "row_ptr": ("<i8", (self.rows + 1,)),
            "ids": ("<i4", (self.entries,)),
            "weights": ("<f4", (self.entries,)),
            "missing_mass": ("<f4", (self.rows,)),
        }
        if self.num_clusters:
            shapes["cluster_mass"] = ("<f2", (self.rows, self.num_clusters))
        places, end = {}, 0
        for name, (dtype, shape) in shapes.items():
            offset = end + -end % _ALIGNMENT
            places[name] = (dtype, shape, offset)
            end = offset + prod(shape) * np.dtype(dtype).itemsize
        return places

    def prefix(self) -> bytes:
        """All bytes of the file before its data section."""
        arrays = {
            name: {"dtype": dtype, "shape": shape, "offset": offset}
            for name, (dtype, shape, offset) in self.layout().items()
        }
        facts = {"build": self.build, "clusters": self.clusters, "first": self.first}
        facts |= {"rows": self.rows, "checksum": self.checksum}
        header = json.dumps({"arrays": arrays, **facts}, sort_keys=True).encode()
        header += b" " * (-(8 + len(header)) % _ALIGNMENT)
        return len(header).to_bytes(8, "little") + header

    @property
    def num_bytes(self) -> int:
        """Size of the file."""
        dtype, shape, offset = list(self.layout().values())[-1]
        return len(self.prefix()) + offset + prod(shape) * np.dtype(dtype).itemsize


def write_shard(path: Path, info: ShardInfo, arrays: ShardArrays) -> None:
    """Writes `arrays` to `path`, atomically; `info` must tell their sizes, not yet the checksum.

    Raises:
        StoreError: the disk is full or not writable; `path` is then as before.
    """
    chunks, end = [], 0
    for name, (dtype, shape, offset) in info.layout().items():
        array = getattr(arrays, name)
        assert (array.dtype, array.shape) == (dtype, shape), (name, array.dtype, array.shape)
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        chunks += [memoryview(bytes(offset - end)), data]
        end = offset + len(data)
    digest = hashlib.blake2b(digest_size=16)
    for chunk in chunks:
        digest.update(chunk)
    info = replace(info, checksum=digest.hexdigest())
    with replacing_file(path, info.num_bytes) as file:
        file.write(info.prefix())
        for chunk in chunks:
            file.write(chunk)


def read_shard_info(path: Path) -> ShardInfo:
    """What the header of `path` says, after a check of it and of the file's size.

    Raises:
        StoreError: the file is missing, its header damaged, or its size not the one stated.
    """
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(8), "little")
            prefix = length.to_bytes(8, "little") + file.read(min(length, _MAX_HEADER_BYTES))
        info = _parse(json.loads(prefix[8:]))
        intact = info.prefix() == prefix
    except OSError as error:
        raise StoreError(f"{path} is missing or cannot be read ({error})") from error
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
        raise StoreError(f"{path} is truncated or corrupt: its header is damaged") from error
    if not intact:
        raise StoreError(f"{path} is corrupt: its header is damaged")
    if size != info.num_bytes:
        raise StoreError(f"{path} is truncated or corrupt: {size} bytes, expected {info.num_bytes}")
    return info


def check_shard_data(path: Path, info: ShardInfo) -> None:
    """Re-hashes the data section of `path`.

    Raises:
        StoreError: its checksum is not the one that `info` gives.
    """
    found = file_checksum(path, start=len(info.prefix()))
    if found != info.checksum:
        raise StoreError(f"{path} is corrupt: its checksum is {found}, expected {info.checksum}")


def map_shard(path: Path, info: ShardInfo) -> ShardArrays:
    """The arrays of `path`, memory-mapped and read-only."""
    try:
        mapped = np.memmap(path, dtype=np.uint8, mode="r").view(np.ndarray)
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} is missing or cannot be mapped ({error})") from error
    if len(mapped) != info.num_bytes:  # changed since it was opened; reading on would be a SIGBUS
        raise StoreError(f"{path} is truncated: {len(mapped)} bytes, expected {info.num_bytes}")
    data = mapped[len(info.prefix()) :]
    arrays: dict[str, NDArray[Any]] = {"cluster_mass": np.empty((info.rows, 0), np.float16)}
    for name, (dtype, shape, offset) in info.layout().items():
        num_bytes = prod(shape) * np.dtype(dtype).itemsize
        arrays[name] = data[offset : offset + num_bytes].view(dtype).reshape(shape)
    return ShardArrays(**arrays)


def sealed(value: Mapping[str, Any]) -> str:
    """`value` as JSON text that is a function of its content, with a checksum of the rest in it."""
    bare = {key: part for key, part in value.items() if key != "checksum"}
    return _to_json(bare | {"checksum": checksum(_to_json(bare).encode())})


def read_sealed(path: Path) -> dict[str, Any]:
    """What `sealed` made the text of the file `path` from.

    Raises:
        StoreError: it is missing, damaged, of another kind or of another format version.
    """
    try:
        text = path.read_text(encoding="utf-8")
        value = json.loads(text)
    except OSError as error:
        raise StoreError(f"{path} is missing or cannot be read ({error})") from error
    except ValueError as error:
        raise StoreError(f"{path} is corrupt or not of a PPR store ({error})") from error
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise StoreError(f"{path} is corrupt or not of a PPR store")
    if (version := value.get("format_version")) != FORMAT_VERSION:
        raise StoreError(
            f"{path}: format version: stored {version!r}, wanted {FORMAT_VERSION}; {REBUILD}"
        )
    if text != sealed(value):
        raise StoreError(f"{path} is corrupt: wrong checksum; to repair it, {RESUME}")
    return value


def differences(
    stored: Mapping[str, Any], wanted: Mapping[str, Any], *, exact: bool = False
) -> str:
    """What of `wanted` is otherwise in `stored`, as a clause; empty if nothing is.

    With `exact`, what `stored` has beyond `wanted` counts as well, and so does 1 against 1.0.
    """
    left, right = _flat(stored), _flat(wanted)
    found = []
    for name in sorted(left.keys() | right.keys() if exact else right.keys()):
        old, new = (repr(side[name]) if name in side else "nothing" for side in (left, right))
        if old != new and (exact or name not in left or left[name] != right[name]):
            found.append(f"{name}: stored {old}, wanted {new}")
    return "; ".join(found)


def _flat(build: Mapping[str, Any]) -> dict[str, Any]:
    flat = {key.replace("_", " "): value for key, value in build.items() if key != "parameters"}
    return flat | {f"parameter {key}": value for key, value in build["parameters"].items()}


def checksum(data: bytes) -> str:
    """blake2b-128 of `data`."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def file_checksum(path: Path, start: int = 0) -> str:
    """blake2b-128 of the bytes of `path` from `start` on.

    Raises:
        StoreError: the file is missing or cannot be read.
    """
    try:
        with path.open("rb") as file:
            file.seek(start)
            digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16))
    except OSError as error:
        raise StoreError(f"{path} is missing or cannot be read ({error})") from error
    return digest.hexdigest()


@contextmanager
def replacing_file(path: Path, num_bytes: int) -> Iterator[BinaryIO]:
    """A file to write `num_bytes` into, which takes the place of `path` when all went well.

    Raises:
        StoreError: the disk is full or not writable; nothing is left of the attempt.
    """
    try:
        with replacing(path) as temporary, temporary.open("wb") as file:
            yield file
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(
                f"disk full while writing {path}: free {num_bytes} bytes and use --resume"
            ) from error
        raise StoreError(f"{path} cannot be written ({error})") from error


def _parse(header: dict[str, Any]) -> ShardInfo:
    arrays = header["arrays"]
    return ShardInfo(
        build=header["build"],
        clusters=header["clusters"],
        first=header["first"],
        rows=header["rows"],
        entries=arrays["ids"]["shape"][0],
        num_clusters=arrays["cluster_mass"]["shape"][1] if "cluster_mass" in arrays else 0,
        checksum=header["checksum"],
    )


def _to_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n"
