"""File formats of a store: shards of rows, and JSON that contains its own checksum.

A shard holds the rows of consecutive roots: the length of the header (8 bytes, little-endian), the
header (JSON, padded with spaces), and the data section. The section and every array in it start at
multiples of 64 bytes; the header gives the offsets of the arrays in the section. The header is a
function of `ShardInfo`, so a reader can compare it byte by byte, and a flipped bit is detected by
`read_shard_info` or by `check_shard_data`.

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
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gpn_scale.errors import StoreError
from gpn_scale.files import replacing
from gpn_scale.ppr.rows import Rows

FORMAT = "gpn_scale.ppr"
FORMAT_VERSION = 2
REBUILD = "build the store again with existing='overwrite'"
RESUME = "continue the build with existing='resume'"
REBUILD_ARGUMENTS, RESUME_ARGUMENTS = ("existing=overwrite",), ("existing=resume",)
"""Names under which `gpn_scale.flags` knows the commands for `REBUILD` and `RESUME`."""

_ALIGNMENT = 64
_MAX_HEADER_BYTES = 1 << 16  # so that a damaged length does not make a reader load the whole file
_FIELD_OF_ARRAY = {"cluster_mass": "cut_mass"}
"""Field of `Rows` that an array in the file stands for, where their names differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardInfo:
    """The content of a shard's header.

    >>> info = ShardInfo(build="f00d", clusters=None, first=0, rows=2, entries=3, num_clusters=0)
    >>> info.layout()["weights"]  # type, shape, offset
    ('<f4', (3,), 128)
    """

    build: str
    """Fingerprint of the build that wrote the shard."""
    clusters: str | None
    """Checksum of the clusters by which `cut_mass` is counted; None without clusters."""
    first: int
    """Position of the first row in the list of roots."""
    rows: int
    """Number of rows R."""
    entries: int
    """Number of kept entries E."""
    num_clusters: int
    """Number of clusters P; 0 without clusters."""
    checksum: str = ""
    """blake2b-128 hash of the data section."""

    def layout(self) -> dict[str, tuple[str, tuple[int, ...], int]]:
        """Return data type, shape and offset in the data section of each array in the file."""
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
        """Return all bytes of the file before its data section."""
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
        """Size of the file in bytes."""
        dtype, shape, offset = list(self.layout().values())[-1]
        return len(self.prefix()) + offset + prod(shape) * np.dtype(dtype).itemsize


def shard_name(index: int) -> str:
    """Return the file name of shard `index`.

    >>> shard_name(7)
    'shard-00007.ppr'
    """
    return f"shard-{index:05d}.ppr"


def shard_entry(index: int, info: ShardInfo) -> dict[str, Any]:
    """Return the manifest's entry of a shard.

    >>> info = ShardInfo(build="f00d", clusters=None, first=0, rows=2, entries=3, num_clusters=0)
    >>> shard_entry(7, info)["file"]
    'shard-00007.ppr'
    """
    return {
        "file": shard_name(index),
        "first": info.first,
        "rows": info.rows,
        "entries": info.entries,
        "bytes": info.num_bytes,
        "checksum": info.checksum,
    }


