"""Old nodes keep their places, new ones follow, and those that are gone leave theirs empty."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.column_roles import ColumnRoles
from gpn_scale.data.fault_collector import FaultCollector
from gpn_scale.data.node_places import earlier_ids, gone_ids, placed_after
from gpn_scale.data.node_tables import read_nodes
from gpn_scale.data.table_inputs import input_table
from gpn_scale.errors import GraphError

ROLES = ColumnRoles(id="ref", label="verdict", split="part", features=("age",))
IDS = st.lists(st.sampled_from("abcdefghij"), unique=True)


def read(ids):
    columns = {
        "ref": ids,
        "verdict": ["xy"[place % 2] for place in range(len(ids))],
        "part": ["train"] * len(ids),
        "age": list(range(len(ids))),
    }
    return read_nodes(input_table(columns, "nodes"), ROLES, FaultCollector())


@given(IDS, IDS.filter(lambda ids: len(ids) >= 2))
def test_every_node_is_placed_as_a_dictionary_says(earlier, listed):
    nodes, place, num_gone = placed_after(read(listed), pa.array(earlier, pa.string()))
    expected = [*earlier, *(name for name in listed if name not in earlier)]
    assert nodes.ids.to_pylist() == expected
    assert place.tolist() == [expected.index(name) for name in listed]
    row = {name: number for number, name in enumerate(listed)}
    assert nodes.columns["age"].to_pylist() == [row.get(name) for name in expected]
    labels = [row[name] % 2 if name in row else -1 for name in expected]
    assert nodes.labels.labels.tolist() == labels
    assert nodes.split.train.tolist() == sorted(expected.index(name) for name in listed)
    gone = [name for name in earlier if name not in listed]
    assert num_gone == len(gone)
    assert gone_ids(read(listed), pa.array(earlier, pa.string())).to_pylist() == gone


def test_nodes_without_columns_and_labels_are_placed():
    table = input_table({"ref": ["b", "c"]}, "nodes")
    nodes = read_nodes(table, ColumnRoles(id="ref"), FaultCollector())
    placed = placed_after(nodes, pa.array(["a", "b"]))
    assert (placed.nodes.num_nodes, placed.nodes.labels, placed.nodes.split) == (3, None, None)
    assert placed.nodes.columns.num_columns == 0


def test_earlier_nodes_need_names():
    with pytest.raises(GraphError, match="the nodes of graph 'graph' have no names") as error:
        earlier_ids(build_graph([0], [1]))
    assert error.value.arguments == ("like",)
