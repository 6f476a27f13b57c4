import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.errors import GraphError
from precompute.edge_inputs import graph_of_edges
from tests.oracles import dense_adjacency
from tests.strategies import graphs

PATH = [[0, 1], [1, 2]]


def sources_of(graph):
    return np.repeat(np.arange(graph.num_nodes), graph.out_degree)


@given(graph=graphs(), directed=st.booleans())
def test_all_forms_of_the_same_edges_give_the_same_graph(graph, directed):
    weight = graph.edge_weight
    ends = np.stack([sources_of(graph), graph.indices])
    shape = (graph.num_nodes, graph.num_nodes)
    data = np.ones(graph.num_edges) if weight is None else weight
    matrix = scipy.sparse.csr_array((data, graph.indices, graph.indptr), shape=shape)
    forms = [
        graph_of_edges(ends, num_nodes=graph.num_nodes, edge_weight=weight, directed=directed),
        graph_of_edges((graph.indptr, graph.indices), edge_weight=weight, directed=directed),
        graph_of_edges(matrix, directed=directed),
        graph_of_edges(matrix.tocoo(), directed=directed),
    ]
    expected = dense_adjacency(graph)
    expected = expected if directed else np.maximum(expected, expected.T)
    for form in forms:
        np.testing.assert_allclose(dense_adjacency(form), expected, rtol=1e-6)
        assert form.directed is directed


def test_a_graph_is_returned_as_it_is():
    graph = graph_of_edges(PATH)
    assert graph_of_edges(graph, directed=False) is graph


def test_loops_are_dropped_and_repeated_edges_become_one():
    graph = graph_of_edges([[0, 0, 1, 1], [0, 1, 0, 0]], edge_weight=[9.0, 1.0, 2.0, 3.0])
    assert dense_adjacency(graph).tolist() == [[0.0, 1.0], [5.0, 0.0]]


def test_edges_may_be_missing():
    assert graph_of_edges(np.empty((2, 0), np.int64), num_nodes=3).num_edges == 0
    assert graph_of_edges([], num_nodes=3).num_nodes == 3


@pytest.mark.parametrize(
    ("edges", "options", "message"),
    [
        ([[0, 1], [1, 2], [2, 0]], {}, r"edges have shape \(3, 2\).*: pass edges.T$"),
        ([0, 1], {}, r"edges have shape \(2,\), expected \(2, E\)"),
        (([0, 1], [1, 0], [1, 1]), {}, r"a tuple of 3, expected \(indptr, indices\)"),
        (
            (np.array([0, 1, 1]), np.array([1, 2, 0])),
            {},
            r"rises from 0 to 3: to give sources and targets, pass np.stack",
        ),
        ((np.array([0, 2, 1, 2]), np.array([1, 2])), {}, "rises from 0 to 2"),
        ((np.array([1, 2]), np.array([0, 0])), {}, "rises from 0 to 2"),
        (([], []), {}, "rises from 0 to 0"),
        (([0.0, 1.0], [0]), {}, "indptr must be a vector of integer node ids"),
        (([0, 1], [7]), {}, r"names a node outside \[0, 1\)"),
        (([0, 1, 1], [1]), {"num_nodes": 2}, "omit num_nodes$"),
        (scipy.sparse.eye_array(3), {"edge_weight": [1, 1, 1]}, "omit edge_weight$"),
        (PATH, {"edge_weight": [1.0, -1.0]}, "expected"),
    ],
)
def test_other_edges_are_refused(edges, options, message):
    with pytest.raises(GraphError, match=message):
        graph_of_edges(edges, **options)
