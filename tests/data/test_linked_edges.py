"""Edges join numbered nodes by each rule for unknown ids."""

import pytest

from gpn_scale.data.column_roles import ColumnRoles
from gpn_scale.data.fault_collector import FaultCollector
from gpn_scale.data.faults import TableFaults
from gpn_scale.data.linked_edges import read_edges
from gpn_scale.data.node_tables import read_nodes
from gpn_scale.data.table_inputs import input_table

EDGES = {"from": ["a", "z", "b", "c"], "to": ["b", "a", "y", "z"], "sum": [1.0, 2.0, 3.0, 4.0]}
ROLES = ColumnRoles(id="id", source="from", target="to", weight="sum")


def read(rule, edges=EDGES, nodes=("a", "b", "c"), roles=ROLES):
    faults = FaultCollector()
    listed = nodes and read_nodes(input_table({"id": list(nodes)}, "nodes"), roles, faults)
    return read_edges(input_table(edges, "edges"), roles, listed or None, rule, faults), faults


def test_added_ids_are_sorted_and_follow_the_listed_ones():
    edges, faults = read("add")
    faults.report()
    assert edges.added.to_pylist() == ["y", "z"]
    assert edges.source.tolist() == [0, 4, 1, 2]
    assert edges.target.tolist() == [1, 0, 3, 4]
    assert edges.weight.tolist() == [1, 2, 3, 4]


def test_dropped_edges_take_their_weights_along():
    edges, faults = read("drop")
    faults.report()
    assert (edges.source.tolist(), edges.target.tolist()) == ([0], [1])
    assert (edges.weight.tolist(), edges.num_listed, edges.added) == ([1], 4, None)


def test_unknown_ids_are_faults():
    _, faults = read("refuse")
    with pytest.raises(TableFaults) as error:
        faults.report()
    assert [(fault.column, fault.value) for fault in error.value.faults] == [
        ("from", "z"), ("to", "y"), ("to", "z"),
    ]  # fmt: skip


def test_most_ids_unknown_is_one_fault_per_column_with_a_reason():
    edges = {"from": ["1", "2"], "to": ["3", "4"], "payer": ["a", "b"]}
    _, faults = read("refuse", edges, roles=ColumnRoles(id="id", source="from", target="to"))
    with pytest.raises(TableFaults, match="'payer' are: were columns exchanged") as error:
        faults.report()
    assert len(error.value.faults) == 2
    assert set(error.value.arguments) == {"unknown_ids", "id", "source", "target"}


def test_without_nodes_only_weights_are_checked():
    edges, faults = read("refuse", EDGES | {"sum": [1.0, -2.0, 3.0, 4.0]}, nodes=())
    assert edges is None
    with pytest.raises(TableFaults, match=r"sum +'-2'") as error:
        faults.report()
    assert len(error.value.faults) == 1


def test_without_columns_there_is_nothing_to_read():
    edges, faults = read("refuse", roles=ColumnRoles(id="id"))
    assert edges is None
    faults.report()