def write_shard(path: Path, info: ShardInfo, rows: Rows) -> None:
    """Write `rows` to `path` atomically; `info` has their sizes and no checksum yet.

    >>> from tempfile import TemporaryDirectory
    >>> info = ShardInfo(build="f00d", clusters=None, first=0, rows=1, entries=1, num_clusters=0)
    >>> rows = Rows(
    ...     row_ptr=np.array([0, 1]),
    ...     ids=np.array([7], np.int32),
    ...     weights=np.array([0.75], np.float32),
    ...     missing_mass=np.array([0.25], np.float32),
    ...     cut_mass=np.empty((1, 0), np.float16),
    ... )
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / shard_name(0)
    ...     write_shard(path, info, rows)
    ...     map_shard(path, read_shard_info(path)).ids.tolist()
    [7]

    Raises:
        StoreError: the disk is full or not writable; `path` keeps its former content.
    """
    chunks, end = [], 0
    for name, (dtype, shape, offset) in info.layout().items():
        array = getattr(rows, _FIELD_OF_ARRAY.get(name, name))
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
    """Return the header of `path`, after checking it and the file's size.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> with TemporaryDirectory() as folder:
    ...     info = read_shard_info(example_store(folder).path / shard_name(0))
    >>> info.rows, info.entries, info.num_clusters
    (3, 6, 2)

    Raises:
        StoreError: the file is missing, its header is damaged, or its size is not as stated.
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
    """Hash the data section of `path` again.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> with TemporaryDirectory() as folder:
    ...     path = example_store(folder).path / shard_name(0)
    ...     check_shard_data(path, read_shard_info(path))

    Raises:
        StoreError: its checksum is not the one in `info`.
    """
    actual = file_checksum(path, start=len(info.prefix()))
    if actual != info.checksum:
        raise StoreError(f"{path} is corrupt: its checksum is {actual}, expected {info.checksum}")


def map_shard(path: Path, info: ShardInfo) -> Rows:
    """Return the rows of `path` as read-only memory maps; `cut_mass` is float16.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> with TemporaryDirectory() as folder:
    ...     path = example_store(folder).path / shard_name(0)
    ...     map_shard(path, read_shard_info(path)).missing_mass.tolist()
    [0.0, 0.25, 0.0]
    """
    try:
        mapped = np.memmap(path, dtype=np.uint8, mode="r").view(np.ndarray)
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} is missing or cannot be mapped ({error})") from error
    if len(mapped) != info.num_bytes:  # changed since it was opened; reading could end in SIGBUS
        raise StoreError(f"{path} is truncated: {len(mapped)} bytes, expected {info.num_bytes}")
    data = mapped[len(info.prefix()) :]
    arrays: dict[str, NDArray[Any]] = {"cut_mass": np.empty((info.rows, 0), np.float16)}
    for name, (dtype, shape, offset) in info.layout().items():
        num_bytes = prod(shape) * np.dtype(dtype).itemsize
        array = data[offset : offset + num_bytes].view(dtype).reshape(shape)
        arrays[_FIELD_OF_ARRAY.get(name, name)] = array
    return Rows(**arrays)


def sealed(value: Mapping[str, Any]) -> str:
    """Return `value` as JSON text with its own checksum in it; equal values give equal texts.

    >>> sorted(json.loads(sealed({"k": 32})))
    ['checksum', 'k']
    """
    bare = {key: part for key, part in value.items() if key != "checksum"}
    return _to_json(bare | {"checksum": checksum(_to_json(bare).encode())})


def read_sealed(path: Path) -> dict[str, Any]:
    """Return the value of a file whose text is from `sealed`.

    >>> from tempfile import TemporaryDirectory
    >>> value = {"format": FORMAT, "format_version": FORMAT_VERSION, "k": 32}
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "facts.json").write_text(sealed(value))
    ...     read_sealed(Path(folder) / "facts.json")["k"]
    32

    Raises:
        StoreError: it is missing, damaged, of another kind or of another format version.
    """
    try:
        text = path.read_text(encoding="utf-8")
        value = json.loads(text)
    except OSError as error:
        raise StoreError(f"{path} is missing or cannot be read ({error})") from error
    except ValueError as error:
        raise StoreError(f"{path} is corrupt or not part of a PPR store ({error})") from error
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise StoreError(f"{path} is corrupt or not part of a PPR store")
    if (version := value.get("format_version")) != FORMAT_VERSION:
        raise StoreError(
            f"{path}: format version: stored {version!r}, wanted {FORMAT_VERSION}; {REBUILD}",
            arguments=REBUILD_ARGUMENTS,
        )
    if text != sealed(value):
        raise StoreError(
            f"{path} is corrupt: wrong checksum; to repair it, {RESUME}",
            arguments=RESUME_ARGUMENTS,
        )
    return value


def differences(
    stored: Mapping[str, Any], wanted: Mapping[str, Any], *, exact: bool = False
) -> str:
    """Return a clause that says where `stored` differs from `wanted`; empty if it does not.

    With `exact`, entries of `stored` that `wanted` does not have count as well, and 1 differs from
    1.0.

    >>> differences({"k": 32, "parameters": {"steps": "10"}}, {"parameters": {"steps": "inf"}})
    "parameter steps: stored '10', wanted 'inf'"
    """
    left, right = _flat(stored), _flat(wanted)
    clauses = []
    for name in sorted(left.keys() | right.keys() if exact else right.keys()):
        old, new = (repr(side[name]) if name in side else "nothing" for side in (left, right))
        if old != new and (exact or name not in left or left[name] != right[name]):
            clauses.append(f"{name}: stored {old}, wanted {new}")
    return "; ".join(clauses)


def _flat(build: Mapping[str, Any]) -> dict[str, Any]:
    flat = {key.replace("_", " "): value for key, value in build.items() if key != "parameters"}
    return flat | {f"parameter {key}": value for key, value in build["parameters"].items()}


def checksum(data: bytes) -> str:
    """Return the blake2b-128 hash of `data`.

    >>> checksum(b"abc")
    'cf4ab791c62b8d2b2109c90275287816'
    """
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def file_checksum(path: Path, start: int = 0) -> str:
    """Return the blake2b-128 hash of the bytes of `path` from offset `start` to the end.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "data").write_bytes(b"head:abc")
    ...     file_checksum(Path(folder) / "data", start=5) == checksum(b"abc")
    True

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
    """Yield a file of `num_bytes` that replaces `path` if the block ends without an error.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with replacing_file(Path(folder) / "data", num_bytes=3) as file:
    ...         _ = file.write(b"abc")
    ...     (Path(folder) / "data").read_bytes()
    b'abc'

    Raises:
        StoreError: the disk is full or not writable; no temporary file is left.
    """
    try:
        with replacing(path) as temporary, temporary.open("wb") as file:
            yield file
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(
                f"disk full while writing {path}: free {num_bytes} bytes, then {RESUME}",
                arguments=RESUME_ARGUMENTS,
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
