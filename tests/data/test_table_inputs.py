"""Frames, tables, dictionaries and files become the same columns; other objects are refused."""

from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from gpn_scale.data.faults import TableFaults
from gpn_scale.data.table_inputs import input_table, table_blocks
from gpn_scale.errors import GraphError

COLUMNS = {"ref": ["a", None, "c"], "age": [1.5, None, 2.0], "size": [1, 2, 3]}


def read_all(table):
    opened = input_table(table, "nodes")
    return opened.read(opened.column_names)


def csv_file(folder):
    (folder / "x.csv").write_text("ref,age,size\na,1.5,1\n,,2\nc,2.0,3\n")
    return folder / "x.csv"


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_every_kind_of_table_has_the_same_columns(make):
    table = read_all(make(COLUMNS))
    assert table.to_pydict() == COLUMNS


@pytest.mark.parametrize("make", [str, lambda path: path])
def test_a_path_is_a_file(tmp_path, make):
    table = read_all(make(csv_file(tmp_path)))
    assert table.column_names == list(COLUMNS)
    assert table["ref"].to_pylist() == COLUMNS["ref"]


def test_types_of_pandas_are_understood():
    frame = pd.DataFrame(
        {
            "mixed": [1, "x", pd.NA],
            "category": pd.Categorical(["u", None, "u"]),
            "date": pd.to_datetime(["2020-01-01", None, "2021-01-01"]),
            "integer": pd.array([1, None, 3], dtype="Int64"),
            "boolean": [True, None, False],
            "large": [2**70, 1, float("nan")],
        }
    )
    assert read_all(frame).to_pydict() == {
        "mixed": ["1", "x", None],
        "category": ["u", None, "u"],
        "date": [datetime(2020, 1, 1), None, datetime(2021, 1, 1)],
        "integer": [1, None, 3],
        "boolean": [True, None, False],
        "large": [str(2**70), "1", None],
    }


def test_categories_of_polars_become_text():
    frame = pl.DataFrame({"a": pl.Series(["u", "v", None, "u"], dtype=pl.Categorical)})
    assert read_all(frame)["a"].to_pylist() == ["u", "v", None, "u"]


def test_a_named_index_is_a_column_and_an_unnamed_one_is_not():
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index([5, 6], name="id"))
    assert read_all(frame).to_pydict() == {"id": [5, 6], "a": [1, 2]}
    assert read_all(frame.rename_axis(None)).to_pydict() == {"a": [1, 2]}


def test_names_that_are_numbers_become_text():
    assert read_all(pd.DataFrame([[1, 2]])).column_names == ["0", "1"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "nodes +all +a +two columns have this name"),
        ({"a": [1, 2], "b": [1]}, "give all columns the same length, not 1 to 2"),
        ({"a": 5}, r"one-dimensional array of numbers or texts \(.*int.*\)"),
        ({"a": "abc"}, "got str of 0 dimensions"),
        ({"a": np.zeros((2, 2))}, "got ndarray of 2 dimensions"),
        ({"a": ["\ud800"]}, "surrogates not allowed"),
        ({"a": [1, (2, 3)]}, "one-dimensional array"),
        ({"a\0": [1]}, "write the name without a NUL character"),
    ],
)
def test_columns_that_fit_no_table_are_faults(table, message):
    with pytest.raises(TableFaults, match=message):
        input_table(table, "nodes")


@pytest.mark.parametrize("table", [[1, 2], 7, None, pd.Series([1]), pl.Series([1]), np.eye(2)])
def test_other_types_are_refused_with_the_names_of_converters(table):
    message = r"edges is of type .*, expected the path of a CSV .* build_graph, .* graph_from_pyg"
    with pytest.raises(GraphError, match=message) as error:
        input_table(table, "edges")
    assert error.value.arguments == ("edges",)


@pytest.mark.parametrize("block_rows", [1, 2, 3, 100])
@pytest.mark.parametrize("make", [dict, csv_file])
def test_blocks_have_all_rows_in_their_order(tmp_path, make, block_rows):
    table = input_table(COLUMNS if make is dict else csv_file(tmp_path), "nodes")
    blocks = list(table_blocks(table, ["size", "ref"], block_rows=block_rows))
    assert pa.concat_tables(blocks).equals(table.read(["size", "ref"]))
    assert {block.num_rows for block in blocks[:-1]} <= {block_rows}
    small = list(table_blocks(table, ["size"], block_bytes=1))
    assert pa.concat_tables(small).equals(table.read(["size"]))
