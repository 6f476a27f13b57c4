import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.conversion import as_graph
from gpn_scale.errors import GraphError
from tests.strategies import assert_same_graph

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)  # PyG's import
    from torch_geometric.data import Data, HeteroData

X = np.array([[0.5, 1.0], [1.5, 0.0], [2.5, 2.0]])
LABELS = [0, 1, 0]
EDGES = np.array([[0, 1], [1, 2]])
EXPECTED = build_graph(*EDGES, features=X, labels=LABELS)


def from_networkx():
    graph = nx.path_graph(3)
    for node in graph:
        graph.add_node(node, features=X[node], label=LABELS[node])
    return graph


@pytest.mark.parametrize(
    "thing",
    [
        (X, LABELS, EDGES),
        (X.tolist(), np.array(LABELS), EDGES.tolist()),
        (torch.tensor(X), torch.tensor(LABELS), torch.tensor(EDGES)),
        (X, LABELS, scipy.sparse.csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])),
        Data(edge_index=torch.tensor(EDGES), x=torch.tensor(X), y=torch.tensor(LABELS)),
        from_networkx(),
    ],
    ids=["arrays", "lists", "tensors", "adjacency", "pyg", "networkx"],
)
def test_the_same_graph_from_all_that_hold_it(thing):
    assert_same_graph(as_graph(thing), EXPECTED)


def test_a_graph_is_returned_as_it_is():
    assert as_graph(EXPECTED) is EXPECTED


def test_frames_and_texts_give_names():
    frame = pd.DataFrame(X, columns=["age", "size"])
    graph = as_graph((frame, pd.Series(["x", "y", None]), EDGES), name="mine")
    assert graph.name == "mine"
    assert graph.feature_names.tolist() == ["age", "size"]
    assert graph.class_names.tolist() == ["x", "y"]


def test_without_labels_or_edges():
    graph = as_graph((X, None, []))
    assert graph.num_nodes == 3
    assert graph.num_edges == graph.num_classes == 0


@pytest.mark.parametrize(
    ("thing", "kind"),
    [
        (3, "a int"),
        ("CoraML", "a str"),
        ((X, LABELS), "2 values"),
        ([X, LABELS, EDGES], "a list"),
        (pd.DataFrame({"edge_index": [1]}), "a DataFrame"),
        (scipy.sparse.eye(3), "a dia_matrix"),
        (HeteroData(), "a HeteroData"),
    ],
)
def test_a_wrong_type_gets_a_sentence_that_names_each_converter(thing, kind):
    with pytest.raises(GraphError, match=f"graph is {kind}, expected a Graph, ") as error:
        as_graph(thing)
    for converter in ("pyg", "networkx", "scipy"):
        assert f"graph_from_{converter}" in str(error.value)
    for converter in ("build_graph", "Graph.from_tables", "load_graph", "(X, y, edges)"):
        assert converter in str(error.value)
    assert error.value.arguments == ("graph",)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (np.zeros((5, 2), int), r"edges have shape \(5, 2\), expected \(2, E\).*: pass edges.T"),
        (np.zeros((3, 3), int), r"edges have shape \(3, 3\)"),
        ([0, 1], r"edges have shape \(2,\)"),
        ([[0], [3]], "names a node outside"),
        ([[0.5], [1.5]], "must be a vector of integer node ids"),
    ],
)
def test_wrong_edges_are_refused(edges, message):
    with pytest.raises(GraphError, match=message):
        as_graph((X, LABELS, edges))


@given(st.permutations(range(3)))
def test_the_order_of_nodes_is_that_of_the_rows(order):
    order = np.array(order)
    place = np.argsort(order)
    moved = as_graph((X[order], np.array(LABELS)[order], place[EDGES]))
    for node in range(3):
        near = place[EXPECTED.indices[EXPECTED.indptr[node] : EXPECTED.indptr[node + 1]]]
        row = slice(*moved.indptr[place[node] : place[node] + 2])
        assert sorted(moved.indices[row]) == sorted(near)
        np.testing.assert_array_equal(moved.features[place[node]], EXPECTED.features[node])
