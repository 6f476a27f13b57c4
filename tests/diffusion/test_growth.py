"""Nodes that join later, against dense matrices of the rebuilt graph, and every refusal."""

import doctest
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import MISSING_LABEL, CSRFeatures
from gpn_scale.data.preparation import Preparation
from gpn_scale.data.raw_columns import RawColumns
from gpn_scale.diffusion import growth
from gpn_scale.diffusion.growth import grown_graph, new_nodes
from gpn_scale.errors import GraphError
from tests.oracles import dense_adjacency
from tests.strategies import assert_same_graph, graphs

NORMALISATIONS = st.sampled_from(["sym", "rw"])
TRIANGLE = build_graph([0, 1, 2], [1, 2, 0], features=np.eye(3), name="triangle")
WEIGHTED = build_graph([0, 1, 2], [1, 2, 0], features=np.eye(3), edge_weight=[1, 2, 3])


@st.composite
def growths(draw, max_new=3):
    """A graph, neighbours of up to three new nodes, and edge weights or None.

    New nodes may be isolated; lists may hold repetitions, the node itself, and other new nodes.
    """
    graph = draw(graphs())
    num_new = draw(st.integers(0, max_new))
    node = st.integers(0, graph.num_nodes + num_new - 1)
    lists = st.lists(st.lists(node, max_size=5), min_size=num_new, max_size=num_new)
    neighbours = draw(lists)
    weights = None
    if graph.edge_weight is not None and draw(st.booleans()):
        weight = st.floats(2.0**-10, 2.0**10, width=32)
        sizes = [len(ids) for ids in neighbours]
        weights = [draw(st.lists(weight, min_size=size, max_size=size)) for size in sizes]
    return graph, neighbours, weights


def grown(graph, neighbours, weights):
    return new_nodes(graph, np.ones((len(neighbours), graph.num_features)), neighbours, weights)


def merged_by_hand(graph, neighbours, weights):
    """Adjacency of the grown graph by the rules of docs/architecture.md, one edge at a time."""
    size = graph.num_nodes + len(neighbours)
    matrix = np.zeros((size, size))
    matrix[: graph.num_nodes, : graph.num_nodes] = dense_adjacency(graph)
    for new, ids in enumerate(neighbours):
        for at, target in enumerate(ids):
            source = graph.num_nodes + new
            if source != target:
                matrix[source, target] += 1.0 if weights is None else weights[new][at]
    if not graph.directed:
        matrix = np.maximum(matrix, matrix.T)
    return matrix if graph.edge_weight is not None else (matrix > 0).astype(float)


@given(growths())
def test_a_rebuilt_graph_has_the_merged_edges(case):
    graph, neighbours, _ = case
    rebuilt = grown_graph(graph, grown(*case))
    np.testing.assert_allclose(dense_adjacency(rebuilt), merged_by_hand(*case), rtol=1e-6)
    assert rebuilt.directed == graph.directed
    assert rebuilt.num_nodes == graph.num_nodes + len(neighbours)
    assert rebuilt.labels[: graph.num_nodes].tolist() == graph.labels.tolist()
    assert (rebuilt.labels[graph.num_nodes :] == MISSING_LABEL).all()
    assert (rebuilt.node_names is None) == (graph.node_names is None)


@given(graphs())
def test_no_new_nodes_rebuild_the_same_graph(graph):
    assert_same_graph(grown_graph(graph, new_nodes(graph, [], [])), graph)


def test_edges_of_weighted_new_nodes_merge_by_the_house_rule():
    # 3 lists 4 twice (1 + 2), 4 lists 3 once with 2: the larger, 3, holds.
    new = new_nodes(WEIGHTED, np.eye(3)[:2], [[4, 4, 0], [3]], [[1, 2, 0.5], [2]])
    matrix = dense_adjacency(grown_graph(WEIGHTED, new))
    assert matrix[3, 4] == matrix[4, 3] == 3.0
    assert matrix[3, 0] == matrix[0, 3] == 0.5
    default = dense_adjacency(grown_graph(WEIGHTED, new_nodes(WEIGHTED, np.eye(3)[:1], [[1, 1]])))
    assert default[3, 1] == default[1, 3] == 2.0


