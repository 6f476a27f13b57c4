"""Nodes of an earlier graph keep their places when later tables are imported."""

import pytest

from gpn_scale.data.column_roles import ColumnNames
from gpn_scale.data.faults import TableFaults
from gpn_scale.data.import_rules import ImportRules
from gpn_scale.data.import_tables import import_tables
from tests.data.tables import NAMES, NODES, by_name
from tests.data.test_import_tables import imported

LATER = {
    "ref": ["new", "f", "b", "a"],
    "verdict": ["ok", "bad", "bad", "ok"],
    "age": [50, 35, 29, 31],
    "country": ["DE", "FR", "FR", "DE"],
}


def test_the_nodes_of_an_earlier_graph_keep_their_places():
    edges = {"from": ["new", "b", "d"], "to": ["a", "f", "zoe"]}
    names, rules = ColumnNames(**NAMES), ImportRules(unknown_ids="add")
    graph, facts, _ = import_tables(
        LATER, edges, names=names, rules=rules, earlier=imported().graph
    )
    assert graph.node_names.tolist() == [*NODES["ref"], "new", "zoe"]
    assert set(by_name(graph)["edges"]) == {
        ("new", "a"), ("a", "new"), ("b", "f"), ("f", "b"), ("d", "zoe"), ("zoe", "d"),
    }  # fmt: skip
    assert (facts.nodes_listed, facts.nodes_added, facts.nodes_gone) == (4, 2, 2)
    assert facts.missing == {"age": 2, "country": 2}
    assert facts.notes[-1].startswith("Nodes that are gone keep their places, so that a store")
    assert graph.out_degree[[2, 4]].tolist() == [0, 0]
    assert graph.labels.tolist() == [1, 0, -1, -1, -1, 0, 1, -1]
    ages = [31, 29, None, None, None, 35, 50, None]
    assert graph.raw_columns.table()["age"].to_pylist() == ages
    alone = imported(LATER, edges, unknown_ids="add").graph
    first, second = by_name(graph), by_name(alone)
    assert first["edges"] == second["edges"]
    assert {name: first["features"][name] for name in second["features"]} == second["features"]


def test_nodes_that_are_gone_have_missing_values_which_may_be_refused():
    complete = {name: LATER[name] for name in ("ref", "verdict", "age")}
    edges = {"from": ["new"], "to": ["a"]}
    names, rules = ColumnNames(**NAMES), ImportRules(missing="refuse")
    with pytest.raises(TableFaults, match="the earlier graph has this node, which") as error:
        import_tables(complete, edges, names=names, rules=rules, earlier=imported().graph)
    assert [(fault.column, fault.value, fault.count) for fault in error.value.faults] == [
        ("ref", "c", 3)
    ]
    assert error.value.arguments == ("missing", "order")
