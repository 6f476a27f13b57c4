"""New nodes of tables have the features and edges that an import with them would give."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.column_roles import ColumnNames
from gpn_scale.data.contract import DataContract
from gpn_scale.data.faults import TableFaults
from gpn_scale.data.graph import CSRFeatures, Graph
from gpn_scale.diffusion.growth import grown_graph, new_nodes
from gpn_scale.errors import GraphError
from gpn_scale.inference.new_tables import read_new_tables
from tests.data.tables import EDGES, NAMES, NODES

COLUMNS = ColumnNames(id="ref", source="from", target="to", weight="sum")
NEW = {"country": ["DE", "US"], "age": ["30", None], "ref": ["x", "y"]}
LINKS = {"from": ["x", "b", "y"], "to": ["a", "x", "x"], "sum": [1, 2, 3]}


def imported(**rules):
    return Graph.from_tables(NODES, EDGES, **NAMES, weight="sum", **rules)


def read(graph, nodes=NEW, edges=LINKS, names=COLUMNS):
    return read_new_tables(nodes, edges, graph, DataContract.of(graph), names)


def faults_of(*arguments, **keywords):
    with pytest.raises(TableFaults) as error:
        read(*arguments, **keywords)
    return [(f.file, f.row, f.column, f.value, f.advice) for f in error.value.faults]


def test_columns_are_prepared_by_the_rule_of_the_model():
    graph = imported()
    new = read(graph)
    assert new.ids.tolist() == ["x", "y"]
    columns = pa.table(NEW).select(["age", "country"])
    assert new.features.tolist() == graph.preparation.apply(columns).features.tolist()
    assert [ids.tolist() for ids in new.neighbours] == [[0, 1, 7], []]
    assert [weights.tolist() for weights in new.edge_weights] == [[1, 2, 3], []]
    assert any("'US'" in note for note in new.notes)


@pytest.mark.parametrize("drop", [(), ("age", "country")])
@pytest.mark.parametrize("directed", [False, True])
def test_structural_features_are_those_of_the_grown_graph(drop, directed):
    graph = imported(structural_features="on", drop=drop, directed=directed)
    new = read(graph)
    assert new.features.shape == (2, graph.num_features)
    grown = grown_graph(graph, new_nodes(graph, new.features, new.neighbours, new.edge_weights))
    structure = graph.preparation.structure
    assert len(structure) == 3 + directed
    for place, rule in enumerate(structure, start=graph.num_features - len(structure)):
        expected = rule.encoded(grown).toarray()[graph.num_nodes :, 0]
        assert new.features[:, place] == pytest.approx(expected)


def test_many_features_stay_sparse():
    count = 400
    nodes = {"ref": [str(i) for i in range(count)], "place": [f"p{i % 200}" for i in range(count)]}
    edges = {"from": ["0"], "to": ["1"]}
    kinds = {"place": "category"}
    for structural in ("off", "on"):
        graph = Graph.from_tables(
            nodes,
            edges,
            id="ref",
            source="from",
            target="to",
            kinds=kinds,
            structural_features=structural,
        )
        assert isinstance(graph.features, CSRFeatures)
        names = ColumnNames(id="ref", source="from", target="to")
        links = {"from": ["new"], "to": ["7"]}
        new = read(graph, {"ref": ["new"], "place": ["p7"]}, links, names)
        # Node 7 has the same place; only its degree differs.
        width = graph.num_features - len(graph.preparation.structure)
        expected = graph.features.to_dense()[7, :width]
        assert new.features.to_dense()[0, :width].tolist() == expected.tolist()


NUMBERS = build_graph(
    [0, 1], [1, 2], features=[[1.0, 2.0]] * 3, feature_names=["age", "size"]
)  # fmt: skip


def test_numbers_are_matched_by_name_and_nodes_by_position():
    nodes = {"size": ["5", "6"], "note": ["a", "b"], "id": ["x", "y"], "age": [True, False]}
    new = read(NUMBERS, nodes, {"source": [2, "x"], "target": ["x", "y"]}, ColumnNames())
    assert new.features.tolist() == [[1, 5], [0, 6]]
    assert [ids.tolist() for ids in new.neighbours] == [[2, 4], []]
    assert new.edge_weights is None
    assert new.notes == ("The feature column 'note' is not in the model and was ignored.",)


def test_numbers_without_names_are_matched_by_position():
    graph = build_graph([0], [1], features=[[1.0, 2.0]] * 2)
    new = read(graph, {"id": ["x"], "a": [3], "b": [4]}, None, ColumnNames())
    assert new.features.tolist() == [[3, 4]]
    assert [ids.tolist() for ids in new.neighbours] == [[]]
    assert faults_of(graph, {"id": ["x"], "a": [3]}, None, ColumnNames())[0][-1] == (
        "give 2 columns of features, not 1"
    )


def test_edges_that_cannot_count_are_noted():
    graph = imported(directed=True)
    links = {"from": ["a", "a", "x", "x"], "to": ["b", "x", "x", "c"], "sum": [1, 1, 1, 2]}
    new = read(graph, edges=links)
    assert [ids.tolist() for ids in new.neighbours] == [[2], []]
    assert [note for note in new.notes if "dges" in note] == [
        "Edges that join two nodes of the graph were ignored (1): import the tables again to use "
        "them.",
        "Edges from a node of the graph to a new one were ignored (1), since new nodes do not "
        "change predictions of other nodes.",
    ]


def test_edges_without_weights_count_as_one():
    links = {"from": ["x"], "to": ["a"]}
    names = ColumnNames(id="ref", source="from", target="to")
    new = read(imported(), edges=links, names=names)
    assert [weights.tolist() for weights in new.edge_weights] == [[1], []]
    assert "edges of new nodes get weight 1" in new.notes[-1]


def test_weights_are_ignored_in_a_graph_without():
    graph = Graph.from_tables(NODES, EDGES, **NAMES)
    assert read(graph, edges=LINKS | {"sum": ["?", "?", "?"]}).edge_weights is None


@settings(max_examples=60, deadline=None)
@given(data=st.data(), directed=st.booleans(), weighted=st.booleans())
def test_edges_merge_as_if_all_nodes_were_there_from_the_start(data, directed, weighted):
    old = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1))
    ends = st.integers(0, 4)
    pairs = [(u, v) for u, v in data.draw(st.lists(st.tuples(ends, ends))) if max(u, v) > 2]
    if directed:  # existing nodes never point to new ones
        pairs = [(u, v) for u, v in pairs if u > 2]
    weight = st.integers(1, 9)
    weights = [data.draw(weight) for _ in pairs]
    columns = {"features": np.zeros((3, 1)), "feature_names": ["z"], "directed": directed}
    old_weights = np.full(len(old), 4.0) if weighted else None
    graph = build_graph(*np.transpose(old), edge_weight=old_weights, **columns)
    texts = [(str(u), str(v), w) for (u, v), w in zip(pairs, weights, strict=True)]
    table = pa.table(
        {
            "source": pa.array([u for u, _, _ in texts], pa.string()),
            "target": pa.array([v for _, v, _ in texts], pa.string()),
            "weight": pa.array([w for _, _, w in texts], pa.int64()),
        }
    )
    new = read(graph, {"id": ["3", "4"], "z": [0, 0]}, table, ColumnNames())
    grown = grown_graph(graph, new_nodes(graph, new.features, new.neighbours, new.edge_weights))
    everything = np.array([*old, *pairs])
    expected = build_graph(
        everything[:, 0],
        everything[:, 1],
        num_nodes=5,
        edge_weight=np.append(old_weights, weights) if weighted else None,
        directed=directed,
    )
    assert grown.structure_fingerprint() == expected.structure_fingerprint()


def test_all_faults_are_reported_together():
    nodes = {"ref": ["x", "x", "a", None], "age": ["old"] * 4}
    edges = LINKS | {"to": ["nobody", "x", "x"], "sum": [0, 1, 1]}
    advice = "the graph has a node of this id: list new nodes only"
    faults = faults_of(imported(), nodes, edges)
    assert [fault[:4] for fault in faults] == [
        ("nodes", 4, "ref", None),
        ("nodes", 2, "ref", "x"),
        ("nodes", 3, "ref", "a"),
        ("edges", 1, "sum", "0"),
        ("edges", 3, "from", "y"),
        ("edges", 1, "to", "nobody"),
        ("nodes", 1, "age", "old"),
        ("nodes", None, "country", None),
    ]
    assert faults[2][-1] == advice
    assert faults[5][-1].endswith("add the node, or remove the edge")


@pytest.mark.parametrize(
    ("nodes", "edges", "column"),
    [
        ({"number": ["x"]}, None, "id"),
        ({"id": [], "age": [], "size": []}, None, None),
        ({"id": ["x"], "age": [1]}, None, "size"),
        ({"id": ["x"], "age": [1], "size": ["tall"]}, None, "size"),
        ({"id": ["x"], "age": [None], "size": [1]}, None, "age"),
        ({"id": ["x"], "age": [[1]], "size": [1]}, None, "age"),
        ({"id": ["x"], "age": [1], "size": [1]}, {"source": ["x"]}, "target"),
    ],
)
def test_wrong_tables_are_refused(nodes, edges, column):
    assert column in [fault[2] for fault in faults_of(NUMBERS, nodes, edges, ColumnNames())]


def test_both_tables_are_faults_if_neither_can_be_read(tmp_path):
    files = [fault[0] for fault in faults_of(NUMBERS, tmp_path / "n.csv", tmp_path / "e.csv")]
    assert files == ["n.csv", "e.csv"]
    with pytest.raises(GraphError, match="nodes is of type int"):
        read(NUMBERS, 7, None)
