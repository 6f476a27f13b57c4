"""Two raw tables become a graph; all that is wrong with them is said at once."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from gpn_scale.data import node_tables
from gpn_scale.data.building import build_graph
from gpn_scale.data.column_roles import ColumnNames
from gpn_scale.data.faults import TableFaults
from gpn_scale.data.graph import Graph
from gpn_scale.data.growing_table import GrowingTable
from gpn_scale.data.import_rules import ImportRules
from gpn_scale.data.import_tables import import_tables
from tests.data.tables import EDGES, NAMES, NODES, by_name, write_csv


def imported(nodes=NODES, edges=EDGES, names=NAMES, **rules):
    return import_tables(
        nodes, edges, names=ColumnNames(**names), rules=ImportRules(**rules), name="t"
    )


def faults_of(*arguments, **keywords):
    with pytest.raises(TableFaults) as error:
        imported(*arguments, **keywords)
    return error.value


def listed(error):
    return [(fault.file, fault.row, fault.column, fault.value) for fault in error.faults]


def test_every_column_arrives():
    graph, facts, columns = imported(names=NAMES | {"weight": "sum"})
    assert graph.name == "t"
    assert graph.node_names.tolist() == NODES["ref"]
    assert graph.class_names.tolist() == ["bad", "ok"]
    assert graph.labels.tolist() == [1, 0, 1, 0, -1, -1]
    assert by_name(graph)["edges"]["a", "b"] == by_name(graph)["edges"]["b", "a"] == 6.0
    assert graph.feature_names.tolist() == [
        "age", "age is missing", "country=DE", "country=FR", "country=IT", "country is missing",
    ]  # fmt: skip
    assert graph.preparation.feature_names == tuple(graph.feature_names)
    assert graph.raw_columns.table().to_pydict() == {name: NODES[name] for name in columns.features}
    assert (columns.id, columns.weight, columns.features) == ("ref", "sum", ("age", "country"))
    assert (facts.nodes_listed, facts.edges_listed, facts.weight) == (6, 5, "sum")
    assert (facts.duplicates, facts.self_loops, facts.unknown_ids) == (1, 0, 0)
    assert facts.missing == {"age": 1, "country": 1}


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_and_dictionaries_give_the_same_graph(make):
    graph = imported(make(NODES), make(EDGES)).graph
    assert by_name(graph) == by_name(imported().graph)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_give_the_same_graph(tmp_path, suffix):
    if suffix == "csv":
        nodes = write_csv(tmp_path / "things.txt", NODES)
        edges = write_csv(tmp_path / "links.txt", EDGES)
    else:
        nodes, edges = tmp_path / "things", tmp_path / "links"
        parquet.write_table(pa.table(NODES), nodes)
        parquet.write_table(pa.table(EDGES), edges)
    assert by_name(imported(nodes, str(edges)).graph) == by_name(imported().graph)


def test_the_classmethod_takes_names_and_rules():
    graph = Graph.from_tables(
        NODES, EDGES, **NAMES, weight="sum", drop="age", name="mine", directed=True, missing="fill"
    )
    assert graph.name == "mine"
    assert graph.directed
    assert graph.feature_names.tolist() == ["country=DE", "country=FR", "country=IT"]
    with pytest.raises(TypeError, match="unknown_id"):
        Graph.from_tables(NODES, EDGES, **NAMES, unknown_id="add")


def test_directed_edges_keep_their_direction():
    graph, facts, _ = imported(directed=True)
    assert sorted(by_name(graph)["edges"]) == [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")]
    assert facts.duplicates == 1


def test_duplicates_and_self_loops_are_counted():
    edges = {"from": ["a", "b", "a", "c", "d"], "to": ["b", "a", "b", "c", "a"]}
    graph, facts, _ = imported(edges=edges)
    assert sorted(by_name(graph)["edges"]) == [("a", "b"), ("a", "d"), ("b", "a"), ("d", "a")]
    assert (facts.edges_listed, facts.duplicates, facts.self_loops) == (5, 2, 1)


UNKNOWN = {"from": ["a", "zoe", "b", None], "to": ["b", "a", "yan", "c"]}
COMPLETE = {"from": ["a", "zoe", "b", "c"], "to": ["b", "a", "yan", "yan"]}


def test_unknown_ids_are_dropped_by_rule():
    graph, facts, _ = imported(edges=UNKNOWN, unknown_ids="drop")
    assert sorted(by_name(graph)["edges"]) == [("a", "b"), ("b", "a")]
    assert (facts.unknown_ids, facts.nodes_added) == (3, 0)


def test_unknown_ids_are_added_by_rule():
    graph, facts, _ = imported(edges=COMPLETE, unknown_ids="add")
    assert graph.node_names.tolist() == [*NODES["ref"], "yan", "zoe"]
    assert {pair for pair in by_name(graph)["edges"] if "yan" in pair} == {
        ("b", "yan"), ("yan", "b"), ("c", "yan"), ("yan", "c"),
    }  # fmt: skip
    assert by_name(graph)["labels"]["zoe"] is None
    assert by_name(graph)["features"]["zoe"]["age is missing"] == 1
    assert (facts.unknown_ids, facts.nodes_added, facts.nodes_listed) == (0, 2, 6)
    assert facts.missing == {"age": 3, "country": 3}
    assert graph.raw_columns.num_rows == 8


def test_unknown_ids_are_refused_by_default():
    error = faults_of(edges=UNKNOWN)
    assert listed(error) == [
        ("edges", 4, "from", None), ("edges", 2, "from", "zoe"), ("edges", 3, "to", "yan"),
    ]  # fmt: skip
    assert "unknown_ids" in error.arguments
    assert listed(faults_of(edges=UNKNOWN, unknown_ids="add")) == [("edges", 4, "from", None)]


@pytest.mark.parametrize(
    "ids", [[1, 2, 3], [1.0, 2.0, 3.0], ["1", "2", "3"], ["1.0", "2.0", "3.0"]]
)
@pytest.mark.parametrize("ends", [[1, 2], [1.0, 2.0], ["1", "2"], ["1.0", "2.0"]])
def test_ids_of_all_types_meet(ids, ends):
    graph = imported(
        {"ref": ids, "age": [1, 2, 4]}, {"from": ends, "to": ends[::-1]}, NAMES | {"label": None}
    ).graph
    assert graph.node_names.tolist() == ["1", "2", "3"]
    assert sorted(by_name(graph)["edges"]) == [("1", "2"), ("2", "1")]


def test_zeros_in_front_count():
    assert listed(faults_of(edges={"from": ["007"], "to": ["a"]}, nodes=NODES)) == [
        ("edges", 1, "from", "007")
    ]


def test_a_graph_may_have_no_labels_and_no_edges():
    nothing = pa.array([], pa.string())
    graph = imported(edges={"from": nothing, "to": nothing}, names=NAMES | {"label": None}).graph
    assert graph.num_edges == 0
    assert graph.num_classes == 0
    assert graph.class_names is None
    assert "verdict=bad" in graph.feature_names


@pytest.mark.parametrize("choice", ["auto", "on", "off"])
def test_the_rule_for_structural_features(choice):
    bare = {name: NODES[name] for name in ("ref", "verdict")}
    graph, facts, _ = imported(bare, structural_features=choice)
    structural = ["log degree", "log mean degree of neighbours"]
    assert ([] if graph.features is None else graph.feature_names.tolist()) == (
        [] if choice == "off" else structural
    )
    expected = "features of the network itself" if choice != "off" else "cannot be trained"
    assert any(expected in note for note in facts.notes)
    full = imported(structural_features=choice).graph
    assert set(structural) <= set(full.feature_names.tolist()) or choice != "on"
    assert not set(structural) & set(full.feature_names.tolist()) or choice == "on"


def test_columns_that_tell_nothing_count_as_none():
    nodes = {"ref": NODES["ref"], "same": ["x"] * 6}
    graph, facts, _ = imported(nodes, names=NAMES | {"label": None})
    assert "log degree" in graph.feature_names
    assert any("'same'" in note for note in facts.notes)


def test_a_split_is_kept():
    split = ["train", "train", "val", "test", None, ""]
    graph = imported(NODES | {"split": split}).graph
    assert graph.split.train.tolist() == [0, 1]
    assert graph.split.val.tolist() == [2]


def test_names_of_missing_values_are_classes_with_a_note():
    _, facts, _ = imported(NODES | {"verdict": ["NA", "ok", "NA", "ok", None, None]})
    assert any("The label 'NA' counts as a class" in note for note in facts.notes)


def test_all_faults_of_both_tables_are_reported_together(tmp_path):
    nodes = NODES | {
        "ref": ["a", "b", "a", None, "e", "f"],
        "split": ["train", "dev", None, None, "test", None],
        "age": ["1", "2", "x", "4", "5", "6"],
    }
    edges = {"from": ["a", "z"], "to": ["b", None], "sum": ["1", "-1"]}
    error = faults_of(
        write_csv(tmp_path / "n.csv", nodes),
        write_csv(tmp_path / "e.csv", edges),
        NAMES | {"weight": "sum", "drop": ("colour",)},
        kinds={"age": "number"},
    )
    assert listed(error) == [
        ("n.csv, e.csv", None, "colour", None),
        ("n.csv", 2, "split", "dev"),
        ("n.csv", 5, "split", "test"),
        ("n.csv", 4, "ref", None),
        ("n.csv", 3, "ref", "a"),
        ("e.csv", 2, "sum", "-1"),
        ("e.csv", 2, "from", "z"),
        ("e.csv", 2, "to", None),
        ("n.csv", 3, "age", "x"),
    ]
    assert str(error).startswith("9 faults in the tables:\n")
    assert set(error.arguments) >= {"drop", "split", "id", "weight", "unknown_ids", "kinds"}


def test_both_files_are_faults_if_neither_can_be_read(tmp_path):
    (tmp_path / "n.bin").write_bytes(b"\0\1\2")
    error = faults_of(tmp_path / "n.bin", tmp_path / "none.csv")
    assert [fault.file for fault in error.faults] == ["n.bin", "none.csv"]


@pytest.mark.parametrize(
    ("more", "options", "note"),
    [
        ({}, {}, None),
        ({"sum": [1, 2, 3, 4, 5]}, {"weight": "sum"}, None),
        ({"sum": [1, 2, 3, 4, 5]}, {"drop": ("sum",)}, None),
        (
            {"sum": [1, 2, 3, 4, 5]},
            {},
            "The column 'sum' of the edges is not used; a column of numb",
        ),
        ({"sum": [1] * 5, "day": [2] * 5}, {}, "'day', 'sum' of the edges are not used; a column"),
        ({"sum": [1] * 5, "day": [2] * 5}, {"weight": "sum"}, "'day' of the edges is not used."),
        (
            {f"x{n}": [1] * 5 for n in range(7)},
            {},
            "columns 'x0', 'x1', 'x2', 'x3', 'x4' and 2 more",
        ),
    ],
)
def test_columns_of_edges_that_are_not_used_are_named(more, options, note):
    edges = {"from": ["a", "a", "b", "b", "c"], "to": ["b", "c", "c", "d", "d"]} | more
    names = ColumnNames(**NAMES | options)
    notes = [
        each for each in import_tables(NODES, edges, names=names).facts.notes if "edges" in each
    ]
    assert len(notes) == (note is not None)
    assert note is None or note in notes[0]


def test_files_of_one_name_are_told_apart(tmp_path):
    nodes = write_csv(tmp_path / "one" / "t.csv", NODES | {"ref": list("abcdea")})
    edges = write_csv(tmp_path / "two" / "t.csv", EDGES | {"to": ["b", "c", "d", "e", "z"]})
    assert [fault.file for fault in faults_of(nodes, edges).faults] == [str(nodes), str(edges)]


@pytest.mark.parametrize(
    ("nodes", "edges", "names", "message"),
    [
        ({"id": ["a"]}, EDGES, {}, "name the column of ids of the nodes where edges start"),
        (NODES, EDGES, NAMES | {"id": "reff"}, "id names this column, which .* similar: 'ref'"),
        (NODES, EDGES, NAMES | {"source": "to"}, "source and target name the same column"),
        (EDGES, NODES, NAMES, "exchange the tables: edges has the columns of nodes"),
        (NODES | {"verdict": [None] * 6}, EDGES, NAMES, "all labels are missing: label nodes of"),
        (NODES | {"verdict": ["ok"] * 6}, EDGES, NAMES, "'ok' +all labels are of one class"),
        ({"ref": [], "age": []}, {"from": [], "to": []}, {"id": "ref", "source": "from",
         "target": "to"}, "the table has no rows: list at least one node"),
        (NODES, {"from": [30, 29], "to": ["a", "b"], "payer": ["b", "a"]}, NAMES,
         "100 % of the column 'payer' are: were columns exchanged"),
        (NODES | {"number": list("uvwxyz")}, {"from": ["u", "v"], "to": ["y", "z"]}, NAMES,
         "but 100 % are in its 'number': is that the id"),
        (NODES | {"age": [[1]] * 6}, EDGES, NAMES, "age"),
        (NODES, EDGES, NAMES | {"drop": ("ref",)}, "the column holds ids of nodes: do not drop it"),
    ],
)  # fmt: skip
def test_wrong_tables_are_refused(nodes, edges, names, message):
    with pytest.raises(TableFaults, match=message):
        imported(nodes, edges, names)


@pytest.mark.parametrize(
    ("column", "kinds", "message"),
    [
        (["2024-01-01", "2024-13-01", "x", "y", "z", "w"], {"extra": "date"}, "extra .*2024-13-01"),
        (["one", "2", "3", "4", "5", "6"], {"extra": "number"}, "extra +'one'"),
    ],
)
def test_columns_of_another_kind_than_given_are_refused(column, kinds, message):
    with pytest.raises(TableFaults, match=message) as error:
        imported(NODES | {"extra": column}, kinds=kinds)
    assert "kinds" in error.value.arguments


def test_missing_values_are_refused_by_rule():
    error = faults_of(missing="refuse")
    assert {fault.column for fault in error.faults} == {"age", "country"}


def test_a_category_of_very_many_values_has_few_features():
    count = 20_000
    nodes = {"ref": list(range(count)), "place": [f"place {i // 2}" for i in range(count)]}
    edges = {"from": [0], "to": [1]}
    names = NAMES | {"label": None}
    graph = imported(nodes, edges, names, kinds={"place": "category"}).graph
    assert graph.num_features < 5_000


@pytest.mark.parametrize("rules", [{}, {"directed": True}, {"structural_features": "on"}])
@pytest.mark.parametrize("weight", [None, "sum"])
def test_tiny_blocks_give_the_graph_built_in_memory(tmp_path, monkeypatch, weight, rules):
    rng = np.random.default_rng(1)
    ids = [f"n{number}" for number in range(40)]
    nodes = {"ref": ids, "verdict": ["x", "y"] * 20, "age": rng.normal(size=40).round(3).tolist()}
    ends = rng.integers(0, 40, (2, 300))
    edges = {"from": [ids[u] for u in ends[0]], "to": [ids[v] for v in ends[1]]}
    edges["sum"] = (rng.exponential(size=300) + 0.01).astype(np.float32).tolist()
    names = ColumnNames(**NAMES, weight=weight, drop=() if weight else ("sum",))
    rule, files = ImportRules(**rules), (tmp_path / "n", tmp_path / "e")
    for path, table in zip(files, (nodes, edges), strict=True):
        parquet.write_table(pa.table(table), path)
    monkeypatch.setattr(node_tables, "GrowingTable", partial(GrowingTable, memory_bytes=0))
    graph = import_tables(*files, names=names, rules=rule, block_rows=7, scratch=tmp_path).graph
    monkeypatch.undo()
    edge_weight = None if weight is None else edges["sum"]
    whole = build_graph(*ends, num_nodes=40, edge_weight=edge_weight, directed=rule.directed)
    assert graph.structure_fingerprint() == whole.structure_fingerprint()
    prepared = graph.preparation.apply(pa.table(nodes), graph=whole)
    assert graph.features.tobytes() == prepared.features.tobytes()
    again = import_tables(nodes, edges, names=names, rules=rule).graph
    assert graph.fingerprint() == again.fingerprint()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e", "n"]


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
IDS = TEXTS.filter(lambda text: text and not text.endswith(".0"))


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_order_of_rows_and_columns_gives_the_same_graph(data):
    ids = data.draw(st.lists(IDS, min_size=3, max_size=7, unique=True))
    size = len(ids)
    classes = st.sampled_from(["x", "y ", "\U0001f600", None])
    labels = ["x", "y ", *data.draw(st.lists(classes, min_size=size - 2, max_size=size - 2))]
    ages = data.draw(st.lists(st.none() | st.integers(0, 99), min_size=size, max_size=size))
    notes = data.draw(st.lists(st.none() | TEXTS, min_size=size, max_size=size))
    pair = st.tuples(st.sampled_from(ids), st.sampled_from(ids), st.floats(0.125, 8, width=16))
    edges = data.draw(st.lists(pair, min_size=1, max_size=10))
    columns = data.draw(
        st.lists(TEXTS.filter(str.strip), min_size=4, max_size=4, unique_by=lambda text: text)
    )
    rows = list(zip(ids, labels, ages, notes, strict=True))

    def graph_of(node_rows, edge_rows, order):
        nodes = {columns[k]: [row[k] for row in node_rows] for k in order}
        ends = dict(zip(("source", "target", "weight"), zip(*edge_rows, strict=True), strict=True))
        # A drawn name may be that of a role, which would then be found by default.
        drop = tuple(name for name in columns[2:] if name in ("label", "split", "id"))
        kinds = {columns[2]: "number", columns[3]: "category"}
        kinds = {name: kind for name, kind in kinds.items() if name not in drop}
        rules = ImportRules(kinds=kinds)
        names = ColumnNames(id=columns[0], label=columns[1], drop=drop)
        return import_tables(nodes, ends, names=names, rules=rules).graph

    graph = graph_of(rows, edges, range(4))
    other = graph_of(
        data.draw(st.permutations(rows)),
        data.draw(st.permutations(edges)),
        data.draw(st.permutations(range(4))),
    )
    first, second = by_name(graph), by_name(other)
    assert first["labels"] == second["labels"]
    assert first["edges"] == pytest.approx(second["edges"])
    for name, features in first["features"].items():
        assert features == pytest.approx(second["features"][name], abs=1e-5)


def test_renamed_ids_give_the_same_graph():
    other = {name: f"<{name}>" for name in NODES["ref"]}
    nodes = NODES | {"ref": [other[name] for name in NODES["ref"]]}
    edges = {key: [other.get(value, value) for value in EDGES[key]] for key in EDGES}
    first, second = by_name(imported().graph), by_name(imported(nodes, edges).graph)
    assert {other[name]: row for name, row in first["features"].items()} == second["features"]
    assert {(other[u], other[v]): w for (u, v), w in first["edges"].items()} == second["edges"]
