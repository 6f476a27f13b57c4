"""Tables in files: CSV, whose values are read as text, and Parquet, whose types are kept.

The format is recognised by the content of a file, so the file may have any name. Everything that is
wrong with a file is reported as a `TableFaults`.
"""

import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from gpn_scale.data.csv_headers import SAMPLE_BYTES, csv_header, decoded_sample
from gpn_scale.data.faults import Fault, TableFaults
from gpn_scale.errors import FileError
from gpn_scale.reading import check_file, open_file, open_gzip

UNNAMED = "Unnamed: "
"""Beginning of the name that a column without one gets; its position follows, as in pandas."""

_BLOCK_BYTES = 1 << 23
_BATCH_ROWS = 1 << 18
_PARQUET, _GZIP = b"PAR1", b"\x1f\x8b"
_WRONG_LENGTH = re.compile(r"CSV parse error: (Row #\d+: )?Expected")
"""Arrow's messages about rows of another length; one thread numbers rows, several do not."""
_FIX_CSV = "write every row with as many values as the header, and close every quote"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    r"""A table on disk whose header has been read and checked; `read` reads its rows.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "people.csv").write_text("ref;age\n007;31\n8;\n")
    ...     table = open_table(Path(folder, "people.csv"))
    ...     table.column_names, table.read(["ref", "age"]).to_pydict()
    (('ref', 'age'), {'ref': ['007', '8'], 'age': ['31', None]})
    """

    path: Path
    name: str
    """Name of the file in faults."""
    column_names: tuple[str, ...]
    delimiter: str | None
    """What separates the values of a CSV file; None for Parquet."""
    compressed: bool = False
    """Whether the CSV file is compressed by gzip."""
    blank_lines: int = 0
    """Number of empty lines above the header."""
    is_empty: bool = False
    """Whether the file has a header but no rows."""

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Return these columns: text from CSV, with null for an empty value; else plain types.

        Raises:
            TableFaults: rows have too few or too many values, text is not UTF-8, or the file is
                damaged.
        """
        if not columns:
            return pa.table({})
        with self._readable():
            if self.delimiter is None:
                return plain(read_parquet(self.path, columns))
            if self.is_empty:
                return self._no_rows(columns)
            try:
                with self._stream() as stream:
                    table = arrow_csv.read_csv(stream, **self._csv_options(columns))
            except pa.ArrowInvalid as error:
                raise self._length_fault(error, columns) from error
            self._check_quotes(table)
            return table

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the rows of these columns in pieces, as `read` returns them.

        Raises:
            TableFaults: as `read`, when the damaged place is reached.
        """
        if not columns:
            return
        with self._readable():
            if self.delimiter is None:
                yield from _parquet_batches(self.path, columns)
            elif not self.is_empty:
                yield from self._csv_batches(columns)

    def _csv_batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        last = self._no_rows(columns)
        try:
            with (
                self._stream() as stream,
                arrow_csv.open_csv(stream, **self._csv_options(columns)) as reader,
            ):
                for batch in reader:
                    last = pa.Table.from_batches([batch])
                    yield last
        except pa.ArrowInvalid as error:
            raise self._length_fault(error, columns) from error
        self._check_quotes(last)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn errors of reading the file into faults."""
        try:
            yield
        except (OSError, EOFError, zlib.error, ValueError, pa.ArrowException) as error:
            if isinstance(error, TableFaults):
                raise
            advice = "write the file again" if self.delimiter is None else _advice(error)
            raise _fault(self.name, f"{advice} ({_brief(error)})") from error

    def _no_rows(self, columns: Sequence[str]) -> pa.Table:
        return pa.table({name: pa.array([], pa.string()) for name in columns})

    def _check_quotes(self, table: pa.Table) -> None:
        if self._has_open_quote(table):
            raise _fault(self.name, "close the quote that the last row leaves open")

    def _length_fault(self, error: Exception, columns: Sequence[str]) -> Exception:
        """Return the fault of rows with too few or too many values, or else the error."""
        if _WRONG_LENGTH.search(str(error)) is None:
            return error
        # With several threads, Arrow does not number rows, and a handler of invalid rows may abort
        # the process when it ends. So only a second pass, by one thread, has a handler.
        rows = _InvalidRows()
        with (
            self._stream() as stream,
            arrow_csv.open_csv(stream, **self._csv_options(columns[:1], rows)) as reader,
        ):
            for _ in reader:
                pass
        assert rows.first is not None
        fault = Fault(
            file=self.name,
            row=rows.first.number - 1,
            value=rows.first.text,
            advice=f"write {rows.first.expected_columns} values as in the header, not "
            f"{rows.first.actual_columns}; put values that contain {self.delimiter!r} in quotes",
            count=rows.count,
        )
        return TableFaults([fault])

    def _csv_options(
        self, columns: Sequence[str], rows: "_InvalidRows | None" = None
    ) -> dict[str, Any]:
        """Return how the file is read; rows of another length are added to `rows`, if given."""
        return {
            "read_options": arrow_csv.ReadOptions(
                use_threads=rows is None,
                block_size=_BLOCK_BYTES,
                column_names=list(self.column_names),
                skip_rows=self.blank_lines,
                skip_rows_after_names=1,
            ),
            "parse_options": arrow_csv.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=True,
                invalid_row_handler=None if rows is None else rows.add,
            ),
            "convert_options": arrow_csv.ConvertOptions(
                include_columns=list(columns),
                column_types=dict.fromkeys(columns, pa.string()),
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
                null_values=[""],
            ),
        }

    def _stream(self) -> Any:
        """Return the unpacked content of a CSV file."""
        if self.compressed:
            return open_gzip(self.path)
        check_file(self.path)
        return pa.input_stream(str(self.path), None)  # reads without Python's lock

    def _has_open_quote(self, table: pa.Table) -> bool:
        """Return whether the last value holds lines that an unclosed quote has swallowed."""
        last = table.slice(max(table.num_rows - 1, 0)).to_pylist()
        if not any("\n" in (text or "") for row in last for text in row.values()):
            return False
        quotes = 0
        with self._stream() as stream:
            while block := stream.read(_BLOCK_BYTES):
                quotes += block.count(b'"')
        return quotes % 2 == 1


def open_table(path: Path, name: str | None = None) -> TableFile:
    r"""Return the table in a CSV or Parquet file; only its beginning is read.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "people.txt").write_text("id\tage\n1\t31\n")
    ...     open_table(Path(folder, "people.txt")).column_names
    ('id', 'age')

    Args:
        path: The file; a CSV file may be compressed by gzip, and its delimiter may be a comma, a
            semicolon, a tab or a vertical bar.
        name: Name of the file in faults; by default that of the path.

    Raises:
        TableFaults: the file cannot be read, is neither CSV nor Parquet, or has no header of
            distinct names.
    """
    name = path.name if name is None else name
    try:
        with open_file(path) as file:
            signature = file.read(4)
        if signature == _PARQUET:
            return TableFile(
                path=path,
                name=name,
                column_names=_checked_names(parquet.read_schema(path).names, name),
                delimiter=None,
            )
        compressed = signature.startswith(_GZIP)
        with open_gzip(path) if compressed else open_file(path) as file:
            sample = file.read(SAMPLE_BYTES)
    except (OSError, EOFError, zlib.error, FileError, pa.ArrowException) as error:
        raise _fault(name, f"name a readable CSV or Parquet file ({_brief(error)})") from error
    complete = len(sample) < SAMPLE_BYTES
    text = decoded_sample(sample, complete, name)
    header = csv_header(text, complete)
    if header is None and text.strip():
        raise _fault(name, f"write a header of less than {SAMPLE_BYTES:,} bytes")
    if header is None:
        raise _fault(name, "the file is empty: write a line of column names and a line per row")
    return TableFile(
        path=path,
        name=name,
        column_names=_checked_names(header.names, name),
        delimiter=header.delimiter,
        compressed=compressed,
        blank_lines=len(text[: len(text) - len(text.lstrip("\r\n"))].splitlines()),
        is_empty=header.num_rows == 0 and complete,
    )


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the columns of a Parquet file; by default all of them.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     parquet.write_table(pa.table({"a": [1], "b": [2]}), Path(folder, "x.parquet"))
    ...     read_parquet(Path(folder, "x.parquet"), ["b"]).to_pydict()
    {'b': [2]}
    """
    # `parquet.read_table` would make columns out of folder names such as "year=2020".
    check_file(path)
    with parquet.ParquetFile(path, page_checksum_verification=True) as opened:
        table = opened.read(None if columns is None else list(columns))
    # The name of a column also selects those that begin with it and a dot.
    return table if columns is None else table.select(list(columns))


