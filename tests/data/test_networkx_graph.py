import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from gpn_scale.data.graph import Graph
from gpn_scale.data.networkx_graph import graph_from_networkx, is_networkx
from gpn_scale.errors import GraphError
from tests.strategies import graphs


def letters():
    """The path b - a - c with ages, vectors, weights and one missing label."""
    graph = nx.Graph()
    graph.add_node("b", age=1, features=[1.0, 0.0], label="old")
    graph.add_node("a", age=2.5, features=np.array([0.0, 1.0]), label="new")
    graph.add_node("c", age=True, features=(1, 1))
    graph.add_edge("b", "a", weight=2.0)
    graph.add_edge("a", "c")
    return graph


def test_names_labels_features_and_weights():
    graph = graph_from_networkx(letters(), name="letters")
    assert repr(graph) == "Graph('letters', nodes=3, edges=4, features=2, classes=2)"
    assert graph.node_names.tolist() == ["b", "a", "c"]
    assert graph.class_names.tolist() == ["new", "old"]
    assert graph.labels.tolist() == [1, 0, -1]
    assert graph.features.tolist() == [[1, 0], [0, 1], [1, 1]]
    assert graph.feature_names is None
    assert graph.edge_weight.tolist() == [2.0, 2.0, 1.0, 1.0]


def test_attributes_of_one_number_are_named_columns():
    graph = graph_from_networkx(letters(), features=["age"], label=None, weight=None)
    assert graph.features.tolist() == [[1.0], [2.5], [1.0]]
    assert graph.feature_names.tolist() == ["age"]
    assert graph.num_classes == 0
    assert graph.edge_weight is None


def test_nothing_but_edges():
    graph = graph_from_networkx(nx.path_graph(3))
    assert graph.indices.tolist() == [1, 0, 2, 1]
    assert graph.node_names is None
    assert graph.features is None
    assert graph_from_networkx(letters(), features=None).features is None
    assert graph_from_networkx(letters(), features=[]).features is None


def test_numbered_nodes_are_positions_in_whatever_order_they_were_added():
    graph = nx.Graph([(2, 0), (0, 1)])
    for node in graph:
        graph.add_node(node, features=[float(node)], label=node % 2)
    converted = graph_from_networkx(graph)
    assert converted.node_names is None
    assert converted.features.tolist() == [[0.0], [1.0], [2.0]]
    assert converted.labels.tolist() == [0, 1, 0]
    assert converted.indices.tolist() == [1, 2, 0, 0]
    gaps = graph_from_networkx(nx.Graph([(3, 0), (0, 1)]))
    assert gaps.node_names.tolist() == ["3", "0", "1"]


def test_directions_need_an_answer():
    one_way = nx.DiGraph([(0, 1), (1, 2)])
    with pytest.raises(GraphError, match="is a DiGraph and directed is not given: pass directed"):
        graph_from_networkx(one_way)
    assert graph_from_networkx(one_way, directed=True).indices.tolist() == [1, 2]
    assert graph_from_networkx(one_way, directed=False).indices.tolist() == [1, 0, 2, 1]
    with pytest.raises(GraphError, match="whose edges have no direction, but directed is True"):
        graph_from_networkx(nx.path_graph(3), directed=True)


def test_weights_of_parallel_edges_add_up():
    parallel = nx.MultiGraph([(0, 1, {"weight": 2.0}), (0, 1, {"weight": 3.0})])
    assert graph_from_networkx(parallel).edge_weight.tolist() == [5.0, 5.0]


def changed(node, **attributes):
    graph = letters()
    graph.add_node(node, **attributes)
    return graph


@pytest.mark.parametrize(
    ("graph", "options", "message"),
    [
        ([], {}, "is a list, expected a networkx graph"),
        (letters(), {"features": ["ages"]}, "no node has an attribute 'ages', expected one of 'ag"),
        (letters(), {"features": "vector"}, "no node has an attribute 'vector'"),
        (letters(), {"label": "class"}, "no node has an attribute 'class'"),
        (nx.path_graph(2), {"label": "class"}, "expected one of none, for there are no attributes"),
        (letters(), {"weight": "cost"}, "no edge has an attribute 'cost', expected one of 'weig"),
        (letters(), {"features": ["features"]}, r"has shape \(2,\), expected one number"),
        (changed("d"), {}, "attribute 'features' is missing at node 'd', expected it at every"),
        (changed("c", features=[1.0]), {}, r"is \[1.0\] at node 'c', expected numbers, as many"),
        (changed("c", age="x"), {"features": ["age"]}, "is 'x' at node 'c', expected numbers"),
        (nx.Graph([(1, "1")]), {}, "nodes 1 and '1' both become '1'"),
        (nx.Graph([(0, 1, {"weight": "x"})]), {}, "edge attribute 'weight' is not a number"),
    ],
)
def test_other_graphs_are_refused(graph, options, message):
    with pytest.raises(GraphError, match=message):
        graph_from_networkx(graph, **options)


def test_networkx_is_not_imported_to_recognise_its_graphs():
    code = (
        "import sys; from gpn_scale.data.networkx_graph import is_networkx; "
        "assert not is_networkx(1); assert 'networkx' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert is_networkx(nx.DiGraph())


@given(graphs())
def test_a_graph_written_to_networkx_comes_back(graph: Graph):
    other = nx.DiGraph() if graph.directed else nx.Graph()
    for node in range(graph.num_nodes):
        other.add_node(node)
        if graph.labels[node] >= 0:
            other.nodes[node]["label"] = int(graph.labels[node])
    for node in range(graph.num_nodes):
        for at in range(graph.indptr[node], graph.indptr[node + 1]):
            weight = {} if graph.edge_weight is None else {"weight": graph.edge_weight[at]}
            other.add_edge(node, int(graph.indices[at]), **weight)
    again = graph_from_networkx(other, directed=True if graph.directed else None)
    np.testing.assert_array_equal(again.indptr, graph.indptr)
    np.testing.assert_array_equal(again.indices, graph.indices)
    np.testing.assert_array_equal(again.labels, graph.labels)
    if graph.num_edges and graph.edge_weight is not None:
        np.testing.assert_array_equal(again.edge_weight, graph.edge_weight)
