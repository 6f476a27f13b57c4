"""Answers of changed graphs, against fitting nothing and predicting the changed graph itself."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.baselines.gaussian_process import FeatureProcess
from gpn_scale.baselines.gcn import VGCN, EnergyGCN
from gpn_scale.baselines.kernel import KernelDirichlet
from gpn_scale.baselines.perturbed import PerturbedBaseline
from gpn_scale.baselines.robust import RobustGCN
from gpn_scale.data.features import take_rows
from gpn_scale.data.shifts import noise_rows, shifted_edges
from tests.baselines.graphs import CONFIG, small_graph
from tests.baselines.test_gaussian_process import as_sparse

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
    found = PerturbedBaseline(model, graph).with_features(NODES, rows.__getitem__)
    expected = model.predict(changed(graph, NODES, rows))
    np.testing.assert_allclose(found.probabilities, expected.probabilities, rtol=1e-5)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("directed", [False, True])
def test_one_node_at_a_time(kind, directed):
    graph = small_graph(nodes=400, directed=directed)
    model = fitted(kind, graph)
    rows = noise_rows("normal", len(NODES), 6, 5)
    found = PerturbedBaseline(model, graph).isolated(NODES, rows.__getitem__)
    for place, node in enumerate(NODES):
        whole = model.predict(changed(graph, [node], rows[place]))
        expected = whole.rows(np.array([node]))
        np.testing.assert_allclose(
            found.probabilities[[place]], expected.probabilities, rtol=1e-5, atol=1e-7
        )
        if expected.epistemic_score is not None:
            np.testing.assert_allclose(
                found.epistemic[[place]], expected.epistemic, rtol=1e-5, atol=1e-7
            )


def test_what_a_node_sees_is_small_and_enough():
    graph = small_graph(nodes=400)
    view = fitted(VGCN, graph).view(graph)
    near, place = view.around(5, 1)
    assert near.graph.num_nodes < 200
    np.testing.assert_array_equal(
        near.feature_rows.features[place], take_rows(graph.features, np.array([5]))[0]
    )
    assert near.graph.out_degree[place] == graph.out_degree[5]
    everything, place = view.around(5, 50)
    assert everything is view
    assert place == 5


@pytest.mark.parametrize("kind", MODELS)
def test_moved_edges(kind):
    graph = small_graph()
    model = fitted(kind, graph)
    moved = shifted_edges(graph, 0.5, "random", 1)
    found = PerturbedBaseline(model, graph).with_edges(moved)
    np.testing.assert_allclose(
        found.probabilities, model.predict(moved).probabilities, rtol=1e-5, atol=1e-7
    )
    assert not np.allclose(found.probabilities, model.predict(graph).probabilities)


def test_sparse_features_stay_sparse_and_give_the_same():
    graph = small_graph()
    rows = noise_rows("bernoulli", len(NODES), 6, 5)
    answers = []
    for own in (graph, as_sparse(graph)):
        model = fitted(VGCN, own)
        answers.append(PerturbedBaseline(model, own).with_features(NODES, rows.__getitem__))
    np.testing.assert_allclose(answers[0].probabilities, answers[1].probabilities, rtol=1e-4)
