"""Writers of tables as Parquet, CSV or JSON lines, chosen by the suffix of the file."""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from gpn_scale.block_checksums import text_checksum
from gpn_scale.errors import ConfigError, FileError
from gpn_scale.files import replacing
from gpn_scale.reading import check_file, parse_json

SUFFIXES = (".parquet", ".csv", ".jsonl")
"""Suffixes of tables."""
_FACTS, _LAYOUT = b"gpn_scale", "gpn_scale_layout"


class TableWriter(Protocol):
    """Writes the rows of a table, several at a time.

    >>> hasattr(TableWriter, "write")
    True
    """

    def write(self, table: pa.Table) -> None:
        """Add rows; all calls have the same columns."""


def check_suffix(path: Path) -> None:
    """Refuse a path whose suffix does not name a format.

    >>> check_suffix(Path("x.csv"))

    Raises:
        ConfigError: the suffix is none of `SUFFIXES`.
    """
    if path.suffix not in SUFFIXES:
        raise ConfigError(
            f"out is {str(path)!r}, expected a file name that ends in {', '.join(SUFFIXES[:-1])} "
            f"or {SUFFIXES[-1]}, to choose the format",
            arguments=("out",),
        )


@contextmanager
def table_writer(path: Path, facts: Mapping[str, str] | None = None) -> Iterator[TableWriter]:
    """Open a table for writing; the file appears when the block ends without an error.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with table_writer(Path(folder, "x.csv")) as writer:
    ...         writer.write(pa.table({"node": [0, 1], "near": [[5, 6], [7, 8]]}))
    ...     print(Path(folder, "x.csv").read_text(), end="")
    "node","near"
    0,"5 6"
    1,"7 8"

    Args:
        path: File whose suffix is one of `SUFFIXES`; in CSV, lists become texts, and texts that
            would be formulas get an apostrophe in front (`without_formulas`).
        facts: Facts about the table that Parquet stores (`table_facts`); other formats drop them.

    Raises:
        ConfigError: the suffix does not name a format.
    """
    check_suffix(path)
    kinds: dict[str, type[_ParquetWriter] | type[_CSVWriter] | type[_JSONWriter]] = {
        ".parquet": _ParquetWriter,
        ".csv": _CSVWriter,
        ".jsonl": _JSONWriter,
    }
    with replacing(path) as file:
        writer = kinds[path.suffix](file, facts or {})
        try:
            yield writer
        finally:
            writer.close()


def table_facts(schema: pa.Schema) -> dict[str, str]:
    """Return the facts that a Parquet file stores about its table, or {}.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with table_writer(Path(folder, "x.parquet"), {"dataset": "mine"}) as writer:
    ...         writer.write(pa.table({"node": [0]}))
    ...     table_facts(pa.parquet.read_schema(Path(folder, "x.parquet")))
    {'dataset': 'mine'}
    """
    try:
        facts = parse_json(
            (schema.metadata or {}).get(_FACTS, b"{}"), "the description of the table"
        )
    except ValueError:  # what another program has written under this name
        return {}
    is_own = isinstance(facts, dict) and all(isinstance(each, str) for each in facts.values())
    return facts if is_own else {}


def check_layout(path: Path) -> None:
    """Refuse a Parquet file whose description of its columns is damaged.

    Pages of columns have their own checksums. Files of other programs have neither.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with table_writer(Path(folder, "x.parquet")) as writer:
    ...         writer.write(pa.table({"node": [0]}))
    ...     check_layout(Path(folder, "x.parquet"))

    Raises:
        FileError: the names, types or number of rows differ from those that were written.
        OSError: the file cannot be read.
    """
    check_file(path)
    with pa.parquet.ParquetFile(path) as file:
        stored = (file.metadata.metadata or {}).get(_LAYOUT.encode())
        actual = _layout_checksum(file.schema_arrow, file.metadata.num_rows)
    if stored is not None and stored.decode(errors="replace") != actual:
        raise FileError(f"{path} is damaged: its columns differ from those that were written")