@pytest.mark.parametrize("sparse_graph", [False, True])
@pytest.mark.parametrize("sparse_new", [False, True])
def test_new_features_become_what_the_graph_has(sparse_graph, sparse_new):
    dense = np.array([[0, 2], [0, 0], [3, 0]], np.float32)
    sparse = CSRFeatures(
        indptr=np.array([0, 1, 1, 2]),
        indices=np.array([1, 0], np.int32),
        values=np.array([2, 3], np.float32),
        num_columns=2,
    )
    graph = build_graph([0], [1], num_nodes=3, features=sparse if sparse_graph else dense)
    new = new_nodes(graph, sparse if sparse_new else dense, [[], [], []])
    assert isinstance(new.features, CSRFeatures) == sparse_graph
    stacked = grown_graph(graph, new).features
    values = stacked.to_dense() if isinstance(stacked, CSRFeatures) else stacked
    np.testing.assert_array_equal(values, np.concatenate([dense, dense]))


@pytest.mark.parametrize(
    ("features", "neighbours", "message"),
    [
        (
            np.ones((1, 3)),
            [[4]],
            r"new node 0: neighbour 4 does not exist, .* \[0, 4\).* come first",
        ),
        (np.ones((2, 3)), [[0], [1, -1]], "new node 1: neighbour -1 does not exist"),
        (np.ones((1, 3)), [np.array([2**63], np.uint64)], "neighbour 9223372036854775808 does not"),
        (np.ones((1, 3)), [[0.5]], "new node 0: neighbours must be a vector of integer node ids"),
        (np.ones((1, 3)), [[True]], "new node 0: neighbours must be a vector of integer node ids"),
        (np.ones((1, 3)), [0], "new node 0: neighbours must be a vector of integer node ids"),
        (np.ones((1, 2)), [[0]], r"features have shape \(1, 2\), expected \(1, 3\): give one row"),
        (np.ones((2, 3)), [[0]], r"features have shape \(2, 3\), expected \(1, 3\): give one row"),
        (np.ones(3), [[0]], r"features have shape \(3,\), expected \(N, F\)"),
        (np.full((1, 3), np.nan), [[0]], "'new nodes of triangle': features hold NaN .* node 0"),
    ],
)
def test_wrong_nodes_are_refused(features, neighbours, message):
    with pytest.raises(GraphError, match=message):
        new_nodes(TRIANGLE, features, neighbours)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([[1.0]], r"edge weights have shapes \[\(1,\)\], expected \[\(2,\)\]: give one weight"),
        ([[1.0, 2.0], []], r"edge weights have shapes .* expected \[\(2,\)\]"),
        ([[1.0, 0.0]], "edge 1 has weight 0.0, expected a positive, finite number"),
        ([[1.0, -1.0]], "edge 1 has weight -1.0, expected a positive"),
        ([[np.nan, 1.0]], "edge 0 has weight nan, expected a positive"),
        ([["a", "b"]], "weights are .*U.*, expected real numbers"),
        ([[3e38, 3e38]], "weights of a repeated edge add up to infinity"),
    ],
)
def test_wrong_weights_are_refused(weights, message):
    with pytest.raises(GraphError, match=message):
        new_nodes(WEIGHTED, np.ones((1, 3)), [[0, 0]], weights)


def test_weights_without_a_weighted_graph_are_refused():
    with pytest.raises(GraphError, match="graph 'triangle' has none: leave them out"):
        new_nodes(TRIANGLE, np.ones((1, 3)), [[0]], [[1.0]])


def test_nodes_of_another_graph_are_refused():
    new = new_nodes(TRIANGLE, np.ones((1, 3)), [[0]])
    other = build_graph([0], [1], num_nodes=2, name="other")
    with pytest.raises(GraphError, match=r"'other' has 2 nodes, .* made for one of 3"):
        grown_graph(other, new)


def test_examples_in_the_documentation():
    results = doctest.testmod(growth)
    assert results.attempted
    assert not results.failed


def test_a_grown_graph_keeps_the_preparation_but_not_the_raw_columns():
    table = pa.table({"age": [31, 29, 27]})
    preparation = Preparation.fit(table)
    features = preparation.apply(table).features
    graph = build_graph([0, 1], [1, 2], features=features)
    graph = replace(graph, preparation=preparation, raw_columns=RawColumns(table))
    rebuilt = grown_graph(graph, new_nodes(graph, [[0.5]], [[0]]))
    assert rebuilt.preparation == preparation
    assert rebuilt.raw_columns is None
