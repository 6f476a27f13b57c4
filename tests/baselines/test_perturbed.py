"""Predictions of perturbed graphs, compared with predicting the changed graph itself."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.baselines.feature_process import FeatureProcess
from gpn_scale.baselines.gcn import VGCN, EnergyGCN
from gpn_scale.baselines.graph_kernel import KernelDirichlet
from gpn_scale.baselines.robust_gcn import RobustGCN
from gpn_scale.data.shifts import noise_rows, shifted_edges
from tests.baselines.graphs import CONFIG, as_sparse, small_graph

MODELS = [VGCN, EnergyGCN, RobustGCN, KernelDirichlet, FeatureProcess]
NODES = np.array([3, 40, 77])


def fitted(kind, graph):
    return kind(CONFIG, dtype=torch.float64).fit(graph)


def changed(graph, nodes, rows):
    features = graph.features.copy()
    features[nodes] = rows
    return replace(graph, features=features)


@pytest.mark.parametrize("kind", MODELS)
def test_features_of_some_nodes(kind):
    graph = small_graph()
    model = fitted(kind, graph)
    rows = noise_rows("normal", len(NODES), 6, 5)
    prediction = model.perturbed(graph).with_features(NODES, rows.__getitem__)
    expected = model.predict(changed(graph, NODES, rows))
    np.testing.assert_allclose(prediction.probabilities, expected.probabilities, rtol=1e-5)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("directed", [False, True])
def test_one_node_at_a_time(kind, directed):
    graph = small_graph(nodes=400, directed=directed)
    model = fitted(kind, graph)
    rows = noise_rows("normal", len(NODES), 6, 5)
    prediction = model.perturbed(graph).isolated(NODES, rows.__getitem__)
    for position, node in enumerate(NODES):
        whole = model.predict(changed(graph, [node], rows[position]))
        expected = whole.rows(np.array([node]))
        np.testing.assert_allclose(
            prediction.probabilities[[position]], expected.probabilities, rtol=1e-5, atol=1e-7
        )
        if expected.epistemic_score is not None:
            np.testing.assert_allclose(
                prediction.epistemic[[position]], expected.epistemic, rtol=1e-5, atol=1e-7
            )


@pytest.mark.parametrize("kind", MODELS)
def test_moved_edges(kind):
    graph = small_graph()
    model = fitted(kind, graph)
    moved = shifted_edges(graph, 0.5, "random", 1)
    prediction = model.perturbed(graph).with_edges(moved)
    np.testing.assert_allclose(
        prediction.probabilities, model.predict(moved).probabilities, rtol=1e-5, atol=1e-7
    )
    assert not np.allclose(prediction.probabilities, model.predict(graph).probabilities)


def test_sparse_features_stay_sparse_and_give_the_same():
    graph = small_graph()
    rows = noise_rows("bernoulli", len(NODES), 6, 5)
    predictions = []
    for own in (graph, as_sparse(graph)):
        model = fitted(VGCN, own)
        predictions.append(model.perturbed(own).with_features(NODES, rows.__getitem__))
    np.testing.assert_allclose(
        predictions[0].probabilities, predictions[1].probabilities, rtol=1e-4
    )


@pytest.mark.parametrize("kind", MODELS)
def test_the_unchanged_graph_is_predicted_as_by_the_model_and_has_no_local_score(kind):
    graph = small_graph()
    model = fitted(kind, graph)
    perturbed = model.perturbed(graph)
    unchanged, prediction = perturbed.unchanged(), model.predict(graph)
    np.testing.assert_array_equal(unchanged.probabilities, prediction.probabilities)
    assert perturbed.local_score(NODES, None, None) is None
