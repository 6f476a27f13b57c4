"""Edges that a node gains and loses, against the graph that is built anew, and every refusal."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Graph
from gpn_scale.diffusion.edge_patch import (
    EdgePatch,
    grown,
    patched_degree,
    patched_row,
    rewired,
)
from gpn_scale.diffusion.growth import grown_graph
from gpn_scale.errors import GraphError
from tests.diffusion.test_growth import grown as joined
from tests.diffusion.test_growth import growths
from tests.oracles import dense_adjacency
from tests.strategies import graphs

PATH = build_graph([0, 1], [1, 2], num_nodes=4, name="path")
WEIGHTED = build_graph([0, 1], [1, 2], num_nodes=4, edge_weight=[2.0, 3.0], name="weighted")


@dataclass(frozen=True)
class Rewiring:
    """A graph, a node, and the edges that it gains and loses."""

    graph: Graph
    node: int
    added: list[int]
    weights: list[float] | None
    removed: list[int]

    @property
    def patch(self) -> EdgePatch:
        edges: dict[str, Any] = {"add": self.added, "remove": self.removed}
        return rewired(self.graph, self.node, add_weights=self.weights, **edges)


@st.composite
def rewirings(draw, graph=None):
    """Edges to any nodes that are no neighbours, and some or all of the neighbours."""
    graph = draw(graphs()) if graph is None else graph
    node = draw(st.integers(0, graph.num_nodes - 1))
    neighbours = graph.indices[graph.indptr[node] : graph.indptr[node + 1]].tolist()
    others = [v for v in range(graph.num_nodes) if v != node and v not in neighbours]
    added = draw(st.lists(st.sampled_from(others), unique=True)) if others else []
    removed = draw(st.lists(st.sampled_from(neighbours), unique=True)) if neighbours else []
    weights = None
    if graph.edge_weight is not None and draw(st.booleans()):
        weight = st.floats(2.0**-10, 2.0**10, width=32)
        weights = draw(st.lists(weight, min_size=len(added), max_size=len(added)))
    return Rewiring(graph, node, added, weights, removed)


def rebuilt(case: Rewiring) -> Graph:
    """The changed graph by `build_graph`, from a dense matrix that is changed edge by edge."""
    graph, node = case.graph, case.node
    matrix = dense_adjacency(graph)
    weights = [1.0] * len(case.added) if case.weights is None else case.weights
    entries = [*zip(case.added, weights, strict=True), *((v, 0.0) for v in case.removed)]
    for end, weight in entries:
        matrix[node, end] = weight
        if not graph.directed:
            matrix[end, node] = weight
    source, target = np.nonzero(matrix)
    return build_graph(
        source,
        target,
        num_nodes=graph.num_nodes,
        edge_weight=None if graph.edge_weight is None else matrix[source, target],
        directed=graph.directed,
    )


@given(rewirings())
def test_a_patch_changes_the_adjacency_as_a_new_graph_would(case):
    matrix = dense_adjacency(case.graph)
    np.add.at(matrix, (case.patch.source, case.patch.target), case.patch.weight)
    np.testing.assert_array_equal(matrix, dense_adjacency(rebuilt(case)))
    assert case.patch.num_new == 0


@given(rewirings())
def test_rows_and_degrees_are_those_of_the_changed_graph(case):
    changed = rebuilt(case)
    assert_rows(case.graph, case.patch, changed)


@given(growths())
def test_rows_and_degrees_are_those_of_the_grown_graph(case):
    new = joined(*case)
    assert_rows(case[0], grown(new), grown_graph(case[0], new))


def assert_rows(graph, patch, changed):
    matrix, every = dense_adjacency(changed), np.arange(changed.num_nodes)
    degree = patched_degree(graph, patch, every[::-1])
    assert degree.tolist() == changed.out_degree[::-1].tolist()
    for node in every:
        neighbours, weights = patched_row(graph, patch, node)
        assert neighbours.tolist() == np.flatnonzero(matrix[node]).tolist()
        np.testing.assert_array_equal(weights, matrix[node, neighbours])


@pytest.mark.parametrize(
    ("graph", "edges", "message"),
    [
        (PATH, {"add": [3, 0]}, "add_edges holds node 0, which is a neighbour of node 1 already"),
        (PATH, {"remove": [3]}, "remove_edges holds node 3, which is not a neighbour of node 1"),
        (PATH, {"add": [1]}, "add_edges joins node 1 to itself"),
        (PATH, {"remove": [1]}, "remove_edges joins node 1 to itself"),
        (PATH, {"add": [3, 3]}, "add_edges holds node 3 more than once"),
        (PATH, {"remove": [0, 0]}, "remove_edges holds node 0 more than once"),
        (PATH, {"add": [4]}, r"add_edges holds 4, expected nodes in \[0, 4\)"),
        (PATH, {"remove": [-1]}, r"remove_edges holds -1, expected nodes in \[0, 4\)"),
        (PATH, {"add": [0.5]}, "add_edges must be a vector of integer node ids"),
        (PATH, {"add": [3], "add_weights": [1.0]}, "but graph 'path' has none: leave them out"),
        (WEIGHTED, {"add": [3], "add_weights": [1.0, 2.0]}, r"shape \(2,\) .* each of the 1 added"),
        (WEIGHTED, {"add": [3], "add_weights": ["a"]}, "expected one number"),
        (WEIGHTED, {"add": [3], "add_weights": [0.0]}, "holds 0.0, expected positive, finite"),
        (WEIGHTED, {"add": [3], "add_weights": [np.nan]}, "holds nan, expected positive, finite"),
        (WEIGHTED, {"add": [3], "add_weights": [1e300]}, r"holds 1e\+300, expected positive"),
    ],
)
def test_wrong_changes_are_refused(graph, edges, message):
    with pytest.raises(GraphError, match=message):
        rewired(graph, 1, **edges)


def test_directed_edges_change_at_their_source_alone():
    graph = build_graph([0, 1], [1, 2], num_nodes=3, directed=True)
    patch = rewired(graph, 1, add=[0], remove=[2])
    assert list(zip(patch.source, patch.target, patch.weight, strict=True)) == [
        (1, 0, 1.0),
        (1, 2, -1.0),
    ]
    with pytest.raises(GraphError, match="remove_edges holds node 0, which is not a neighbour"):
        rewired(graph, 1, remove=[0])  # the edge from 0 to 1 does not leave node 1
