from dataclasses import replace

import numpy as np

from gpn_scale.page import latent_points as latent_points_module
from gpn_scale.page.latent_points import latent_points
from gpn_scale.page.projection import principal_components


def test_points_have_the_evidence_of_their_own_features(trained, prediction, small_graph):
    nodes = np.array([250, 3, 17, *small_graph.marked[:2]])
    points, latent = latent_points(trained, small_graph, nodes)
    nodes = np.sort(nodes)
    assert latent.shape == (5, trained.config.encoder.latent)
    np.testing.assert_array_equal(points.position, principal_components(latent)[0])
    np.testing.assert_array_equal(points.label, small_graph.labels[nodes])
    np.testing.assert_array_equal(points.unknown, np.isin(nodes, small_graph.marked))
    own = prediction.alpha_0_no_network[nodes] - 3
    np.testing.assert_allclose(10**points.log_evidence, own, rtol=1e-3, atol=1e-5)


def test_many_nodes_are_sampled_and_the_sample_is_always_the_same(
    trained, small_graph, monkeypatch
):
    monkeypatch.setattr(latent_points_module, "_SAMPLED_NODES", 20)
    (first, latent), (second, _) = (
        latent_points(trained, small_graph, np.arange(300)) for _ in range(2)
    )
    assert len(first.position) == len(latent) == 20
    np.testing.assert_array_equal(first.position, second.position)


def test_no_nodes_have_no_points(trained, small_graph):
    points, latent = latent_points(trained, small_graph, np.array([], np.int64))
    assert points.position.shape == (0, 2)
    assert len(latent) == 0


def test_marks_decide_which_points_are_unknown(trained, small_graph):
    plain = replace(small_graph, marks={})
    points, _ = latent_points(trained, plain, small_graph.marked)
    assert not points.unknown.any()
