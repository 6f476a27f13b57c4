import numpy as np
import pytest
from hypothesis import given

from gpn_scale.data.building import build_graph
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Graph
from gpn_scale.errors import GraphError
from gpn_scale.interop import to_frames
from tests.oracles import dense_adjacency
from tests.strategies import graphs


@given(graph=graphs())
def test_tables_hold_every_node_and_every_edge(graph):
    nodes, edges = to_frames(graph)
    assert len(nodes) == graph.num_nodes
    assert len(edges) == graph.num_edges // (1 if graph.directed else 2)
    position = range(graph.num_nodes) if graph.node_names is None else graph.node_names
    adjacency = dense_adjacency(graph)
    places = {}
    for place, name in enumerate(position):
        places.setdefault(name, []).append(place)
    weights = edges["weight"] if "weight" in edges else [1.0] * len(edges)
    for source, target, weight in zip(edges["source"], edges["target"], weights, strict=True):
        among = adjacency[np.ix_(places[source], places[target])]
        assert np.isclose(among, weight).any()
    assert ("label" in nodes) == bool(graph.num_classes)
    if graph.num_classes:
        assert nodes["label"].isna().tolist() == (graph.labels < 0).tolist()


def test_parquet_files_of_the_tables_are_the_same_graph(small_graph, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    nodes, edges = to_frames(small_graph)
    nodes.to_parquet(folder / "nodes.parquet")
    edges.to_parquet(folder / "edges.parquet")
    same = load_graph("mine", tmp_path)
    np.testing.assert_array_equal(dense_adjacency(same), dense_adjacency(small_graph))
    np.testing.assert_array_equal(same.features, small_graph.features)
    np.testing.assert_array_equal(same.labels, small_graph.labels)
    np.testing.assert_array_equal(same.split.train, small_graph.split.train)


def test_raw_columns_make_the_same_graph_again():
    raw = {"id": ["a", "b", "c"], "age": [31.0, None, 7.0], "kind": ["x", "y", "x"]}
    raw["label"] = ["ok", None, "bad"]
    graph = Graph.from_tables(raw, {"source": ["a", "c"], "target": ["b", "b"]})
    nodes, edges = to_frames(graph)
    assert {"age", "kind"} <= set(nodes.columns)
    assert nodes["id"].tolist() == ["a", "b", "c"]
    same = Graph.from_tables(nodes, edges)
    assert same.fingerprint() == graph.fingerprint()


def test_a_feature_with_the_name_of_a_role_is_refused():
    graph = build_graph([0], [1], features=[[1.0], [2.0]], feature_names=["label"])
    with pytest.raises(GraphError, match="has a feature column 'label', expected other names"):
        to_frames(graph)
