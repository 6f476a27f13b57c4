from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.baselines.evidential_gcn import EvidentialGCN, evidential_posterior
from gpn_scale.baselines.minibatch_gcn import in_neighbour_batches
from gpn_scale.baselines.post_hoc import SafeOptions
from gpn_scale.errors import ConfigError
from tests.baselines.graphs import CONFIG, chain, check_learning, in_float64, minibatch, small_graph
from tests.oracles import dense_transition


def test_evidence_is_the_exponential_of_clamped_logits():
    logits = torch.tensor([[0.0, 1.0], [-500.0, 500.0]], dtype=torch.float64)
    alpha = evidential_posterior(logits).alpha_NC.numpy()
    np.testing.assert_allclose(alpha[0], [2.0, 1.0 + np.e])
    np.testing.assert_allclose(alpha[1], [1.0 + np.exp(-30.0), 1.0 + np.exp(30.0)])


def test_the_loss_is_that_of_sampled_probabilities():
    logits = torch.tensor([[0.0, 1.0, 2.0], [1.5, -1.0, 0.3]], dtype=torch.float64)
    labels = torch.tensor([1, 2])
    alpha = 1.0 + logits.exp()
    torch.manual_seed(0)
    drawn = torch.distributions.Dirichlet(alpha).sample((200_000,))
    entropy = torch.distributions.Dirichlet(alpha).entropy().mean()
    weight = 0.3
    expected = -drawn[:, torch.arange(2), labels].log().mean() - weight * entropy
    model = EvidentialGCN(replace(CONFIG, train=replace(CONFIG.train, entropy_weight=weight)))
    torch.testing.assert_close(model.loss(logits, labels), expected, rtol=0.02, atol=0.0)


@pytest.mark.parametrize("steps", [0, 2])
def test_vacuity_is_averaged_over_neighbours(steps):
    graph = small_graph()
    options = SafeOptions(steps=steps, own_fraction=0.25)
    model = EvidentialGCN(CONFIG, options, dtype=torch.float64).fit(graph)
    assert model.reach == 2 + steps
    alpha = 1.0 + model.final_logits(model.view(graph)).exp().numpy()
    vacuity = 3 / alpha.sum(1)
    walk = 0.25 * np.eye(graph.num_nodes) + 0.75 * dense_transition(graph, "rw", False)
    expected = np.linalg.matrix_power(walk, steps) @ vacuity
    prediction = model.predict(graph)
    np.testing.assert_allclose(prediction.epistemic, expected, rtol=1e-6)
    np.testing.assert_allclose(
        prediction.probabilities, alpha / alpha.sum(1, keepdims=True), rtol=1e-6
    )


def test_single_nodes_are_changed_as_in_the_whole_graph():
    graph = chain(60, 20, 10)
    model = in_float64(EvidentialGCN).fit(graph)
    part, _ = model.view(graph).around(40, model.reach)
    assert part.graph.num_nodes == 11
    perturbed = model.perturbed(graph)
    node, rows = np.array([40]), np.array([[3.0]], np.float32)
    alone = perturbed.isolated(node, rows.__getitem__)
    whole = perturbed.with_features(node, rows.__getitem__).rows(node)
    np.testing.assert_allclose(alone.epistemic, whole.epistemic, rtol=1e-6)
    assert alone.epistemic != perturbed.unchanged().rows(node).epistemic


def test_the_network_learns_is_repeatable_and_is_restored(tmp_path):
    check_learning(EvidentialGCN, tmp_path)


def test_batches_of_neighbours_learn():
    graph = small_graph()
    model = in_neighbour_batches(EvidentialGCN)(minibatch(batch_size=5, neighbours=3)).fit(graph)
    test, prediction = graph.split.test, model.predict(graph)
    assert (prediction.predicted_class[test] == graph.labels[test]).mean() > 0.6
    assert ((prediction.epistemic > 0.0) & (prediction.epistemic <= 1.0)).all()


def test_negative_steps_are_refused():
    with pytest.raises(ConfigError, match=r"model\.steps and model\.own_fraction are -1 and 0\.5"):
        EvidentialGCN.Options(steps=-1)
