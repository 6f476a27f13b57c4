"""Tables in files: CSV, whose values stay text, and Parquet, whose types stay as they are.

The format is recognised by the content of a file, so its name may be any. All that is wrong with a
file is reported as a `TableFaults`.
"""

import codecs
import csv
import io
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from gpn_scale.data.faults import Fault, TableFaults
from gpn_scale.errors import FileError
from gpn_scale.reading import check_file, open_file, open_gzip

UNNAMED = "Unnamed: "
"""Beginning of the name that a column without one gets; its position follows, as in pandas."""

_DELIMITERS = ",;\t|"
_SNIFFED_BYTES = 1 << 20
_SNIFFED_ROWS = 50
_BLOCK_BYTES = 1 << 23
_PARQUET, _GZIP, _ZIP = b"PAR1", b"\x1f\x8b", b"PK\x03\x04"
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WRONG_LENGTH = "CSV parse error: Expected"
_FIX_CSV = "write every row with as many values as the header, and close every quote"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    r"""A table on disk whose header was read and checked; `read` reads its rows.

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
    """Whether the header is all there is."""

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Return these columns: text from CSV, with null for an empty value; else plain types.

        Raises:
            TableFaults: rows have too few or too many values, text is not UTF-8, or the file is
                damaged.
        """
        if not columns:
            return pa.table({})
        try:
            if self.delimiter is None:
                return plain(read_parquet(self.path, columns))
            table = self._read_csv(columns)
            if self._has_open_quote(table):
                raise _fault(self.name, "close the quote that the last row leaves open")
            return table
        except (OSError, EOFError, zlib.error, ValueError, pa.ArrowException) as error:
            if isinstance(error, TableFaults):
                raise
            advice = "write the file again" if self.delimiter is None else _advice(error)
            raise _fault(self.name, f"{advice} ({_brief(error)})") from error

    def _read_csv(self, columns: Sequence[str]) -> pa.Table:
        types = {name: pa.string() for name in columns}
        if self.is_empty:
            return pa.table({name: pa.array([], kind) for name, kind in types.items()})
        try:
            return self._parsed(types)
        except pa.ArrowInvalid as error:
            if _WRONG_LENGTH not in str(error):
                raise
        # With several threads, Arrow does not number rows, and a handler of invalid rows may abort
        # the process when it ends. So only a second pass, by one thread, has a handler.
        rows = _InvalidRows()
        self._parsed(types, rows)
        assert rows.first is not None
        fault = Fault(
            file=self.name,
            row=rows.first.number - 1,
            value=rows.first.text,
            advice=f"write {rows.first.expected_columns} values as in the header, not "
            f"{rows.first.actual_columns}; put values that contain {self.delimiter!r} in quotes",
            count=rows.count,
        )
        raise TableFaults([fault])

    def _parsed(self, types: dict[str, pa.DataType], rows: "_InvalidRows | None" = None) -> Any:
        """Return the columns of `types`; rows of another length are added to `rows`, if given."""
        with self._stream() as stream:
            return arrow_csv.read_csv(
                stream,
                read_options=arrow_csv.ReadOptions(
                    use_threads=rows is None,
                    block_size=_BLOCK_BYTES,
                    column_names=list(self.column_names),
                    skip_rows=self.blank_lines,
                    skip_rows_after_names=1,
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=self.delimiter,
                    newlines_in_values=True,
                    invalid_row_handler=None if rows is None else rows.add,
                ),
                convert_options=arrow_csv.ConvertOptions(
                    include_columns=list(types),
                    column_types=types,
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=True,
                    null_values=[""],
                ),
            )

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
            sample = file.read(_SNIFFED_BYTES)
    except (OSError, EOFError, zlib.error, FileError, pa.ArrowException) as error:
        raise _fault(name, f"name a readable CSV or Parquet file ({_brief(error)})") from error
    complete = len(sample) < _SNIFFED_BYTES
    text = _decoded(sample, complete, name)
    header = _header_of(text, complete)
    if header is None and text.strip():
        raise _fault(name, f"write a header of less than {_SNIFFED_BYTES:,} bytes")
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


class _Header(NamedTuple):
    names: list[str]
    delimiter: str
    num_rows: int
    """Number of rows of the sample, at most `_SNIFFED_ROWS`."""


class _InvalidRows:
    """Takes the rows whose number of values differs from that of the header."""

    def __init__(self) -> None:
        self.first: Any = None
        self.count = 0

    def add(self, row: Any) -> str:
        self.first = self.first or row
        self.count += 1
        return "skip"


def _decoded(sample: bytes, complete: bool, name: str) -> str:
    if sample.startswith(_ZIP):
        raise _fault(name, "the file is an archive or an Excel workbook: save the table as CSV")
    if sample.startswith(_UTF_16):
        raise _fault(name, "the text is UTF-16: save the file as UTF-8")
    if b"\0" in sample:
        raise _fault(name, "the file is binary: expected a CSV or Parquet file")
    try:
        return codecs.getincrementaldecoder("utf-8-sig")().decode(sample, complete)
    except UnicodeDecodeError as error:
        value = sample[error.start : error.start + 1].hex()
        advice = f"byte 0x{value} is not UTF-8 text: save the file as UTF-8 CSV, or as Parquet"
        raise _fault(name, advice) from error


def _header_of(text: str, complete: bool) -> _Header | None:
    """Return the header by the delimiter that divides all rows alike into most values.

    Of several such delimiters, one that leaves quotes around whole values is preferred.
    """
    candidates = []
    for delimiter in _DELIMITERS:
        rows, quotes_fit = _first_rows(text, delimiter, complete)
        if rows:
            alike = len(rows[0]) > 1 and len({len(row) for row in rows}) == 1
            candidates.append((alike, quotes_fit, len(rows[0]), delimiter, rows))
    if not candidates:
        return None
    *_, delimiter, rows = max(candidates, key=lambda each: each[:3])
    return _Header(names=rows[0], delimiter=delimiter, num_rows=len(rows) - 1)


def _first_rows(text: str, delimiter: str, complete: bool) -> tuple[list[list[str]], bool]:
    """Return the first rows that are not empty, and whether quotes stand around whole values."""
    limit = csv.field_size_limit(_SNIFFED_BYTES)
    quotes_fit, rows = False, []
    try:
        for strict in (True, False):
            reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=strict)
            with suppress(csv.Error):
                rows = list(islice((row for row in reader if row), _SNIFFED_ROWS + 1))
                quotes_fit = strict
                break
    finally:
        csv.field_size_limit(limit)
    # The sample may end within its last row.
    return rows if complete or len(rows) > _SNIFFED_ROWS else rows[:-1], quotes_fit


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
