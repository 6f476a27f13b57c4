import networkx
import numpy as np
import pytest
from hypothesis import given

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import CSRFeatures
from gpn_scale.data.networkx_graph import graph_from_networkx
from gpn_scale.errors import GraphError
from gpn_scale.interop import to_networkx
from tests.evaluation.samples import prediction_for
from tests.oracles import dense_adjacency
from tests.strategies import graphs


def class_of(graph, node):
    """Name or index of a node's class; None without a label."""
    label = int(graph.labels[node])
    names = graph.class_names
    return None if label < 0 else (label if names is None else str(names[label]))


@given(graph=graphs())
def test_a_graph_survives_the_way_to_networkx_and_back(graph):
    names = None if graph.node_names is None else graph.node_names.tolist()
    if names is not None and len(set(names)) < len(names):
        with pytest.raises(GraphError, match="several nodes with the name"):
            to_networkx(graph)
        return
    result = to_networkx(graph)
    assert result.is_directed() == graph.directed
    same = graph_from_networkx(result, directed=graph.directed or None)
    np.testing.assert_array_equal(dense_adjacency(same), dense_adjacency(graph))
    assert names is None or list(result.nodes) == names
    for node in range(graph.num_nodes):
        expected = class_of(graph, node)
        # An empty text is a missing label in every table and object.
        assert class_of(same, node) == (None if expected == "" else expected)
    if graph.num_features:
        dense = graph.features
        dense = dense.to_dense() if isinstance(dense, CSRFeatures) else dense
        np.testing.assert_array_equal(same.features, dense)


def test_a_prediction_joins_the_nodes(small_graph):
    prediction = prediction_for(small_graph)
    result = to_networkx(small_graph, prediction)
    assert isinstance(result, networkx.Graph)
    node = result.nodes[7]
    assert node["predicted_class"] == prediction.probabilities[7].argmax()
    assert node["alpha_0"] == pytest.approx(float(prediction.alpha_0[7]))
    assert "probabilities" not in node


def test_an_undirected_edge_is_one_edge():
    assert to_networkx(build_graph([0, 1], [1, 2])).number_of_edges() == 2
    assert to_networkx(build_graph([0, 1], [1, 0], directed=True)).number_of_edges() == 2
