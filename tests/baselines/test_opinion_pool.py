from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.baselines.opinion_pool import (
    OpinionPool,
    PoolOptions,
    RowOpinionPool,
    expected_entropy,
    pooled_loss,
)
from gpn_scale.config import DiffusionConfig
from gpn_scale.errors import ConfigError, StoreError
from gpn_scale.nn.posterior import DirichletPosterior
from tests.baselines.graphs import CONFIG, LONGER, check_learning, small_graph
from tests.oracles import dense_diffusion, dense_transition
from tests.ppr.stored import write_store

DIFFUSION = DiffusionConfig(teleport=0.1, normalisation="rw")
QUIET = replace(CONFIG, encoder=replace(CONFIG.encoder, dropout=0.0), diffusion=DIFFUSION)
BATCHED = replace(QUIET, mode="minibatch")
ALPHA = torch.tensor([[2.0, 3.0, 1.5], [10.0, 1.0, 1.0], [1.0, 1.0, 1.2]], dtype=torch.float64)
WEIGHTS = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.0, 0.9]], dtype=torch.float64)


def mixtures():
    parts = torch.distributions.Dirichlet(ALPHA.expand(2, 3, 3))
    weights = torch.distributions.Categorical(WEIGHTS)
    return torch.distributions.MixtureSameFamily(weights, parts)


def test_the_loss_is_that_of_samples_of_the_mixtures():
    torch.manual_seed(0)
    drawn = mixtures().sample((100_000,))
    labels = torch.tensor([1, 0])
    sampled = -torch.stack([drawn[:, 0, 1], drawn[:, 1, 0]]).log().mean()
    loss = pooled_loss(DirichletPosterior(ALPHA), WEIGHTS.matmul, labels, entropy_weight=0.0)
    torch.testing.assert_close(loss, sampled, rtol=0.02, atol=0.0)


def test_the_loss_subtracts_a_lower_bound_on_the_entropy():
    labels = torch.tensor([1, 0])
    plain, reduced = (
        pooled_loss(DirichletPosterior(ALPHA), WEIGHTS.matmul, labels, weight)
        for weight in (0.0, 0.5)
    )
    bound = WEIGHTS @ torch.distributions.Dirichlet(ALPHA).entropy()
    torch.testing.assert_close(plain - reduced, 0.5 * bound.mean())
    torch.manual_seed(0)
    drawn = mixtures().sample((20_000,))
    sampled = -mixtures().log_prob(drawn).mean(0)
    spread = torch.distributions.Categorical(WEIGHTS).entropy()
    assert (bound < sampled).all()
    assert (sampled < bound + spread).all()


def test_the_models_loss_is_summed_over_training_nodes():
    graph, labels = small_graph(), torch.tensor([1, 0])
    model = OpinionPool(QUIET, dtype=torch.float64).fit(graph)
    opinions, weight = DirichletPosterior(ALPHA), QUIET.train.entropy_weight
    mean = pooled_loss(opinions, WEIGHTS.matmul, labels, weight)
    summed = model.loss(opinions, WEIGHTS.matmul, labels)
    torch.testing.assert_close(summed, len(graph.split.train) * mean)


def test_expected_entropy_is_that_of_samples():
    torch.manual_seed(0)
    drawn = torch.distributions.Dirichlet(ALPHA).sample((100_000,))
    sampled = torch.special.entr(drawn).sum(2).mean(0)
    expected = expected_entropy(DirichletPosterior(ALPHA))
    torch.testing.assert_close(expected, sampled, rtol=0.01, atol=0.0)


def slow_scores(model, graph):
    """Means and scores of every node's mixture, one node at a time, in NumPy."""
    rows = dense_diffusion(dense_transition(graph, "rw", True), 0.1, 10)
    np.testing.assert_allclose(rows.sum(1), 1.0)
    with torch.no_grad():
        alpha = model.opinions(model.view(graph).feature_rows.inputs, None).alpha_NC
    parts = torch.distributions.Dirichlet(alpha)
    categorical = torch.distributions.Categorical(alpha)
    surprise = torch.digamma(alpha.sum(1, keepdim=True) + 1) - torch.digamma(alpha + 1)
    conditional = (categorical.probs * surprise).sum(1).numpy()
    means = np.stack([row @ categorical.probs.numpy() for row in rows])
    total = -(means * np.log(means)).sum(1)
    return means, {
        "entropy": rows @ parts.entropy().numpy(),
        "evidence": -(rows @ alpha.sum(1).numpy()),
        "mutual_information": total - rows @ conditional,
    }


@pytest.mark.parametrize("kind", ["entropy", "evidence", "mutual_information"])
def test_predictions_are_means_and_scores_of_mixtures(kind):
    graph = small_graph()
    model = OpinionPool(QUIET, PoolOptions(epistemic=kind), dtype=torch.float64).fit(graph)
    prediction = model.predict(graph)
    means, scores = slow_scores(model, graph)
    np.testing.assert_allclose(prediction.probabilities, means, rtol=1e-5)
    np.testing.assert_allclose(prediction.epistemic, scores[kind], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(prediction.score("aleatoric"), -means.max(1), rtol=1e-5)
    if kind == "mutual_information":
        assert (prediction.epistemic >= 0.0).all()


def test_the_network_learns_is_repeatable_and_is_restored(tmp_path):
    check_learning(OpinionPool, tmp_path, replace(LONGER, diffusion=DIFFUSION))


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A graph and the path of its uncut rows."""
    graph, folder = small_graph(), tmp_path_factory.mktemp("pool") / "rows"
    facts = DIFFUSION.store_parameters
    return graph, write_store(str(folder), graph, DIFFUSION, k=graph.num_nodes, parameters=facts)


def test_whole_rows_in_one_batch_are_the_whole_graph(stored):
    graph, store = stored
    rows = RowOpinionPool(BATCHED, dtype=torch.float64).fit(graph, store=store.path).predict(graph)
    whole = OpinionPool(QUIET, dtype=torch.float64).fit(graph).predict(graph)
    np.testing.assert_allclose(rows.probabilities, whole.probabilities, atol=1e-4)
    np.testing.assert_allclose(rows.epistemic, whole.epistemic, atol=1e-2)


def test_small_batches_learn(stored):
    graph, store = stored
    small = replace(BATCHED, minibatch=replace(CONFIG.minibatch, batch_size=5))
    prediction = RowOpinionPool(small).fit(graph, store=store.path).predict(graph)
    test = graph.split.test
    assert (prediction.predicted_class[test] == graph.labels[test]).mean() > 0.6


def test_refusals(stored):
    graph, _ = stored
    unequal = replace(QUIET, diffusion=DiffusionConfig(normalisation="sym"))
    with pytest.raises(ConfigError, match=r"LOP-GPN mixes .* sum to 1, got .*=sym and") as caught:
        OpinionPool(unequal).fit(graph)
    assert caught.value.arguments == ("diffusion.normalisation", "diffusion.of")
    logs = replace(QUIET, diffusion=replace(DIFFUSION, of="log_evidence"))
    with pytest.raises(ConfigError, match=r"diffusion\.of=log_evidence: use rw and evidence"):
        OpinionPool(logs).fit(graph)
    with pytest.raises(StoreError, match="LOP-GPN-minibatch trains on the rows of a PPR store"):
        RowOpinionPool(BATCHED).fit(graph)
