"""`RawColumns`: raw columns of a graph's nodes, in memory or in a file that is read on demand."""

import hashlib
import io
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from gpn_scale.errors import FileError, GraphError
from gpn_scale.files import replacing
from gpn_scale.reading import check_file

_HASHED_ROWS = 1 << 16


class RawColumns:
    """The raw feature columns of all nodes, one row per node.

    >>> columns = RawColumns(pa.table({"age": [31, 29], "country": ["DE", "FR"]}))
    >>> columns.names, columns.num_rows
    (('age', 'country'), 2)

    Args:
        source: The table, or a Parquet file that holds it. Only the schema of a file is read at
            first; the file stays open, so it can be read even after another graph has replaced it.

    Raises:
        GraphError: the file is missing or damaged.
    """

    def __init__(self, source: pa.Table | Path) -> None:
        self._source = source
        if isinstance(source, Path):
            self._file, description = _opened(source)
            self._names = tuple(description.schema.to_arrow_schema().names)
            self._num_rows = int(description.num_rows)
        else:
            self._names, self._num_rows = tuple(source.column_names), int(source.num_rows)

    def __reduce__(self) -> tuple[type["RawColumns"], tuple[pa.Table | Path]]:
        return RawColumns, (self._source,)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self._names

    @property
    def num_rows(self) -> int:
        """Number of rows N."""
        return self._num_rows

    def table(self) -> pa.Table:
        """Return the columns; a file is read on every call.

        Raises:
            GraphError: the file is missing or damaged.
        """
        if not isinstance(self._source, Path):
            return self._source
        try:
            with parquet.ParquetFile(self._file) as opened:
                return opened.read()
        except (OSError, pa.ArrowException) as error:
            raise _unreadable(self._source, error) from error

    def rows(self, start: int, stop: int) -> pa.Table:
        """Return some rows; only the parts of a file that hold them are read.

        >>> RawColumns(pa.table({"age": [31, 29, 30]})).rows(1, 2).to_pydict()
        {'age': [29]}

        Raises:
            GraphError: the file is missing or damaged.
        """
        if not isinstance(self._source, Path):
            return self._source.slice(start, stop - start)
        try:
            with parquet.ParquetFile(self._file) as opened:
                parts: list[int] = []
                first = end = 0
                for part in range(opened.num_row_groups):
                    begin, end = end, end + opened.metadata.row_group(part).num_rows
                    if begin < stop and end > start:
                        first = begin if not parts else first
                        parts.append(part)
                return opened.read_row_groups(parts).slice(start - first, stop - start)
        except (OSError, pa.ArrowException) as error:
            raise _unreadable(self._source, error) from error

    def content_hash(self) -> str:
        """Return a hash of names, types and values, which identifies the table.

        >>> first, second = RawColumns(pa.table({"a": [1]})), RawColumns(pa.table({"a": [2]}))
        >>> first.content_hash() == second.content_hash()
        False
        """
        table, sink = self.table(), _HashingFile()
        with pa.PythonFile(sink, "w") as file, pa.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(table, max_chunksize=_HASHED_ROWS)
        return sink.digest.hexdigest()

    def write(self, path: Path) -> None:
        """Write the columns to a Parquet file, atomically.

        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     RawColumns(pa.table({"age": [31]})).write(Path(folder) / "raw.parquet")
        ...     RawColumns(Path(folder) / "raw.parquet").table().to_pydict()
        {'age': [31]}
        """
        table = self.table()
        with replacing(path) as file:
            parquet.write_table(table, file)


class _HashingFile(io.RawIOBase):
    """A file object that only computes the hash of what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.digest = hashlib.blake2b(digest_size=8)

    def writable(self) -> bool:
        return True

    def write(self, content: bytes) -> int:  # type: ignore[override] # Arrow writes bytes only
        self.digest.update(content)
        return len(content)


def _opened(path: Path) -> tuple[pa.NativeFile, parquet.FileMetaData]:
    """Return the open file, which threads can read from at a time, and its description."""
    try:
        check_file(path)
        file = pa.OSFile(str(path))
        return file, parquet.read_metadata(file)
    except (OSError, FileError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> GraphError:
    return GraphError(
        f"{path} is missing or damaged ({error}), expected a Parquet file of raw columns: import "
        "the tables again"
    )
