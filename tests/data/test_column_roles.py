"""Columns are found by name, and what is missing is asked for with the likely names."""

import pytest

from gpn_scale.data.column_roles import (
    ColumnNames,
    edge_roles,
    exchanged_tables,
    node_roles,
    unknown_columns,
)


def test_default_names_are_used_if_they_exist():
    roles, faults = node_roles(ColumnNames(), ["x", "split", "id", "label", "y"], file="n")
    assert faults == []
    assert (roles.id, roles.label, roles.split) == ("id", "label", "split")
    assert roles.features == ("x", "y")
    roles, faults = edge_roles(ColumnNames(), ["target", "note", "source"], file="e")
    assert faults == []
    assert (roles.source, roles.target, roles.weight) == ("source", "target", None)


def test_given_names_replace_the_defaults():
    names = ColumnNames(id="ref", label="verdict", weight="sum", source="a", target="b")
    roles, faults = node_roles(names, ["id", "ref", "label", "verdict"], file="n")
    assert (roles.id, roles.label, faults) == ("ref", "verdict", [])
    assert roles.features == ("id", "label")
    assert edge_roles(names, ["a", "b", "sum"], file="e")[0].weight == "sum"


def test_a_dropped_column_has_no_role():
    names = ColumnNames(label="verdict", weight="sum", drop=("verdict", "sum", "split", "note"))
    roles, faults = node_roles(names, ["id", "verdict", "split", "note", "age"], file="n")
    assert (roles.label, roles.split, roles.features, faults) == (None, None, ("age",), [])
    assert edge_roles(names, ["source", "target", "sum"], file="e")[0].weight is None


@pytest.mark.parametrize(
    ("names", "columns", "column", "advice"),
    [
        (ColumnNames(), ["Ref", "age"], "id",
         "name the column of ids of nodes (id), perhaps 'Ref'; the columns are 'Ref', 'age'"),
        (ColumnNames(), ["x", "account_no"], "id", "name the column of ids of nodes (id), perhaps "
         "'account_no'; the columns are 'x', 'account_no'"),
        (ColumnNames(), ["x"], "id", "name the column of ids of nodes (id); the columns are 'x'"),
        (ColumnNames(id="reff"), ["ref", "age"], "reff",
         "id names this column, which the table does not have; similar: 'ref'"),
        (ColumnNames(label="verdict"), ["id", "q"], "verdict",
         "label names this column, which the table does not have; the columns are: 'id', 'q'"),
        (ColumnNames(drop=("id",)), ["id"], "id", "the column holds ids of nodes: do not drop it"),
        (ColumnNames(label="id"), ["id", "age"], "id",
         "id and label name the same column: name two columns"),
        (ColumnNames(), ["Unnamed: 0", "id"], "Unnamed: 0",
         "the header has no name for this column: name it, or drop it by this name"),
    ],
)  # fmt: skip
def test_a_wrong_column_of_the_nodes_is_a_fault(names, columns, column, advice):
    _, faults = node_roles(names, columns, file="n.csv")
    assert [(fault.file, fault.column, fault.advice) for fault in faults] == [
        ("n.csv", column, advice)
    ]


def test_ends_of_other_names_are_suggested():
    _, faults = edge_roles(ColumnNames(), ["from", "to", "sum"], file="e.csv")
    assert [fault.advice.partition(";")[0] for fault in faults] == [
        "name the column of ids of the nodes where edges start (source), perhaps 'from'",
        "name the column of ids of the nodes where edges end (target), perhaps 'to'",
    ]


def test_long_lists_of_columns_are_shortened():
    _, faults = node_roles(ColumnNames(), [f"c{i}" for i in range(100)], file="n.csv")
    assert faults[0].advice.endswith("'c11' and 88 more")


def test_unknown_names_are_faults():
    faults = unknown_columns(["aeg", "size"], ["age", "size"], file="n", purpose="kinds")
    assert [(fault.column, fault.advice) for fault in faults] == [
        ("aeg", "kinds names this column, which the table does not have; similar: 'age'")
    ]


@pytest.mark.parametrize(
    ("nodes", "edges", "expected"),
    [
        (["a", "b"], ["id"], True),
        (["a", "b", "id"], ["id"], False),
        (["id"], ["a", "b"], False),
        (["a", "b"], ["a", "b", "id"], False),
        (["a"], ["id"], False),
    ],
)
def test_exchanged_tables_are_recognised(nodes, edges, expected):
    assert exchanged_tables(ColumnNames(source="a", target="b"), nodes, edges) is expected
