"""Neighbourhoods against a search over all edges, and bounded work at hubs."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data import neighbourhoods
from gpn_scale.data.building import build_graph
from gpn_scale.data.neighbourhoods import neighbourhood
from gpn_scale.errors import ConfigError, GraphError
from tests.oracles import dense_adjacency
from tests.strategies import graphs


def expected_nodes(matrix, node, hops, limit):
    """Chosen nodes, their hops, and whether some are left, one node at a time."""
    chosen, hop, layer, left = [node], {node: 0}, [node], False
    for distance in range(1, hops + 1):
        strength = {}
        for source in layer:
            for target in np.flatnonzero(matrix[source]).tolist():
                if target not in hop:
                    weight = matrix[source, target]
                    strength[target] = max(weight, strength.get(target, 0.0))
        ranked = sorted(strength, key=lambda each: (-strength[each], each))
        layer = ranked[: limit - len(chosen)]
        left |= len(ranked) > len(layer)
        chosen += layer
        hop |= dict.fromkeys(layer, distance)
    return chosen, [hop[each] for each in chosen], left


@given(graphs(), st.data())
def test_they_are_those_of_a_search_over_all_edges(graph, data):
    node = data.draw(st.integers(0, graph.num_nodes - 1))
    hops, limit = data.draw(st.integers(0, 3)), data.draw(st.integers(1, 9))
    got = neighbourhood(graph, node, hops=hops, limit=limit)
    matrix = dense_adjacency(graph)
    nodes, hop, left = expected_nodes(matrix, node, hops, limit)
    assert got.nodes.tolist() == nodes
    assert got.hop.tolist() == hop
    assert got.truncated is left
    among = matrix[np.ix_(nodes, nodes)]
    if not graph.directed:
        among = np.triu(among)
    edges = {(int(i), int(j)): among[i, j] for i, j in zip(*np.nonzero(among), strict=True)}
    listed = zip(got.source.tolist(), got.target.tolist(), got.weight.tolist(), strict=True)
    assert {(i, j): weight for i, j, weight in listed} == edges
    assert len(got.source) == len(edges)


def test_a_hub_is_not_read_beyond_the_limit():
    size = 5000
    star = build_graph(np.zeros(size - 1, np.int64), np.arange(1, size))
    read = []

    class Row(np.ndarray):
        def astype(self, *args, **kwargs):
            read.append(self.size)
            return super().astype(*args, **kwargs)

    watched = replace(star, indices=star.indices.view(Row))
    got = neighbourhood(watched, 0, hops=2, limit=10)
    assert got.nodes.tolist() == list(range(10))
    assert got.truncated
    assert sum(read) < 300
    around = neighbourhood(watched, 4321, hops=2, limit=4)
    assert around.nodes.tolist() == [4321, 0, 1, 2]
    assert around.hop.tolist() == [0, 1, 2, 2]


def test_of_too_many_weighted_edges_the_first_are_looked_at(monkeypatch):
    monkeypatch.setattr(neighbourhoods, "MOST_EDGES", 3)
    weights = [1.0, 5.0, 2.0, 9.0]
    star = build_graph([0] * 4, [1, 2, 3, 4], edge_weight=weights)
    got = neighbourhood(star, 0, hops=1, limit=9)
    assert got.nodes.tolist() == [0, 2, 3, 1]
    assert got.truncated


def test_wrong_requests_are_refused():
    pair = build_graph([0], [1])
    with pytest.raises(GraphError, match=r"node is 2, expected a position in \[0, 2\)"):
        neighbourhood(pair, 2, hops=1, limit=5)
    for wrong in ({"hops": -1, "limit": 5}, {"hops": 1, "limit": 0}):
        with pytest.raises(ConfigError, match="expected at least 0 and at least 1"):
            neighbourhood(pair, 0, **wrong)
