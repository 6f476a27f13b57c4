"""The table of nodes is read as a whole, and grows by nodes that only edges name."""

import pyarrow as pa
import pytest

from gpn_scale.data.column_roles import ColumnRoles
from gpn_scale.data.fault_collector import FaultCollector
from gpn_scale.data.faults import TableFaults
from gpn_scale.data.node_tables import read_nodes
from gpn_scale.data.table_inputs import input_table

NODES = {"ref": [1, 2], "verdict": ["x", "y"], "part": ["train", "train"], "age": [31, None]}
ROLES = ColumnRoles(id="ref", label="verdict", split="part", features=("age",))


def read(nodes=NODES, roles=ROLES):
    faults = FaultCollector()
    table = read_nodes(input_table(nodes, "nodes"), roles, faults)
    return table, faults


def test_all_columns_are_read():
    table, faults = read()
    faults.report()
    assert table.ids.to_pylist() == ["1", "2"]
    assert table.labels.class_names.tolist() == ["x", "y"]
    assert table.split.train.tolist() == [0, 1]
    assert table.columns.to_pydict() == {"age": [31, None]}
    assert (table.file, table.num_nodes) == ("nodes", 2)


def test_added_nodes_have_neither_label_nor_values():
    table = read()[0].with_added(pa.array(["8", "9"]))
    assert table.ids.to_pylist() == ["1", "2", "8", "9"]
    assert table.labels.labels.tolist() == [0, 1, -1, -1]
    assert table.columns.to_pydict() == {"age": [31, None, None, None]}
    assert table.split.train.tolist() == [0, 1]


def test_nodes_without_columns_can_grow():
    table, _ = read({"ref": ["a"]}, ColumnRoles(id="ref"))
    grown = table.with_added(pa.array(["b"]))
    assert (grown.num_nodes, grown.columns.num_columns, grown.labels) == (2, 0, None)
    assert table.with_added(pa.array([], pa.string())) is table


def test_without_ids_the_rest_is_still_checked():
    table, faults = read(NODES | {"verdict": ["x", "x"]}, ColumnRoles(label="verdict"))
    assert table is None
    with pytest.raises(TableFaults, match="all labels are of one class"):
        faults.report()


def test_without_any_column_there_is_nothing_to_read():
    table, faults = read(roles=ColumnRoles())
    assert table is None
    faults.report()


def test_an_empty_table_is_a_fault():
    _, faults = read({"ref": [], "verdict": []}, ColumnRoles(id="ref", label="verdict"))
    with pytest.raises(TableFaults, match="the table has no rows") as error:
        faults.report()
    assert len(error.value.faults) == 1
