"""`build_graph` against dense matrices, and every refusal."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import MISSING_LABEL, Graph, Split
from gpn_scale.errors import GraphError
from tests.data.test_graph import full_graph, sparse_features

NUM_NODES = 6
EDGES = st.lists(
    st.tuples(
        st.integers(0, NUM_NODES - 1),
        st.integers(0, NUM_NODES - 1),
        st.integers(1, 8).map(lambda quarter: quarter / 4),  # sums are exact in float32
    ),
    max_size=20,
)


def dense_merge(edges: list[tuple[int, int, float]], weighted: bool, directed: bool) -> np.ndarray:
    """The merging rules of `build_graph`, one edge at a time on a dense matrix."""
    matrix = np.zeros((NUM_NODES, NUM_NODES))
    for source, target, weight in edges:
        if source != target:
            matrix[source, target] += weight
    matrix = matrix if directed else np.maximum(matrix, matrix.T)
    return matrix if weighted else (matrix > 0).astype(float)


def dense(graph: Graph) -> np.ndarray:
    matrix = np.zeros((graph.num_nodes, graph.num_nodes))
    weight = np.ones(graph.num_edges) if graph.edge_weight is None else graph.edge_weight
    for node in range(graph.num_nodes):
        for at in range(graph.indptr[node], graph.indptr[node + 1]):
            matrix[node, graph.indices[at]] += weight[at]
    return matrix


def from_edges(edges: list[tuple[int, int, float]], weighted: bool, directed: bool) -> Graph:
    source, target, weight = (np.array([edge[i] for edge in edges]) for i in range(3))
    return build_graph(
        source,
        target,
        num_nodes=NUM_NODES,
        edge_weight=weight if weighted else None,
        directed=directed,
    )


@given(EDGES, st.booleans(), st.booleans())
def test_edges_merge_like_a_dense_matrix(edges, weighted, directed):
    graph = from_edges(edges, weighted, directed)
    expected = dense_merge(edges, weighted, directed)
    np.testing.assert_array_equal(dense(graph), expected)
    assert graph.num_edges == np.count_nonzero(expected)
    assert (graph.indptr.dtype, graph.indices.dtype) == (np.int64, np.int32)
    assert (graph.edge_weight is not None) == weighted
    np.testing.assert_array_equal(graph.out_degree, np.count_nonzero(expected, axis=1))


@given(EDGES, st.booleans(), st.booleans())
def test_rows_are_sorted_without_loops_and_repeats(edges, weighted, directed):
    graph = from_edges(edges, weighted, directed)
    for node in range(NUM_NODES):
        row = graph.indices[graph.indptr[node] : graph.indptr[node + 1]]
        assert (np.diff(row) > 0).all()
        assert node not in row


@given(EDGES, st.booleans(), st.randoms())
def test_the_order_of_edges_does_not_matter(edges, directed, random):
    shuffled = random.sample(edges, len(edges))
    for weighted in (False, True):
        graphs = (from_edges(listed, weighted, directed) for listed in (edges, shuffled))
        first, second = (graph.fingerprint() for graph in graphs)
        assert first == second


@given(EDGES, st.booleans())
def test_listing_an_edge_in_one_or_both_directions_is_the_same(edges, weighted):
    upwards = [edge for edge in edges if edge[0] < edge[1]]
    reversed_too = upwards + [(target, source, weight) for source, target, weight in upwards]
    once, twice = (from_edges(listed, weighted, False) for listed in (upwards, reversed_too))
    assert once.fingerprint() == twice.fingerprint()
    np.testing.assert_array_equal(dense(once), dense(once).T)


def test_the_larger_weight_holds_where_both_directions_are_given():
    graph = build_graph([0, 1, 1], [1, 0, 2], edge_weight=[1.0, 3.0, 2.0])
    np.testing.assert_array_equal(dense(graph), [[0, 3, 0], [3, 0, 2], [0, 2, 0]])


def test_many_repeats_do_not_wrap_around():
    graph = build_graph(np.zeros(513, int), np.ones(513, int))
    np.testing.assert_array_equal(dense(graph), [[0, 1], [1, 0]])


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weight", [None, []])
@pytest.mark.parametrize("num_nodes", [1, 3])
def test_a_graph_without_edges(directed, weight, num_nodes):
    graph = build_graph([], [], num_nodes=num_nodes, edge_weight=weight, directed=directed)
    assert (graph.num_nodes, graph.num_edges, graph.num_features) == (num_nodes, 0, 0)
    np.testing.assert_array_equal(graph.labels, [MISSING_LABEL] * num_nodes)
    np.testing.assert_array_equal(graph.out_degree, [0] * num_nodes)
    assert len(graph.marked) == 0
    assert len(graph.fingerprint()) == 32


def test_one_node_with_a_loop_has_no_edge():
    assert build_graph([0], [0]).num_edges == 0


def test_the_number_of_nodes_comes_from_the_largest_source_of_it():
    assert build_graph([0], [4]).num_nodes == 5
    assert build_graph([0], [1], labels=[0, 1, 0]).num_nodes == 3
    assert build_graph([0], [1], features=np.ones((4, 2))).num_nodes == 4
    assert build_graph([0], [1], num_nodes=7).num_nodes == 7


@pytest.mark.parametrize(("given_as", "kept_as"), [("f2", "f2"), ("f4", "f4"), ("f8", "f4")])
def test_feature_types(given_as, kept_as):
    graph = build_graph([], [], features=np.ones((2, 3), given_as))
    assert graph.features.dtype == np.dtype(kept_as)
    assert graph.num_features == 3


def test_integer_features_become_float32():
    assert build_graph([], [], features=[[1, 2]]).features.dtype == np.float32


def test_labels_and_classes():
    graph = build_graph([], [], labels=[2, -1, 0])
    assert (graph.num_classes, graph.labels.dtype) == (3, np.int32)
    assert build_graph([], [], labels=[0, 1], num_classes=5).num_classes == 5


@pytest.mark.parametrize("kind", ["u1", "u8", "i1", ">i4"])
def test_labels_of_any_integer_type(kind):
    graph = build_graph([0], [1], labels=np.array([0, 2, 1], kind))
    assert graph.labels.tolist() == [0, 2, 1]
    assert graph.labels.dtype == np.int32
    assert graph.num_classes == 3


def test_names_become_text():
    graph = build_graph([], [], labels=[0, 1], node_names=[7, 8], class_names=np.array([2, 3]))
    assert graph.node_names.tolist() == ["7", "8"]
    assert graph.class_names.tolist() == ["2", "3"]


def test_sparse_features_of_other_types_are_cast():
    wide = sparse_features(
        indptr=np.array([0, 2, 2, 3, 3], np.uint8), indices=np.array([0, 2, 1]), values=np.ones(3)
    )
    features = build_graph([], [], features=wide).features
    assert features.indptr.dtype == np.int64
    assert features.indices.dtype == np.int32
    assert features.values.dtype == np.float32


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": [1]}, "graph 'graph': 2 edge sources but 1 targets"),
        ({"source": [0.5, 1.0]}, "source must be a vector of integer node ids, got float64"),
        ({"target": [[0, 1]]}, "target must be a vector of integer node ids, got int64 of shape"),
        ({"marks": {"odd": [0.5]}}, "mark 'odd' must be a vector of integer node ids, got float64"),
        ({"source": [0, 9]}, r"edge 1 \(9 -> 2\) names a node outside \[0, 4\)"),
        ({"target": [-1, 2]}, r"edge 0 \(0 -> -1\) names a node outside \[0, 4\)"),
        ({"num_nodes": 0}, "got 0 nodes, expected 1 to 2147483647"),
        ({"num_nodes": 2**31}, "got 2147483648 nodes, expected 1 to 2147483647"),
        ({"labels": [0, 1, 0]}, r"labels has shape \(3,\), expected \(4,\)"),
        ({"labels": [0, 1, 0, -2]}, r"node 3 has label -2, expected a class in \[0, 2\) or -1"),
        ({"num_classes": 1}, r"node 1 has label 1, expected a class in \[0, 1\) or -1"),
        ({"labels": [0.0, 1.0, 0.0, 1.0]}, "labels must be a vector of integers, got float64"),
        ({"edge_weight": [1.0]}, r"2 edges but weights of shape \(1,\)"),
        ({"edge_weight": [1.0, 0.0]}, "edge 1 has weight 0.0, expected a positive, finite number"),
        ({"edge_weight": [np.inf, 1]}, "edge 0 has weight inf, expected a positive, finite"),
        ({"features": np.ones(4)}, r"features have shape \(4,\), expected \(N, F\)"),
        (
            {"features": np.ones((5, 1)), "num_nodes": 4},
            r"features has shape \(5, 1\), expected \(4, 1\)",
        ),
        ({"features": [[1], [1], [np.nan], [1]]}, "features hold NaN or infinity at node 2,"),
        (
            {"features": sparse_features(values=np.array([1, np.inf, 3], np.float32))},
            "features hold NaN or infinity at stored value 1,",
        ),
        ({"features": sparse_features(num_columns=2)}, r"feature column lies outside \[0, 2\)"),
        ({"features": [["a"]] * 4}, "features are <U1, expected real numbers"),
        ({"features": np.ones((4, 1), complex)}, "features are complex128, expected real numbers"),
        ({"features": [[1], [1, 2], [1], [1]]}, "features cannot become an array, expected rows"),
        ({"features": np.full((4, 1), 1e300)}, "NaN or infinity at node 0, .* finite in float32"),
        (
            {"features": sparse_features(values=np.array([1, 2, 1e300]))},
            "NaN or infinity at stored value 2, .* finite in float32",
        ),
        (
            {"features": sparse_features(values=np.ones(4))},
            r"columns of shape \(3,\) and values of shape \(4,\), expected \(3,\) as the row off",
        ),
        (
            {"features": sparse_features(indptr=np.array([0, 2, 1, 3, 3]))},
            "the 5 feature row offsets must begin with 0 and never decrease",
        ),
        (
            {"features": sparse_features(indptr=np.array([], int))},
            "the 0 feature row offsets must begin with 0",
        ),
        (
            {"features": sparse_features(indices=np.array([0, 2, 2**32]))},
            r"feature column lies outside \[0, 3\)",
        ),
        (
            {"features": sparse_features(indices=np.ones(3))},
            r"feature columns are float64 of shape \(3,\), expected a vector of integers",
        ),
        ({"features": sparse_features(num_columns=2**31)}, "got 2147483648 features, expected 0"),
        ({"labels": 1}, r"labels must be a vector of integers, got int64 of shape \(\)"),
        ({"labels": [-5, -5, -5, -5]}, r"node 0 has label -5, expected a class in \[0, 0\) or"),
        ({"labels": [0, 2**40, 0, 1]}, "got 1099511627777 classes, expected 0 to 1000000: number"),
        ({"labels": None, "num_classes": -1}, "got -1 classes, expected 0 to 1000000"),
        ({"edge_weight": ["a", "b"]}, "weights are <U1, expected real numbers"),
        ({"edge_weight": [1e300, 1]}, "edge 0 has weight inf, expected a positive, finite"),
        (
            {"source": [0, 0], "target": [1, 1], "edge_weight": [3e38, 3e38]},
            "weights of a repeated edge add up to infinity",
        ),
        ({"node_names": np.array(["a"])}, r"node_names has shape \(1,\), expected \(4,\)"),
        ({"node_names": [["a"]] * 4}, r"node_names has shape \(4, 1\), expected \(4,\)"),
        ({"node_names": [0.5] * 4}, "node_names are float64, expected text or integers"),
        ({"class_names": ["a", "b", "c"]}, r"class_names has shape \(3,\), expected \(2,\)"),
        ({"class_names": "ab"}, r"class_names has shape \(\), expected \(2,\)"),
        (
            {"split": Split(train=[0, 1], val=[4], test=[])},
            r"split: val holds node 4, expected ids in \[0, 4\)",
        ),
        (
            {"split": Split(train=[-1, 1], val=[], test=[])},
            r"split: train holds node -1, expected ids in \[0, 4\)",
        ),
        (
            {"labels": [0, 1, -1, 1]},
            "split: val holds node 2, which has no label; expected labelled nodes only",
        ),
        (
            {"split": Split(train=[0], val=[], test=[]), "num_classes": 3},
            r"class 1 has no node in the training set \(2 of 3 classes have none\)",
        ),
    ],
)
def test_wrong_input_is_refused(arguments, message):
    with pytest.raises(GraphError, match=message):
        full_graph(**({"num_nodes": 4} | arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        {"source": [0, 2**30], "target": [1, 2]},
        {"source": [0], "target": [1], "num_nodes": 2**31 - 1},
        {"source": [0], "target": [1], "labels": [0, 1, 0], "num_nodes": 2**31 - 1},
    ],
)
def test_one_damaged_id_does_not_fill_the_memory(arguments):
    with pytest.raises(GraphError, match=r"nodes, but edges, features and labels have only"):
        build_graph(**arguments)


def test_a_graph_may_have_many_nodes_without_edges():
    assert build_graph([0], [1], num_nodes=100_000).num_nodes == 100_000
