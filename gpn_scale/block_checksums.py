"""Checksums of the blocks of a file, so that a reader checks only the blocks that it reads.

The hash is the 64-bit XXH3, which is as fast as memory, so that checks cost next to nothing. It
detects damage, not forgery.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import xxhash
from numpy.typing import NDArray

from gpn_scale.reading import file_size, open_file

BLOCK_BYTES = 1 << 16
"""Size of a block; the last one of a file may be smaller."""
HASH = "xxh3_64"
"""Name of the hash, for the headers of files."""
_READ_BYTES = 1 << 20


def checksum_of(data: bytes | memoryview) -> int:
    """Return the hash of some bytes.

    >>> hex(checksum_of(b"abc"))
    '0x78af5f94892f3950'
    """
    return int(xxhash.xxh3_64_intdigest(data))


def text_checksum(*parts: str | memoryview) -> str:
    """Return the hash of texts and bytes together, as a text.

    >>> text_checksum("abc") == text_checksum("a", "bc"), len(text_checksum())
    (True, 16)
    """
    digest = xxhash.xxh3_64()
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else part)
    return str(digest.hexdigest())


def file_hash(path: Path) -> str:
    """Return the size and the hash of a whole file, as a text.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "file").write_bytes(b"abc")
    ...     file_hash(Path(folder, "file"))
    '3-78af5f94892f3950'

    Raises:
        FileError: the path does not lead to a regular file.
        OSError: the file cannot be read.
    """
    digest, size = xxhash.xxh3_64(), 0
    with open_file(path) as file:
        while part := file.read(_READ_BYTES):
            digest.update(part)
            size += len(part)
    return f"{size}-{digest.hexdigest()}"


def has_hash(path: Path, wanted: str) -> bool:
    """Return whether a file is the one that `file_hash` was called with.

    A file of another size, which may be larger than any disk, is not read. Texts of earlier
    versions have no size.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "file").write_bytes(b"abc")
    ...     has_hash(Path(folder, "file"), "3-78af5f94892f3950")
    True

    Raises:
        FileError: the path does not lead to a regular file.
        OSError: the file cannot be read.
    """
    size, _, digest = wanted.rpartition("-")
    if size and str(file_size(path)) != size:
        return False
    return file_hash(path).rpartition("-")[2] == digest


def block_checksums(chunks: Iterable[memoryview]) -> NDArray[np.uint64]:
    """Return the hashes of the blocks of the bytes that the chunks have together.

    >>> whole = bytes(range(256)) * 1000
    >>> parts = [memoryview(whole[:7]), memoryview(whole[7:])]
    >>> table = block_checksums(parts)
    >>> len(table), int(table[3]) == checksum_of(whole[3 * BLOCK_BYTES :])
    (4, True)
    """
    table, digest, room = [], xxhash.xxh3_64(), BLOCK_BYTES
    for chunk in chunks:
        start = 0
        while start < len(chunk):
            part = chunk[start : start + room]
            digest.update(part)
            start, room = start + len(part), room - len(part)
            if room == 0:
                table.append(digest.intdigest())
                digest, room = xxhash.xxh3_64(), BLOCK_BYTES
    if room < BLOCK_BYTES:
        table.append(digest.intdigest())
    return np.array(table, np.uint64)


def read_exactly_into(descriptor: int, offset: int, buffer: memoryview) -> bool:
    """Fill `buffer` from an open file, and return whether the file is long enough.

    A mapped file that was cut short kills the process with SIGBUS; reading it does not.

    >>> from tempfile import TemporaryFile
    >>> buffer = bytearray(2)
    >>> with TemporaryFile() as file:
    ...     _ = file.write(b"abc"), file.flush()
    ...     is_read = [read_exactly_into(file.fileno(), at, memoryview(buffer)) for at in (1, 2)]
    >>> is_read, buffer
    ([True, False], bytearray(b'cc'))

    Raises:
        OSError: the file cannot be read.
    """
    done = 0
    while done < len(buffer):
        count = os.preadv(descriptor, [buffer[done:]], offset + done)
        if count == 0:
            return False
        done += count
    return True


def damaged_blocks(data: memoryview, table: Sequence[int] | NDArray[np.uint64]) -> list[int]:
    """Return the numbers of the blocks of `data` whose hash is not the one in `table`.

    >>> data = memoryview(bytes(100_000))
    >>> table = block_checksums([data])
    >>> damaged_blocks(data, table), damaged_blocks(memoryview(b"1" + bytes(99_999)), table)
    ([], [0])
    """
    return [
        block
        for block, expected in enumerate(table)
        if checksum_of(data[block * BLOCK_BYTES : (block + 1) * BLOCK_BYTES]) != int(expected)
    ]
