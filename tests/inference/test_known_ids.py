"""A lookup of the ids in tables gives the result, faults and notes of a list of all ids."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.column_roles import ColumnNames
from gpn_scale.data.contract import DataContract
from gpn_scale.data.faults import TableFaults
from gpn_scale.data.table_inputs import input_table
from gpn_scale.inference.known_ids import all_ids, looked_up_ids
from gpn_scale.inference.new_tables import read_looked_up_tables, read_new_tables

NAMES = ["a", "b", "7", "C", "1.0", "d e"]
GRAPHS = [
    build_graph(
        [0, 1, 2],
        [1, 2, 3],
        num_nodes=6,
        features=np.ones((6, 1)),
        feature_names=["age"],
        edge_weight=weights,
        node_names=NAMES,
        directed=directed,
    )
    for weights in (None, [1.0, 2.0, 3.0])
    for directed in (False, True)
]


class Dictionary:
    """A lookup in a dictionary of all ids."""

    def __init__(self, names):
        self.place = {name: place for place, name in enumerate(names)}

    def positions(self, ids):
        return np.array([self.place.get(text, -1) for text in ids], np.int64)


def outcome(read):
    """What reading returns or reports."""
    try:
        new = read()
    except TableFaults as error:
        return error.faults, error.arguments
    weights = new.edge_weights
    return (
        new.ids.tolist(),
        new.features.tolist(),
        [ids.tolist() for ids in new.neighbours],
        None if weights is None else [each.tolist() for each in weights],
        new.notes,
    )


IDS = st.sampled_from([*NAMES, "x", "y", "7.0", "A", " a", "B ", "z", "", None])
TABLES = st.lists(st.tuples(IDS, IDS, st.sampled_from([1, 2.5, "3", 0, None])), max_size=6)


@given(
    graph=st.sampled_from(GRAPHS),
    new=st.lists(st.tuples(IDS, st.sampled_from([1, "2", "old", None])), min_size=1, max_size=3),
    rows=TABLES,
    has_note=st.booleans(),
)
def test_both_readers_agree(graph, new, rows, has_note):
    def texts(values):
        return pa.array([None if value is None else str(value) for value in values], pa.string())

    nodes = pa.table({"id": texts(i for i, _ in new), "age": texts(age for _, age in new)})
    columns = {name: texts(row[place] for row in rows) for place, name in enumerate("stw")}
    edges = {"source": columns["s"], "target": columns["t"], "weight": columns["w"]}
    if has_note:
        edges["note"] = texts(row[0] for row in reversed(rows))
    table, contract = pa.table(edges), DataContract.of(graph)
    lookup = Dictionary(NAMES)
    expected = outcome(lambda: read_new_tables(nodes, table, graph, contract))
    got = outcome(lambda: read_looked_up_tables(nodes, table, graph, contract, lookup))
    assert got == expected


def test_most_ids_in_another_case_or_with_blanks_are_named_as_the_reason():
    edges = {"source": ["x", "x", "x"], "target": ["A", "B ", " c"]}
    nodes, contract = {"id": ["x"], "age": [1]}, DataContract.of(GRAPHS[0])
    lookup = Dictionary(NAMES)
    with pytest.raises(TableFaults) as error:
        read_looked_up_tables(nodes, edges, GRAPHS[0], contract, lookup)
    assert "differ in blanks, or in upper and lower case" in error.value.faults[0].advice


def test_tables_that_cannot_be_read_are_reported_once(tmp_path):
    missing = tmp_path / "nodes.csv"
    with pytest.raises(TableFaults) as error:
        read_looked_up_tables(
            missing, None, GRAPHS[0], DataContract.of(GRAPHS[0]), Dictionary(NAMES)
        )
    assert [fault.file for fault in error.value.faults] == ["nodes.csv"]


def test_all_ids_are_names_or_positions():
    named = all_ids(GRAPHS[0], None, None, ColumnNames())
    assert named.texts.to_pylist() == NAMES
    plain = all_ids(build_graph([0], [1]), None, None, ColumnNames())
    assert plain.texts.to_pylist() == ["0", "1"]
    assert plain.positions.tolist() == [0, 1]


def test_only_the_column_of_ids_of_the_nodes_is_looked_up():
    nodes = input_table({"id": ["x"], "age": ["a"]}, "nodes")
    known = looked_up_ids(Dictionary(NAMES), nodes, None, ColumnNames())
    assert known.texts.to_pylist() == []
