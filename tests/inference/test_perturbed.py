"""Perturbations against a graph that really has these features or edges."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.config import DiffusionConfig, EncoderConfig, RunConfig, TrainConfig
from gpn_scale.data.shifts import noise_rows, shifted_edges
from gpn_scale.estimator import GPNClassifier
from gpn_scale.inference.perturbed import Perturbed
from tests.inference.models import trained_model
from tests.ppr.stored import write_store

DIFFUSIONS = [
    DiffusionConfig(teleport=0.2),
    DiffusionConfig(teleport=0.1, normalisation="rw", steps="inf"),
    DiffusionConfig(teleport=0.3, steps=4, of="log_evidence"),
    DiffusionConfig(steps=0),
]
FIELDS = ("probabilities", "probabilities_no_network", "alpha_0", "alpha_0_no_network")


@pytest.fixture(params=DIFFUSIONS, ids=lambda d: f"{d.normalisation}-{d.steps}-{d.of}")
def classifier(request, small_graph):
    config = RunConfig(
        model="GPN",
        diffusion=request.param,
        encoder=EncoderConfig(hidden=8, latent=4, batch_norm=True, layers=3),
        train=TrainConfig(epochs=5),
    )
    return GPNClassifier(config, dtype=torch.float64).fit(small_graph)


def perturbed(classifier, graph):
    return Perturbed(classifier.trained, graph)


def assert_same(result, expected):
    for name in FIELDS:
        got, wanted = getattr(result, name), getattr(expected, name)
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6, err_msg=name)


def with_rows(graph, nodes, rows):
    features = np.array(graph.features, np.float64)
    features[nodes] = rows
    return replace(graph, features=features)


def test_the_unchanged_graph(classifier, small_graph):
    assert_same(perturbed(classifier, small_graph).unchanged(), classifier.predict(small_graph))


def test_a_node_alone_with_other_features(classifier, small_graph):
    nodes = np.array([3, 50, 299, 7])
    rows = noise_rows("normal", len(nodes), small_graph.num_features, 1)
    result = perturbed(classifier, small_graph).isolated(nodes, rows.__getitem__)
    for place, node in enumerate(nodes):
        alone = classifier.predict(with_rows(small_graph, [node], rows[place]))
        assert_same(result.rows(np.array([place])), alone.rows(np.array([node])))


def test_many_nodes_with_other_features(classifier, small_graph):
    nodes = np.arange(0, 300, 2)
    rows = noise_rows("bernoulli", len(nodes), small_graph.num_features, 1)
    result = perturbed(classifier, small_graph).with_features(nodes, rows.__getitem__)
    assert_same(result, classifier.predict(with_rows(small_graph, nodes, rows)))


def test_other_edges(classifier, small_graph):
    moved = shifted_edges(small_graph, 0.4, "random", 1)
    result = perturbed(classifier, small_graph).with_edges(moved)
    assert_same(result, classifier.predict(moved))


def test_logs_are_for_exact_mode_alone(small_graph):
    config = RunConfig(
        model="GPN", diffusion=DiffusionConfig(of="log_evidence"), train=TrainConfig(epochs=0)
    )
    classifier = GPNClassifier(config).fit(small_graph)
    for run in (
        lambda: classifier.predict_nodes(small_graph, [0], "rows"),
        lambda: classifier.predict(small_graph, store="rows"),
        lambda: classifier.explain(small_graph, 0),
        lambda: classifier.predict_new(small_graph, np.zeros((1, 8)), [[0]]),
        lambda: GPNClassifier(replace(config, mode="minibatch")).trainer(small_graph, "rows"),
    ):
        with pytest.raises(ValueError, match="adds up evidence, got diffusion"):
            run()


def test_the_local_score_is_the_evidence_in_the_rows(small_graph, tmp_path):
    diffusion = DiffusionConfig()
    trained = trained_model(small_graph, diffusion=diffusion)
    nodes = np.array([3, 50, 299])
    rows = write_store(str(tmp_path), small_graph, diffusion, k=5).rows(nodes)
    model = Perturbed(trained, small_graph)
    total = model.evidence_NC.sum(1).numpy()
    noise = noise_rows("normal", len(nodes), small_graph.num_features, 1)
    isolated = model.isolated(nodes, noise.__getitem__)
    plain, changed = model.local_score(nodes, rows), model.local_score(nodes, rows, isolated)
    for place, node in enumerate(nodes):
        ids, weights = (
            array[rows.row_ptr[place] : rows.row_ptr[place + 1]]
            for array in (rows.ids, rows.weights)
        )
        assert plain[place] == pytest.approx(-(weights * total[ids]).sum(), rel=1e-5)
        own = isolated.alpha_0_no_network[place] - 3
        evidence = np.where(ids == node, own, total[ids])
        assert changed[place] == pytest.approx(-(weights * evidence).sum(), rel=1e-5)
