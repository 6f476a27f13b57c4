"""A table of changes does to a graph what it would do to a dictionary of edges."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.edge_changes import graph_with_changes, read_changes
from gpn_scale.data.faults import TableFaults
from gpn_scale.data.graph import Graph
from gpn_scale.data.preparation import Preparation, prepared_features
from gpn_scale.data.raw_columns import RawColumns

SIZE = 6
NODES = st.integers(0, SIZE - 1)
PAIRS = st.tuples(NODES, NODES).filter(lambda pair: pair[0] != pair[1])


def edges_of(graph):
    source = np.repeat(np.arange(graph.num_nodes), graph.out_degree).tolist()
    weights = [1.0] * graph.num_edges if graph.edge_weight is None else graph.edge_weight.tolist()
    return dict(zip(zip(source, graph.indices.tolist(), strict=True), weights, strict=True))


def built(edges, *, directed, weighted):
    source, target = [pair[0] for pair in edges], [pair[1] for pair in edges]
    weight = list(edges.values()) if weighted else None
    return build_graph(source, target, num_nodes=SIZE, edge_weight=weight, directed=directed)


@given(data=st.data(), directed=st.booleans(), weighted=st.booleans(), named=st.booleans())
def test_changes_are_those_of_a_dictionary_of_edges(data, directed, weighted, named):
    weights = st.floats(0.5, 9, width=16)

    def key(pair):
        return pair if directed else (min(pair), max(pair))

    edges = {key(pair): data.draw(weights) for pair in data.draw(st.lists(PAIRS, max_size=12))}
    graph = built(edges, directed=directed, weighted=weighted)
    names = [f"n{node}" for node in range(SIZE)] if named else None
    graph = replace(graph, node_names=None if names is None else np.array(names))
    after, rows = dict(edges), []
    for pair in data.draw(st.lists(PAIRS, unique_by=key, max_size=12)):
        change = "add"
        if key(pair) in edges:
            change = data.draw(st.sampled_from(["remove", "set"] if weighted else ["remove"]))
        weight = data.draw(weights) if weighted and change != "remove" else None
        rows.append((pair[0], pair[1], change, weight))
        if change == "remove":
            del after[key(pair)]
        else:
            after[key(pair)] = weight or 1.0
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], []]
    if named:
        columns[:2] = [[names[node] for node in column] for column in columns[:2]]
    table = dict(zip(("source", "target", "change", "weight"), columns, strict=True))
    table["weight"] = pa.array(table["weight"], pa.float64())
    table["change"] = pa.array(table["change"], pa.string())
    for end in ("source", "target"):
        table[end] = pa.array(table[end], pa.string() if named else pa.int64())
    changed = graph_with_changes(graph, table)
    expected = built(after, directed=directed, weighted=weighted)
    assert edges_of(changed) == edges_of(expected)
    assert changed.structure_fingerprint() == expected.structure_fingerprint()
    assert changed.node_names is graph.node_names


PATH = build_graph([0, 1, 2], [1, 2, 3], node_names=["a", "b", "c", "d"])
WEIGHTED = build_graph([0, 1], [1, 2], edge_weight=[1.0, 2.0])


def listed(graph, rows, weight=None):
    columns = [list(column) for column in zip(*rows, strict=True)]
    table = dict(zip(("source", "target", "change"), columns, strict=True))
    if weight is not None:
        table["weight"] = weight
    with pytest.raises(TableFaults) as error:
        graph_with_changes(graph, table)
    assert "changes" in error.value.arguments
    return [(fault.row, fault.column, fault.value, fault.advice) for fault in error.value.faults]


def test_all_faults_are_listed_at_once():
    rows = [
        ("a", "b", "add"), ("c", "a", "remove"), ("a", "z", "add"), (None, "b", "add"),
        ("b", "c", "drop"), ("d", "d", "add"), ("b", "d", "add"), ("d", "b", "add"),
        ("b", "c", "set"),
    ]  # fmt: skip
    faults = listed(PATH, rows)
    assert [fault[:3] for fault in faults] == [
        (4, "source", None), (3, "target", "z"), (5, "change", "drop"), (9, "change", "set"),
        (6, "change", "add"), (1, "change", "add"), (2, "change", "remove"), (8, "change", "add"),
        (9, "change", "set"),
    ]  # fmt: skip
    texts = " ".join(fault[3] for fault in faults)
    for part in ("they need features", "write one of add, remove, set", "joins a node to itself"):
        assert part in texts
    assert "a row further up changes this edge already" in texts


def test_weights_are_needed_where_edges_have_them_and_nowhere_else():
    rows = [(0, 2, "add"), (0, 1, "set"), (1, 2, "remove")]
    assert [fault[0] for fault in listed(WEIGHTED, rows)] == [1, 2]
    faults = listed(WEIGHTED, rows, weight=[None, -1.0, -7.0])
    assert [fault[:3] for fault in faults] == [(1, "weight", None), (2, "weight", "-1")]
    faults = listed(PATH, [("a", "c", "add"), ("a", "b", "remove")], weight=[2.0, 3.0])
    assert [fault[:3] for fault in faults] == [(1, "weight", "2")]
    faults = listed(WEIGHTED, rows, weight=[[1.0], [2.0], [3.0]])
    assert "write numbers, not values of type list" in faults[0][3]
    faults = listed(WEIGHTED, [(0, 1, "add")], weight=[2.0])
    assert faults[0][3] == "the graph has this edge already: remove the row, or set the weight"


def test_a_table_without_changes_is_refused(tmp_path):
    with pytest.raises(TableFaults, match="add a column of this name that holds add, remove, set"):
        read_changes(PATH, {"source": ["a"], "target": ["b"]})
    with pytest.raises(TableFaults, match="name the column of ids of the nodes where edges start"):
        read_changes(PATH, {"target": ["b"], "change": ["add"]})
    with pytest.raises(TableFaults, match="name a readable CSV or Parquet file"):
        read_changes(PATH, tmp_path / "none.csv")


def test_structural_features_follow_the_edges():
    nodes = {"id": ["a", "b", "c"], "age": [1, 2, 4]}
    edges = {"source": ["a"], "target": ["b"]}
    graph = Graph.from_tables(nodes, edges, structural_features="on")
    changes = {"source": ["b"], "target": ["c"], "change": ["add"]}
    changed = graph_with_changes(graph, changes)
    columns = RawColumns(pa.table({"age": [1, 2, 4]})).table()
    expected = prepared_features(graph.preparation, columns, changed).features
    assert changed.features.tolist() == expected.tolist()
    assert changed.features.tolist() != graph.features.tolist()
    assert changed.preparation == graph.preparation
    bare = Preparation(rules=(), structural=True).fitted_to(PATH)
    features = prepared_features(bare, pa.table({}), PATH).features
    alone = replace(PATH, features=features, preparation=bare)
    changes = {"source": ["a"], "target": ["c"], "change": ["add"]}
    assert graph_with_changes(alone, changes).features.shape == (4, 2)
