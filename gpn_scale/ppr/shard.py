"""File format of a shard of rows.

A shard holds the rows of consecutive roots: the length of the header (8 bytes, little-endian), the
header (JSON, padded with spaces), the data section, and a table with a hash of each block of the
section. The section and every array in it start at multiples of 64 bytes; the header gives the
offsets of the arrays in the section. The header is a function of `ShardInfo`, so a reader can
compare it byte by byte. It contains a checksum of the table, so that a flipped bit anywhere in the
file is detected by `read_shard_info` or by an `OpenShard`, or makes it a header of another build or
position, which the store compares with its own.

Shapes: R rows, E kept entries, P clusters.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from gpn_scale.block_checksums import BLOCK_BYTES, HASH, block_checksums
from gpn_scale.errors import StoreError
from gpn_scale.ppr.rows import Rows
from gpn_scale.ppr.sealed import checksum, replacing_file
from gpn_scale.reading import open_file, parse_json

_ALIGNMENT = 64
_MAX_HEADER_BYTES = 1 << 16  # so that a damaged length does not make a reader load the whole file
_MOST_ENTRIES = 1 << 48
FIELD_OF_ARRAY = {"cluster_mass": "cut_mass"}
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
    """blake2b-128 hash of the table of block hashes, and so of the whole data section."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Further facts about the shard, as JSON; none at present."""

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

    @property
    def data_bytes(self) -> int:
        """Size of the data section, padding at its end included."""
        dtype, shape, offset = list(self.layout().values())[-1]
        end = offset + prod(shape) * np.dtype(dtype).itemsize
        return end + -end % _ALIGNMENT

    @property
    def num_blocks(self) -> int:
        """Number of blocks of the data section."""
        return -(-self.data_bytes // BLOCK_BYTES)

    def prefix(self) -> bytes:
        """Return all bytes of the file before its data section."""
        arrays = {
            name: {"dtype": dtype, "shape": shape, "offset": offset}
            for name, (dtype, shape, offset) in self.layout().items()
        }
        blocks = {"bytes": BLOCK_BYTES, "count": self.num_blocks, "hash": HASH}
        facts: dict[str, Any] = {
            "build": self.build,
            "clusters": self.clusters,
            "first": self.first,
        }
        facts |= {"rows": self.rows, "checksum": self.checksum, "facts": dict(self.facts)}
        header = json.dumps({"arrays": arrays, "blocks": blocks, **facts}, sort_keys=True).encode()
        header += b" " * (-(8 + len(header)) % _ALIGNMENT)
        return len(header).to_bytes(8, "little") + header

    @property
    def num_bytes(self) -> int:
        """Size of the file in bytes."""
        return len(self.prefix()) + self.data_bytes + 8 * self.num_blocks


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
        "facts": dict(info.facts),
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
    ...     read_shard_info(path).entries
    1

    Raises:
        StoreError: the disk is full or not writable; `path` keeps its former content.
    """
    chunks = _chunks(info, rows)
    table = block_checksums(chunks).astype("<u8").tobytes()
    info = replace(info, checksum=checksum(table))
    with replacing_file(path, info.num_bytes) as file:
        file.write(info.prefix())
        for chunk in chunks:
            file.write(chunk)
        file.write(table)


def with_checksum(info: ShardInfo, rows: Rows) -> ShardInfo:
    """Return `info` with the checksum of the shard that `write_shard` would write.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> with TemporaryDirectory() as folder:
    ...     store = example_store(folder)
    ...     info, rows = read_shard_info(store.path / shard_name(0)), store.rows(store.roots)
    ...     rows = replace(rows, cut_mass=rows.cut_mass.astype(np.float16))  # as on disk
    ...     with_checksum(replace(info, checksum=""), rows) == info
    True
    """
    table = block_checksums(_chunks(info, rows)).astype("<u8").tobytes()
    return replace(info, checksum=checksum(table))


def _chunks(info: ShardInfo, rows: Rows) -> list[memoryview]:
    """Return the bytes of a shard between its header and its checksums."""
    chunks, end = [], 0
    for name, (dtype, shape, offset) in info.layout().items():
        array = getattr(rows, FIELD_OF_ARRAY.get(name, name))
        assert (array.dtype, array.shape) == (dtype, shape), (name, array.dtype, array.shape)
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        chunks += [memoryview(bytes(offset - end)), data]
        end = offset + len(data)
    return [*chunks, memoryview(bytes(info.data_bytes - end))]


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
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(8), "little")
            prefix = length.to_bytes(8, "little") + file.read(min(length, _MAX_HEADER_BYTES))
        info = _parse(parse_json(prefix[8:], "its header"))
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


def _parse(header: dict[str, Any]) -> ShardInfo:
    arrays = header["arrays"]
    info = ShardInfo(
        build=header["build"],
        clusters=header["clusters"],
        first=header["first"],
        rows=header["rows"],
        entries=arrays["ids"]["shape"][0],
        num_clusters=arrays["cluster_mass"]["shape"][1] if "cluster_mass" in arrays else 0,
        checksum=header["checksum"],
        facts=dict(header["facts"]),
    )
    counts = (info.first, info.rows, info.entries, info.num_clusters)
    if not all(type(count) is int and 0 <= count <= _MOST_ENTRIES for count in counts):
        raise ValueError("a count is not a whole number, or out of range")
    if type(info.build) is not str or type(info.clusters) not in (str, type(None)):
        raise ValueError("a checksum is not a text")
    return info