def _layout_checksum(schema: pa.Schema, rows: int) -> str:
    columns = [[field.name, str(field.type)] for field in schema]
    return text_checksum(json.dumps([columns, rows]))


class _ParquetWriter:
    def __init__(self, file: BinaryIO, facts: Mapping[str, str]) -> None:
        self._file, self._writer, self._facts = file, cast(Any, None), facts

    def write(self, table: pa.Table) -> None:
        if self._facts:
            own = {_FACTS: json.dumps(dict(self._facts)).encode()}
            table = table.replace_schema_metadata((table.schema.metadata or {}) | own)
        if self._writer is None:
            self._schema, self._rows = table.schema, 0
            self._writer = pa.parquet.ParquetWriter(
                self._file, table.schema, write_page_checksum=True
            )
        self._writer.write_table(table)
        self._rows += table.num_rows

    def close(self) -> None:
        if self._writer is not None:
            layout = {_LAYOUT: _layout_checksum(self._schema, self._rows)}
            self._writer.add_key_value_metadata(layout)
            self._writer.close()


class _CSVWriter:
    def __init__(self, file: BinaryIO, _: Mapping[str, str]) -> None:
        self._file, self._writer = file, cast(Any, None)

    def write(self, table: pa.Table) -> None:
        flat = pa.table({name: _flat(table[name]) for name in table.column_names})
        if self._writer is None:
            self._writer = pa.csv.CSVWriter(self._file, flat.schema)
        self._writer.write_table(flat)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class _JSONWriter:
    def __init__(self, file: BinaryIO, _: Mapping[str, str]) -> None:
        self._file = file

    def write(self, table: pa.Table) -> None:
        for row in table.to_pylist():
            values = {name: _finite(value) for name, value in row.items()}
            self._file.write(f"{json.dumps(values, ensure_ascii=False)}\n".encode())

    def close(self) -> None:
        """Do nothing: all rows are written."""


def _finite(value: Any) -> Any:
    """Return None for numbers that JSON does not have."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def without_formulas(column: Any) -> Any:
    """Return a column of texts that a spreadsheet does not read as formulas.

    Texts that begin with =, +, -, @, a tab or a line break get an apostrophe in front, which
    spreadsheets do not show; plain numbers and all other texts stay as they are.

    >>> without_formulas(pa.array(["=1+1", "a=b", "-7", "-7+1", None])).to_pylist()
    ["'=1+1", 'a=b', '-7', "'-7+1", None]
    """
    is_number = pc.match_substring_regex(column, pattern=r"\A[+-]?[0-9]+(\.[0-9]+)?\z")
    safe = pc.replace_substring_regex(column, pattern=r"\A([=+\-@\t\r\n])", replacement=r"'\1")
    return pc.if_else(is_number, column, safe)


def with_formulas(column: Any) -> Any:
    """Undo `without_formulas`: remove the apostrophes in front of formulas.

    A text that had such an apostrophe originally loses it as well.

    >>> texts = pa.array(["=1+1", "a=b", "-7", "'quoted'"])
    >>> with_formulas(without_formulas(texts)).to_pylist()
    ['=1+1', 'a=b', '-7', "'quoted'"]
    """
    return pc.replace_substring_regex(column, pattern=r"\A'([=+\-@\t\r\n])", replacement=r"\1")


def _flat(column: Any) -> Any:
    """Return a column that CSV can hold: lists and dictionaries become texts."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_list(column.type):
        is_text = pa.types.is_string(column.type.value_type)
        texts = [
            None if row is None else " ".join(str(value) for value in row)
            for row in column.to_pylist()
        ]
        column = pa.array(texts, pa.string())
        return without_formulas(column) if is_text else column
    return without_formulas(column) if pa.types.is_string(column.type) else column
