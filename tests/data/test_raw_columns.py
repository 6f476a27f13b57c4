import pickle

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from gpn_scale.data.raw_columns import RawColumns
from gpn_scale.errors import GraphError
from tests.data.raw_tables import MIXED, raw_tables


def test_columns_in_memory_are_the_table():
    columns = RawColumns(MIXED)
    assert columns.table() is MIXED
    assert columns.names == tuple(MIXED.column_names)
    assert columns.num_rows == MIXED.num_rows


@settings(deadline=None)  # it waits for the disk
@given(table=raw_tables())
def test_columns_come_back_from_their_file(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("raw") / "raw.parquet"
    RawColumns(table).write(path)
    columns = RawColumns(path)
    assert columns.names == tuple(table.column_names)
    assert columns.num_rows == table.num_rows
    again = columns.table()
    assert again.schema.equals(table.schema)
    assert all(str(again[name]) == str(table[name]) for name in table.column_names)
    assert columns.content_hash() == RawColumns(again).content_hash()


@pytest.mark.parametrize(
    "other",
    [
        MIXED.rename_columns(["sum", *MIXED.column_names[1:]]),
        MIXED.slice(1),
        MIXED.set_column(0, "amount", pa.array(["1.5", "", "4", "-2e1", "NA", "7", "0.25", "4"])),
        MIXED.set_column(0, "amount", MIXED["amount"].cast(pa.large_string())),
    ],
    ids=["name", "rows", "value", "type"],
)
def test_the_hash_tells_tables_apart(other):
    assert RawColumns(other).content_hash() != RawColumns(MIXED).content_hash()


@settings(deadline=None)
@given(table=raw_tables(), ends=st.tuples(st.integers(0, 30), st.integers(0, 30)))
def test_some_rows_are_those_of_the_table(table, ends, tmp_path_factory):
    start, stop = sorted(min(end, table.num_rows) for end in ends)
    path = tmp_path_factory.mktemp("raw") / "raw.parquet"
    parquet.write_table(table, path, row_group_size=2)
    expected = table.slice(start, stop - start)
    for columns in (RawColumns(table), RawColumns(path)):
        rows = columns.rows(start, stop)
        assert rows.num_rows == stop - start
        assert all(
            str(rows[n].to_pylist()) == str(expected[n].to_pylist()) for n in rows.schema.names
        )


def test_a_file_that_was_replaced_is_read_as_it_was_opened(tmp_path):
    path = tmp_path / "raw.parquet"
    RawColumns(MIXED).write(path)
    columns = RawColumns(path)
    RawColumns(MIXED.slice(1)).write(path)
    assert columns.table().equals(MIXED)
    assert columns.rows(0, 1).num_rows == 1
    path.unlink()
    assert columns.table().equals(MIXED)


def test_columns_in_a_file_can_be_sent_to_another_process(tmp_path):
    path = tmp_path / "raw.parquet"
    RawColumns(MIXED).write(path)
    for columns in (RawColumns(path), RawColumns(MIXED)):
        assert pickle.loads(pickle.dumps(columns)).table().equals(MIXED)


def test_a_missing_or_damaged_file_is_refused(tmp_path):
    with pytest.raises(
        GraphError, match=r"raw.parquet is missing or damaged .*: import the tables"
    ):
        RawColumns(tmp_path / "raw.parquet")
    RawColumns(MIXED).write(tmp_path / "raw.parquet")
    columns = RawColumns(tmp_path / "raw.parquet")
    (tmp_path / "raw.parquet").write_bytes(b"PAR1 and nothing else")
    assert columns.num_rows == MIXED.num_rows
    with pytest.raises(GraphError, match="is missing or damaged"):
        columns.table()
