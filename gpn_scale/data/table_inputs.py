"""Tables from files, frames and dictionaries, behind one interface."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from gpn_scale.data.faults import Fault, TableFaults
from gpn_scale.data.table_files import TableFile, open_table, plain, repeated_names
from gpn_scale.errors import GraphError

TableLike: TypeAlias = Any
"""A path, a pandas or polars frame, a pyarrow table, or a dictionary of columns."""

BLOCK_ROWS = 1 << 22
"""Number of rows of a block."""
BLOCK_BYTES = 1 << 27
"""Largest size of a block in bytes; blocks of wide rows have fewer rows."""

_EXPECTED = (
    "the path of a CSV or Parquet file, a pandas or polars frame, a pyarrow table or a dictionary "
    "of columns; arrays become a graph by build_graph, PyG's Data by graph_from_pyg"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameTable:
    """A table in memory.

    >>> FrameTable(name="nodes", table=pa.table({"a": [1], "b": [2]})).column_names
    ('a', 'b')
    """

    name: str
    """Name of the table in faults."""
    table: pa.Table

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.table.column_names)

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Return these columns."""
        return self.table.select(list(columns))

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the rows of these columns."""
        yield self.read(columns)


InputTable = TableFile | FrameTable


def table_blocks(
    table: InputTable,
    columns: Sequence[str],
    *,
    block_rows: int = BLOCK_ROWS,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[pa.Table]:
    """Yield the rows of some columns in blocks, so that a file is never in memory as a whole.

    >>> table = input_table({"id": [1, 2, 3]}, "nodes")
    >>> [block.to_pydict() for block in table_blocks(table, ["id"], block_rows=2)]
    [{'id': [1, 2]}, {'id': [3]}]

    Args:
        table: The opened table.
        columns: The columns.
        block_rows: Number of rows of a block, of which the last one may have fewer.
        block_bytes: Size from which a block ends earlier.

    Raises:
        TableFaults: a file is damaged, or its rows have different lengths.
    """
    parts: list[pa.Table] = []
    num_rows = num_bytes = 0
    for batch in table.batches(columns):
        rest = batch
        while rest.num_rows:
            part = rest.slice(0, block_rows - num_rows)
            rest = rest.slice(part.num_rows)
            parts.append(part)
            num_rows, num_bytes = num_rows + part.num_rows, num_bytes + part.nbytes
            if num_rows == block_rows or num_bytes >= block_bytes:
                yield pa.concat_tables(parts)
                parts, num_rows, num_bytes = [], 0, 0
    if parts:
        yield pa.concat_tables(parts)


def input_table(table: TableLike, argument: str) -> InputTable:
    """Return a table that can be read by column.

    >>> input_table({"id": [1, 2], "age": [31, None]}, "nodes").read(["age"]).to_pydict()
    {'age': [31, None]}

    Args:
        table: The table. Index levels of a pandas frame that have names become columns.
        argument: Name of the argument that holds the table, for faults and messages.

    Raises:
        TableFaults: a file or frame is not a table with distinct column names.
        GraphError: the object is of an unsupported type.
    """
    if isinstance(table, str | PathLike):
        return open_table(Path(table))
    if isinstance(table, pa.Table):
        return _framed(table.column_names, table.columns, argument)
    if _is_pandas(table):
        named = [level for level in table.index.names if level is not None]
        frame = table.reset_index(named) if named else table
        columns = [frame.iloc[:, place] for place in range(frame.shape[1])]
        return _framed(frame.columns, columns, argument)
    if isinstance(table, Mapping):
        return _framed(list(table), list(table.values()), argument)
    if (arrow := _from_stream(table)) is not None:
        return _framed(arrow.column_names, arrow.columns, argument)
    kind = f"{type(table).__module__}.{type(table).__qualname__}".removeprefix("builtins.")
    raise GraphError(f"{argument} is of type {kind}, expected {_EXPECTED}", arguments=(argument,))


def _is_pandas(table: Any) -> bool:
    kind = type(table)
    return kind.__name__ == "DataFrame" and kind.__module__.split(".")[0] == "pandas"


def _framed(names: Sequence[Any], columns: Sequence[Any], argument: str) -> FrameTable:
    texts = [str(name) for name in names]
    faults = [
        Fault(file=argument, column=name, advice="two columns have this name: rename one of them")
        for name in repeated_names(texts)
    ]
    faults += [
        Fault(file=argument, column=repr(name), advice="write the name without a NUL character")
        for name in texts
        if "\0" in name
    ]
    arrays = []
    for name, column in zip(texts, columns, strict=True):
        try:
            arrays.append(_arrow_column(column))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            reason = str(error).partition("\n")[0]
            advice = f"use a list or a one-dimensional array of numbers or texts ({reason})"
            faults.append(Fault(file=argument, column=name, advice=advice))
    lengths = {len(array) for array in arrays}
    if len(lengths) > 1:
        advice = f"give all columns the same length, not {min(lengths)} to {max(lengths)}"
        faults.append(Fault(file=argument, advice=advice))
    if faults:
        raise TableFaults(faults, arguments=(argument,))
    return FrameTable(name=argument, table=plain(pa.table(arrays, names=texts)))


def _from_stream(table: Any) -> pa.Table | None:
    """Return a frame of any library with Arrow's PyCapsule interface; None for other objects."""
    if not hasattr(table, "__arrow_c_stream__"):
        return None
    try:
        return pa.table(table)
    except pa.ArrowInvalid:  # a single column
        return None


def _arrow_column(column: Any) -> Any:
    """Return values as an Arrow column; a mixture of types becomes text, NaN becomes null."""
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    if isinstance(column, str | bytes) or getattr(column, "ndim", 1) != 1:
        raise TypeError(f"got {type(column).__name__} of {getattr(column, 'ndim', 0)} dimensions")
    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        values = list(column)
        if any(isinstance(value, Collection) and not isinstance(value, str) for value in values):
            raise
        return pa.array([None if _is_missing(each) else str(each) for each in values], pa.string())


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or pandas' NA, whose comparisons have no truth value."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True
