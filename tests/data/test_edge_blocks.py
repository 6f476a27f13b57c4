"""Edges, components and degrees in blocks of any size against slow walks over the graph."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.edge_blocks import component_sizes, degrees, edge_blocks
from gpn_scale.data.graph_folder import open_graph, save_graph
from tests.strategies import graphs


def listed_edges(graph):
    pairs = [
        (node, int(other))
        for node in range(graph.num_nodes)
        for other in graph.indices[graph.indptr[node] : graph.indptr[node + 1]]
    ]
    return [pair for pair in pairs if graph.directed or pair[0] < pair[1]]


def walked_sizes(graph):
    """Sizes of components by walking from node to node."""
    neighbours = {node: set() for node in range(graph.num_nodes)}
    for source, target in listed_edges(graph):
        neighbours[source].add(target)
        neighbours[target].add(source)
    seen, sizes = set(), []
    for start in neighbours:
        if start in seen:
            continue
        reached, waiting = {start}, [start]
        while waiting:
            new = neighbours[waiting.pop()] - reached
            reached |= new
            waiting += new
        seen |= reached
        sizes.append(len(reached))
    return sorted(sizes, reverse=True)


@given(graphs(), st.integers(1, 20))
def test_blocks_hold_every_edge_once(graph, block_edges):
    blocks = list(edge_blocks(graph, block_edges))
    pairs = [(int(u), int(v)) for block in blocks for u, v in zip(*block, strict=True)]
    assert pairs == listed_edges(graph)
    longest = int(graph.out_degree.max())
    assert all(len(source) <= max(block_edges, longest) for source, _ in blocks)


@given(graphs(), st.integers(1, 20))
def test_components_do_not_depend_on_blocks(graph, block_edges):
    assert component_sizes(graph, block_edges).tolist() == walked_sizes(graph)


@given(graphs())
def test_degrees_count_edges_at_both_ends(graph):
    ends = np.array(listed_edges(graph), np.int64).reshape(-1)
    assert degrees(graph).tolist() == np.bincount(ends, minlength=graph.num_nodes).tolist()


@pytest.mark.parametrize("directed", [False, True])
def test_a_mapped_graph_gives_the_same(tmp_path, directed):
    rng = np.random.default_rng(0)
    graph = build_graph(*rng.integers(0, 500, (2, 400)), num_nodes=500, directed=directed)
    save_graph(graph, tmp_path / "graph")
    mapped = open_graph(tmp_path / "graph")
    assert isinstance(mapped.indices, np.memmap)
    assert component_sizes(mapped, 100).tolist() == walked_sizes(graph)
    assert degrees(mapped).tolist() == degrees(graph).tolist()
