"""A table has all rows that were added, in memory or in a file without a name."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.growing_table import GrowingTable
from gpn_scale.errors import ConfigError

ROWS = st.lists(st.tuples(st.none() | st.integers(0, 99), st.none() | st.text(max_size=3)))
SCHEMA = pa.schema([("n", pa.int64()), ("t", pa.string())])


def table_of(rows):
    columns = [[row[0] for row in rows], [row[1] for row in rows]]
    return pa.table(columns, schema=SCHEMA)


@given(parts=st.lists(ROWS, min_size=1, max_size=5), memory_bytes=st.sampled_from([0, 30, 10_000]))
def test_all_rows_are_there(parts, memory_bytes):
    growing = GrowingTable(None, memory_bytes)
    for rows in parts:
        growing.append(table_of(rows))
    expected = pa.concat_tables([table_of(rows) for rows in parts])
    assert growing.table().equals(expected)
    assert growing.table().equals(expected)


def test_a_file_leaves_nothing_and_outlives_its_maker(tmp_path):
    growing = GrowingTable(tmp_path, memory_bytes=0)
    growing.append(table_of([(1, "a"), (None, "b")]))
    table = growing.table()
    del growing
    assert table.to_pydict() == {"n": [1, None], "t": ["a", "b"]}
    assert not list(tmp_path.iterdir())


def test_a_table_without_columns_stays_in_memory(tmp_path):
    growing = GrowingTable(tmp_path / "missing", memory_bytes=-1)
    growing.append(pa.table({}))
    assert growing.table().num_columns == 0


def test_a_directory_that_cannot_hold_it_is_refused(tmp_path):
    growing = GrowingTable(tmp_path / "missing", memory_bytes=0)
    with pytest.raises(ConfigError, match=r"scratch directory .*missing cannot hold"):
        growing.append(table_of([(1, "a")]))
