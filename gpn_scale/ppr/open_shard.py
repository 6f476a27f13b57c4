"""A shard that is open for reading: its arrays as memory maps, and checks of its blocks.

Blocks are checked by reading them with `pread`, which returns an error if the file was truncated or
cannot be read. Accessing its memory map would kill the process instead (SIGBUS).

Shapes: R rows, E kept entries, P clusters.
"""

import mmap
import os
import stat
import weakref
from collections.abc import Iterable
from math import prod
from pathlib import Path
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.block_checksums import BLOCK_BYTES, checksum_of, read_exactly_into
from gpn_scale.errors import StoreError
from gpn_scale.ppr.rows import Rows
from gpn_scale.ppr.sealed import RESUME, RESUME_ARGUMENTS, checksum
from gpn_scale.ppr.shard import FIELD_OF_ARRAY, ShardInfo

_BLOCKS_AT_A_TIME = 4
"""Largest number of blocks that are read together, so that they fit into a core's cache."""


class _Buffer(local):
    """Memory of one thread into which blocks are read."""

    def __init__(self) -> None:
        self.bytes = bytearray(_BLOCKS_AT_A_TIME * BLOCK_BYTES)


_buffer = _Buffer()


class OpenShard:
    """An open shard whose header is known; its blocks are checked on request.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> from gpn_scale.ppr.shard import read_shard_info, shard_name
    >>> with TemporaryDirectory() as folder:
    ...     path = example_store(folder).path / shard_name(0)
    ...     shard = OpenShard(path, read_shard_info(path), num_nodes=3)
    ...     shard.check_all()
    ...     shard.rows.missing_mass.tolist()
    [0.0, 0.25, 0.0]

    Args:
        path: The file.
        info: Its header.
        num_nodes: Number of nodes N of the graph; ids are below it.

    Raises:
        StoreError: the file is missing or truncated, or its table of hashes is damaged.
    """

    def __init__(self, path: Path, info: ShardInfo, num_nodes: int) -> None:
        self.path, self.info, self.num_nodes = path, info, num_nodes
        self._layout = info.layout()
        self._places = {
            name: (
                f"<u{np.dtype(dtype).itemsize}",
                offset,
                offset + prod(shape) * np.dtype(dtype).itemsize,
            )
            for name, (dtype, shape, offset) in self._layout.items()
        }
        self._start, self._data_bytes = len(info.prefix()), info.data_bytes
        self._num_bytes = self._start + self._data_bytes + 8 * info.num_blocks
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise StoreError(f"{path} is missing or cannot be read ({error})") from error
        weakref.finalize(self, os.close, self._descriptor)
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise StoreError(f"{path} is not a regular file, expected a shard of a PPR store")
        self.identity = (status.st_dev, status.st_ino, status.st_mtime_ns)
        """Identity of the file, which changes if it is replaced or written to."""
        self.check_size()
        table = bytearray(8 * info.num_blocks)
        self._read_into(self._start + self._data_bytes, memoryview(table))
        if (actual := checksum(table)) != info.checksum:
            raise StoreError(
                f"{path} is corrupt: the checksum of its block table is {actual}, expected "
                f"{info.checksum}; to repair it, {RESUME}",
                arguments=RESUME_ARGUMENTS,
            )
        self._table = np.frombuffer(table, "<u8")
        self.rows = self._mapped()

    def _mapped(self) -> Rows:
        """Return the rows as read-only memory maps; `cut_mass` is float16."""
        try:
            mapped = mmap.mmap(self._descriptor, self._num_bytes, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise StoreError(f"{self.path} cannot be mapped ({error})") from error
        data = np.frombuffer(mapped, np.uint8)[self._start :]
        arrays: dict[str, NDArray[Any]] = {"cut_mass": np.empty((self.info.rows, 0), np.float16)}
        for name, (dtype, shape, offset) in self._layout.items():
            num_bytes = prod(shape) * np.dtype(dtype).itemsize
            array = data[offset : offset + num_bytes].view(dtype).reshape(shape)
            arrays[FIELD_OF_ARRAY.get(name, name)] = array
        return Rows(**arrays)

    def check_size(self) -> None:
        """Check that the file still has its full length, so that its map may be accessed.

        Raises:
            StoreError: the file was truncated.
        """
        if (size := os.fstat(self._descriptor).st_size) != self._num_bytes:
            raise StoreError(
                f"{self.path} is truncated: {size} bytes, expected {self._num_bytes}; to repair "
                f"it, {RESUME}",
                arguments=RESUME_ARGUMENTS,
            )

    def check_all(self) -> None:
        """Check all blocks and row pointers.

        Raises:
            StoreError: something is damaged.
        """
        self.check_blocks(range(self.info.num_blocks))
        pointers = self.rows.row_ptr
        if pointers[0] != 0 or pointers[-1] != self.info.entries or (np.diff(pointers) < 0).any():
            raise self._damage(0, "row pointers are not in order")

    def check_blocks(self, blocks: Iterable[int]) -> None:
        """Check the hashes of blocks, in order, and the ranges of the numbers in them.

        Raises:
            StoreError: a block is damaged; the message names the rows of which it holds parts.
        """
        run: list[int] = []
        for block in blocks:
            if run and (block != run[-1] + 1 or len(run) == _BLOCKS_AT_A_TIME):
                self._check_run(run)
                run = []
            run.append(block)
        if run:
            self._check_run(run)

    def _check_run(self, run: list[int]) -> None:
        """Check consecutive blocks, which are read together."""
        start = run[0] * BLOCK_BYTES
        stop = min((run[-1] + 1) * BLOCK_BYTES, self._data_bytes)
        data = memoryview(_buffer.bytes)[: stop - start]
        self._read_into(self._start + start, data)
        for place, block in enumerate(run):
            part = data[place * BLOCK_BYTES : (place + 1) * BLOCK_BYTES]
            if checksum_of(part) != int(self._table[block]):
                raise self._damage(block, "its checksum differs from the stored one")
        for name, (dtype, offset, end) in self._places.items():
            first, last = max(start, offset), min(stop, end)
            if first < last:  # arrays and blocks start at multiples of every item's size
                count = (last - first) // np.dtype(dtype).itemsize
                values = np.frombuffer(data, dtype, count, first - start)
                if problem := self._problem(name, values):
                    wrong = first + int(values.argmax()) * values.itemsize
                    raise self._damage(wrong // BLOCK_BYTES, problem)

    def _problem(self, name: str, values: NDArray[Any]) -> str:
        """Return what is wrong with some numbers of an array, or an empty text.

        Their bits are compared as unsigned integers, of which negative numbers and NaN are largest.
        """
        largest = values.max()
        if name == "ids":
            problem = f"an id is out of the range [0, {self.num_nodes})"
            return "" if largest < self.num_nodes else problem
        if name == "row_ptr":
            return "" if largest <= self.info.entries else "a row pointer is out of range"
        infinity = 0x7C00 if values.itemsize == 2 else 0x7F800000
        return "" if largest < infinity else f"a number of {name} is negative or not finite"

    def _damage(self, block: int, problem: str) -> StoreError:
        first, last = self.rows_of_block(block)
        position = self.info.first
        return StoreError(
            f"{self.path} is damaged: in block {block}, which holds parts of rows "
            f"{position + first} to {position + last}, {problem}; to repair it, {RESUME}",
            arguments=RESUME_ARGUMENTS,
        )

    def rows_of_block(self, block: int) -> tuple[int, int]:
        """Return the first and the last row of the shard of which a block may hold parts."""
        start, stop = block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES
        first, last = self.info.rows, 0
        for name, (dtype, shape, offset) in self._layout.items():
            stride = prod(shape[1:]) * np.dtype(dtype).itemsize
            low = max(start - offset, 0) // stride
            high = min(-(-(stop - offset) // stride), shape[0]) - 1
            if low > high:
                continue
            if name in ("ids", "weights"):  # pointers may be damaged too, so clip their values
                pointers = np.array(self.rows.row_ptr)
                low = int(np.searchsorted(pointers, low, side="right")) - 1
                high = int(np.searchsorted(pointers, high, side="right")) - 1
            first, last = min(first, max(low, 0)), max(last, min(high, self.info.rows - 1))
        return min(first, last), last

    def _read_into(self, offset: int, buffer: memoryview) -> None:
        try:
            is_long_enough = read_exactly_into(self._descriptor, offset, buffer)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be read ({error})") from error
        if not is_long_enough:
            self.check_size()
            raise StoreError(f"{self.path} cannot be read to its end")
