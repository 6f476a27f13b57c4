"""`GrowingTable`: a table that grows at its end, in memory and, once it is large, in a file."""

import mmap
import tempfile
import weakref
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from gpn_scale.errors import ConfigError

TABLE_BYTES = 1 << 28
"""Size above which a table goes to a file."""


class GrowingTable:
    """Collects the rows of a table; a large one is mapped from an unnamed file.

    >>> ages = GrowingTable(directory=None, memory_bytes=0)
    >>> ages.append(pa.table({"age": [31, 29]}))
    >>> ages.append(pa.table({"age": [30]}))
    >>> ages.table().to_pydict()
    {'age': [31, 29, 30]}

    Args:
        directory: Where the file is; None for the system's default.
        memory_bytes: Size above which there is a file.
    """

    def __init__(self, directory: Path | None, memory_bytes: int = TABLE_BYTES) -> None:
        self._directory, self._limit = directory, memory_bytes
        self._parts: list[pa.Table] = []
        self._num_bytes = 0
        self._file: BinaryIO | None = None
        self._writer: Any = None

    def append(self, rows: pa.Table) -> None:
        """Add rows, which have the columns and types of those before them.

        Raises:
            ConfigError: the directory does not exist, is not writable or has too little space.
        """
        self._parts.append(rows)
        self._num_bytes += rows.nbytes
        if not rows.num_columns or (self._file is None and self._num_bytes <= self._limit):
            return
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._directory)  # noqa: SIM115 # it stays
                weakref.finalize(self, self._file.close)
                self._writer = pa.ipc.new_file(self._file, rows.schema)
            for part in self._parts:
                self._writer.write_table(part)
        except OSError as error:
            raise ConfigError(
                f"the scratch directory {self._directory or tempfile.gettempdir()} cannot hold "
                f"{self._num_bytes:,} bytes ({error}): free some disk space"
            ) from error
        self._parts = []

    def table(self) -> pa.Table:
        """Return all rows, after the last one was added; there is at least one part."""
        if self._file is None:
            return pa.concat_tables(self._parts)
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            self._file.flush()
        content = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        return pa.ipc.open_file(pa.BufferReader(pa.py_buffer(content))).read_all()
