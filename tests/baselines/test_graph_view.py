from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.baselines.graph_view import GraphView
from gpn_scale.data.features import take_rows
from gpn_scale.errors import GraphError
from gpn_scale.nn.repeated import RepeatedInputs
from gpn_scale.nn.sparse import SparseMatrix
from tests.baselines.graphs import as_sparse, small_graph
from tests.oracles import dense_transition


def view_of(graph, scaling="none"):
    return GraphView.of(graph, scaling, torch.device("cpu"), torch.float64)


def dense(matrix):
    return matrix.multiply(torch.eye(matrix.shape[1], dtype=torch.float64)).numpy()


@pytest.mark.parametrize("directed", [False, True])
def test_matrices_are_normalised_adjacencies_computed_once(directed):
    graph = small_graph(nodes=60, directed=directed)
    edges = view_of(graph).edges
    for normalisation in ("sym", "rw"):
        for self_loops in (False, True):
            matrix = edges.transition(normalisation, self_loops=self_loops)
            expected = dense_transition(graph, normalisation, self_loops)
            np.testing.assert_allclose(dense(matrix), expected, atol=1e-7)
            assert edges.transition(normalisation, self_loops=self_loops) is matrix
    squared = dense_transition(graph, "sym", True) ** 2
    np.testing.assert_allclose(dense(edges.squared), squared, atol=1e-7)


def test_pairs_number_both_directions_of_an_edge_alike():
    graph = small_graph(nodes=60)
    row, column, pair = (part.numpy() for part in view_of(graph).edges.pairs)
    np.testing.assert_array_equal(pair == -1, row == column)
    number = dict(zip(zip(row, column, strict=True), pair, strict=True))
    assert all(number[column, row] == value for (row, column), value in number.items())
    assert pair.max() + 1 == graph.num_edges // 2


def test_what_a_node_depends_on_is_small_and_enough():
    graph = small_graph(nodes=400)
    view = view_of(graph)
    near, position = view.around(5, 1)
    assert near.graph.num_nodes < 200
    np.testing.assert_array_equal(
        near.feature_rows.features[position], take_rows(graph.features, np.array([5]))[0]
    )
    assert near.graph.out_degree[position] == graph.out_degree[5]
    everything, position = view.around(5, 50)
    assert everything is view
    assert position == 5


@pytest.mark.parametrize("sparse", [False, True])
def test_replaced_features_are_seen_by_maps_and_dense_rows(sparse):
    graph = small_graph(nodes=60)
    own = as_sparse(graph) if sparse else graph
    nodes, rows = np.array([40, 3]), np.full((2, 6), 7.0, np.float32)
    view = view_of(own).with_features(nodes, rows.__getitem__)
    weight = torch.eye(6, dtype=torch.float64)

    def linear(inputs):
        return inputs.matmul(weight) if isinstance(inputs, torch.Tensor) else inputs @ weight

    expected = graph.features.copy()
    expected[nodes] = rows
    np.testing.assert_allclose(view.project(linear), expected, rtol=1e-6)
    chosen = np.array([2, 3, 40])
    np.testing.assert_allclose(view.dense_rows(chosen), expected[chosen], rtol=1e-6)


def test_products_are_remembered_for_all_nodes_alone():
    view = view_of(as_sparse(small_graph(nodes=400)))
    assert isinstance(view.feature_rows.inputs, RepeatedInputs)
    near, _ = view.around(5, 1)
    for rows in (view.feature_rows.take(np.array([3, 40])), near.feature_rows):
        assert isinstance(rows.inputs, SparseMatrix)


def test_features_are_required_where_they_are_used():
    view = view_of(replace(small_graph(), features=None))
    with pytest.raises(GraphError, match="has no features"):
        _ = view.feature_rows


def test_labelled_nodes_are_those_of_the_split():
    graph = small_graph()
    view = view_of(graph)
    for (nodes, labels), own in (
        (view.training, graph.split.train),
        (view.validation, graph.split.val),
    ):
        np.testing.assert_array_equal(nodes, own)
        np.testing.assert_array_equal(labels, graph.labels[own])
