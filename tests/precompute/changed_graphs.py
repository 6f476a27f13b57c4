"""Pairs of graphs, the second of which is a later version of the first."""

import numpy as np
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Graph


@st.composite
def changed_graphs(draw: st.DrawFn, most_nodes: int = 12) -> tuple[Graph, Graph]:
    """Two graphs: edges and nodes come, edges go or get other weights; nodes may be isolated."""
    num_nodes = draw(st.integers(1, most_nodes))
    num_added = draw(st.integers(0, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weighted, directed = draw(st.booleans()), draw(st.booleans())
    old_edges = rng.integers(num_nodes, size=(2, draw(st.integers(0, 3 * num_nodes))))
    kept = old_edges[:, rng.random(old_edges.shape[1]) < draw(st.sampled_from([0.0, 0.7, 1.0]))]
    new = rng.integers(num_nodes + num_added, size=(2, draw(st.integers(0, 6))))

    def graph(edges: np.ndarray, nodes: int, seed: int) -> Graph:
        weights = None
        if weighted:
            chosen = np.random.default_rng(seed).lognormal(0.0, 3.0, (nodes, nodes))
            weights = chosen[edges[0], edges[1]]
        return build_graph(*edges, num_nodes=nodes, edge_weight=weights, directed=directed)

    later_seed = draw(st.sampled_from([1, 2]))  # 1: weights of old nodes' edges may stay
    return (
        graph(old_edges, num_nodes, 1),
        graph(np.concatenate([kept, new], 1), num_nodes + num_added, later_seed),
    )
