"""Reads tables of predictions from Parquet, CSV or JSON lines, as predictions are written."""

from pathlib import Path

import pyarrow as pa
import pyarrow.json
from pyarrow import parquet

from gpn_scale.data.faults import TableFaults
from gpn_scale.data.table_files import open_table, read_parquet
from gpn_scale.drift.scored_table import (
    ScoredTable,
    check_columns,
    needed_columns,
    num_classes_of,
)
from gpn_scale.errors import ConfigError, FileError
from gpn_scale.evaluation.prediction_table import MARK, Origin
from gpn_scale.evaluation.table_writers import SUFFIXES, check_layout, table_facts, with_formulas
from gpn_scale.reading import open_file

_FORMULA_COLUMNS = ("node_name", "predicted_class_name", "reason")
_JSON_BLOCK = 1 << 24
_JSON_TYPES = {"node": pa.int64(), "predicted_class": pa.int64(), "abstain": pa.bool_()}


def read_scored(path: Path, *, name: str | None = None) -> ScoredTable:
    r"""Return the predictions in a file whose suffix names its format.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "x.csv")
    ...     _ = path.write_text('node,predicted_class,aleatoric\n7,0,-0.9\n')
    ...     read_scored(path).ids.to_pylist()
    ['7']

    Args:
        path: A file `X.parquet`, `X.csv` or `X.jsonl`; only columns that a comparison needs are
            read.
        name: Name of the table in texts; the path by default.

    Raises:
        ConfigError: the file is missing, damaged, or not a table of predictions.
    """
    name = str(path) if name is None else name
    if not path.is_file():
        raise ConfigError(
            f"{path} is not a file, expected a run or a table of predictions",
            arguments=("compare",),
        )
    if path.suffix not in SUFFIXES:
        raise ConfigError(
            f"{path} ends in {path.suffix!r}, expected a table of predictions: a name that ends in "
            f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}",
            arguments=("compare",),
        )
    try:
        return _read(path, name)
    except TableFaults as error:
        raise _unreadable(path, f"what to do: {error.faults[0].advice}") from error
    except (OSError, FileError, pa.ArrowException) as error:
        raise _unreadable(path, str(error).partition("\n")[0]) from error


def _read(path: Path, name: str) -> ScoredTable:
    if path.suffix == ".parquet":
        check_layout(path)
        schema = parquet.read_schema(path)
        check_columns(schema.names, name)
        table = read_parquet(path, needed_columns(schema.names))
        names, origin = schema.names, Origin.from_facts(table_facts(schema))
    elif path.suffix == ".csv":
        opened = open_table(path)
        names, origin = list(opened.column_names), Origin()
        check_columns(names, name)
        table = opened.read(needed_columns(names))
        for place, column in enumerate(table.column_names):
            if column in _FORMULA_COLUMNS:
                table = table.set_column(place, column, with_formulas(table[column]))
    else:
        names, origin = _json_names(path), Origin()
        check_columns(names, name)
        table = _read_json(path, needed_columns(names))
    return ScoredTable.of(table, name=name, origin=origin, num_classes=num_classes_of(names))


def _json_names(path: Path) -> list[str]:
    """Return the columns of JSON lines, which every line has."""
    with open_file(path) as file:
        first = file.readline()
    if not first.strip():
        return []
    return list(_parsed(pa.BufferReader(first), None).column_names)


def _read_json(path: Path, names: list[str]) -> pa.Table:
    """Return columns with the types that they were written with, without guessing any type."""
    fields = []
    for name in names:
        is_number = name == "aleatoric" or name.startswith("p_")
        other = pa.bool_() if name.startswith(MARK) else pa.string()
        fields.append((name, _JSON_TYPES.get(name, pa.float64() if is_number else other)))
    with open_file(path) as file:
        return _parsed(file, pa.schema(fields))


def _parsed(source: object, schema: pa.Schema | None) -> pa.Table:
    return pa.json.read_json(
        source,
        read_options=pa.json.ReadOptions(block_size=_JSON_BLOCK),
        parse_options=pa.json.ParseOptions(
            explicit_schema=schema,
            unexpected_field_behavior="infer" if schema is None else "ignore",
        ),
    )


def _unreadable(path: Path, reason: str) -> ConfigError:
    return ConfigError(
        f"{path} cannot be read as a table of predictions ({reason}): predict again",
        arguments=("compare",),
    )
