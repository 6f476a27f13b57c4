import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given

from gpn_scale.data.graph import Graph
from gpn_scale.data.scipy_graph import graph_from_scipy
from gpn_scale.errors import GraphError
from tests.strategies import graphs

PATH = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])


def test_a_matrix_of_ones_has_no_weights():
    for kind in (scipy.sparse.coo_array, scipy.sparse.csc_matrix):
        graph = graph_from_scipy(kind(PATH.astype(bool)))
        assert graph.indices.tolist() == [1, 0, 2, 1]
        assert graph.edge_weight is None
        assert not graph.directed


def test_weights_features_labels_and_names():
    frame = pd.DataFrame({"age": [1.0, 2.0, 3.0]})
    graph = graph_from_scipy(
        scipy.sparse.csr_array(PATH * 2.5), frame, ["x", "y", None], node_names=["a", "b", "c"]
    )
    assert graph.edge_weight.tolist() == [2.5] * 4
    assert graph.feature_names.tolist() == ["age"]
    assert graph.class_names.tolist() == ["x", "y"]
    assert graph.labels.tolist() == [0, 1, -1]
    assert graph.node_names.tolist() == ["a", "b", "c"]


def test_stored_zeros_are_no_edges_and_repeated_entries_add_up():
    entries = ([0.0, 1.0, 1.0, 2.0], ([0, 1, 1, 2], [1, 2, 2, 1]))
    graph = graph_from_scipy(scipy.sparse.coo_array(entries, shape=(3, 3)))
    assert graph.indptr.tolist() == [0, 0, 1, 2]
    assert graph.edge_weight.tolist() == [2.0, 2.0]


def test_one_direction_needs_an_answer():
    one_way = scipy.sparse.csr_array(np.triu(PATH))
    with pytest.raises(GraphError, match=r"entries 0, 1 and 1, 0 differ\): pass directed=True"):
        graph_from_scipy(one_way)
    assert graph_from_scipy(one_way, directed=True).indices.tolist() == [1, 2]
    assert graph_from_scipy(one_way, directed=False).indices.tolist() == [1, 0, 2, 1]
    two_weights = scipy.sparse.csr_array(PATH + np.triu(PATH))
    with pytest.raises(GraphError, match="not symmetric"):
        graph_from_scipy(two_weights)


@pytest.mark.parametrize(
    ("adjacency", "message"),
    [
        (PATH, "adjacency is a ndarray, expected a matrix of scipy.sparse: use build_graph"),
        (scipy.sparse.csr_array(PATH[:2]), r"adjacency has shape \(2, 3\), expected \(N, N\)"),
        (scipy.sparse.csr_array(-PATH), "has weight -1.0, expected a positive"),
    ],
)
def test_other_matrices_are_refused(adjacency, message):
    with pytest.raises(GraphError, match=message):
        graph_from_scipy(adjacency)


@given(graphs())
def test_the_matrix_of_a_graph_gives_it_back(graph: Graph):
    count = graph.num_nodes
    values = np.ones(graph.num_edges) if graph.edge_weight is None else graph.edge_weight
    matrix = scipy.sparse.csr_array((values, graph.indices, graph.indptr), shape=(count, count))
    again = graph_from_scipy(matrix, directed=graph.directed)
    np.testing.assert_array_equal(again.indptr, graph.indptr)
    np.testing.assert_array_equal(again.indices, graph.indices)
    if graph.edge_weight is not None and not (graph.edge_weight == 1).all():
        np.testing.assert_array_equal(again.edge_weight, graph.edge_weight)
