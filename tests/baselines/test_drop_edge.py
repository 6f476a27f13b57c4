from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.baselines.drop_edge import DropEdge, DropEdgeOptions, thinned
from gpn_scale.errors import ConfigError, GraphError
from tests.baselines.graphs import CONFIG, check_learning, in_float64, small_graph
from tests.oracles import dense_transition


def test_thinned_edges_are_a_normalised_part_of_the_graph():
    graph = small_graph()
    view = in_float64(DropEdge).view(graph)
    generator = torch.Generator().manual_seed(3)
    matrix = thinned(view.edges, 0.4, generator)
    dense = matrix.multiply(torch.eye(graph.num_nodes, dtype=torch.float64)).numpy()
    whole = dense_transition(graph, "sym", True)
    kept = dense > 0
    assert not (kept & (whole == 0)).any()
    np.testing.assert_array_equal(kept, kept.T)
    assert kept.diagonal().all()
    fraction = (kept.sum() - graph.num_nodes) / graph.num_edges
    assert 0.5 < fraction < 0.7
    degree = kept.sum(1)
    np.testing.assert_allclose(dense, kept / np.sqrt(np.outer(degree, degree)))
    kept_weights = thinned(
        view.edges, 0.4, torch.Generator().manual_seed(3), renormalised=False
    ).multiply(torch.eye(graph.num_nodes, dtype=torch.float64))
    scale = np.where(np.eye(graph.num_nodes) > 0, 1.0, 1.0 / 0.6)
    np.testing.assert_allclose(kept_weights, np.where(kept, whole * scale, 0.0))
    nothing = thinned(view.edges, 0.0, generator)
    np.testing.assert_allclose(nothing.values, view.edges.transition("sym").values)


def test_the_network_learns_is_repeatable_and_is_restored(tmp_path):
    check_learning(DropEdge, tmp_path)


def test_weighted_edges_and_impossible_fractions_are_refused():
    graph = small_graph()
    weighted = replace(graph, edge_weight=np.ones(graph.num_edges, np.float32))
    with pytest.raises(GraphError, match="DropEdge is defined for these"):
        DropEdge(CONFIG).fit(weighted)
    with pytest.raises(ConfigError, match=r"model\.edge_dropout is 1, expected in \[0, 1\)"):
        DropEdgeOptions(edge_dropout=1.0)