def _parquet_batches(path: Path, columns: Sequence[str]) -> Iterator[pa.Table]:
    check_file(path)
    with parquet.ParquetFile(path) as opened:
        kinds = [opened.schema_arrow.field(name).type for name in columns]
        if any(map(_may_be_text, kinds)):  # all rows decide whether these are text
            yield plain(opened.read(list(columns)).select(list(columns)))
            return
        for batch in opened.iter_batches(_BATCH_ROWS, columns=list(columns)):
            yield plain(pa.Table.from_batches([batch]).select(list(columns)))


def _may_be_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def repeated_names(names: Sequence[str]) -> list[str]:
    """Return the names that occur more than once, each once.

    >>> repeated_names(["a", "b", "a"])
    ['a']
    """
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return [name for name, count in counts.items() if count > 1]


def plain(table: pa.Table) -> pa.Table:
    """Return the table without types that only save space: dictionaries, views, and binary text.

    >>> plain(pa.table({"a": pa.array(["x", "x"]).dictionary_encode()}))["a"].type
    DataType(string)
    """
    columns = [_plain_column(column) for column in table.columns]
    return pa.table(columns, names=table.column_names) if columns else table


def _plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_dictionary(kind):
        values = pa.large_string() if pa.types.is_string_view(kind.value_type) else kind.value_type
        chunks = [chunk.dictionary.cast(values).take(chunk.indices) for chunk in column.chunks]
        return _plain_column(pa.chunked_array(chunks, values))
    if pa.types.is_string_view(kind):
        return column.cast(pa.large_string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        try:
            return column.cast(pa.large_string())
        except pa.ArrowInvalid:  # bytes that are no text
            return column
    return column


class _InvalidRows:
    """Takes the rows whose number of values differs from that of the header."""

    def __init__(self) -> None:
        self.first: Any = None
        self.count = 0

    def add(self, row: Any) -> str:
        self.first = self.first or row
        self.count += 1
        return "skip"


def _checked_names(names: Sequence[str], file: str) -> tuple[str, ...]:
    named = [name if name.strip() else f"{UNNAMED}{place}" for place, name in enumerate(names)]
    faults = [
        Fault(file=file, column=name, advice="two columns have this name: rename one of them")
        for name in repeated_names(named)
    ]
    faults += [
        Fault(file=file, column=repr(name), advice="write the name without a NUL character")
        for name in named
        if "\0" in name
    ]
    if faults:
        raise TableFaults(faults)
    return tuple(named)


def _fault(file: str, advice: str) -> TableFaults:
    return TableFaults([Fault(file=file, advice=advice)])


def _advice(error: Exception) -> str:
    return "save the file as UTF-8" if "UTF8" in str(error) else _FIX_CSV


def _brief(error: Exception) -> str:
    """Return the reason of an operating system's error, or the first line of another message."""
    strerror = getattr(error, "strerror", None)
    return str(strerror or error).partition("\n")[0]
