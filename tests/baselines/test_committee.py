import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.baselines.committee import Committee, CommitteeGCN, LatentNetwork, RowCommittee
from gpn_scale.baselines.minibatch_gcn import in_neighbour_batches
from gpn_scale.config import DiffusionConfig
from gpn_scale.errors import StoreError
from tests.baselines.graphs import CONFIG, LONGER, check_learning, in_float64, small_graph
from tests.oracles import dense_diffusion, dense_transition
from tests.ppr.stored import write_store

DIFFUSION = DiffusionConfig(teleport=0.1)
QUIET = replace(CONFIG, encoder=replace(CONFIG.encoder, dropout=0.0), diffusion=DIFFUSION)
BATCHED = replace(QUIET, mode="minibatch")


def dense_latent(model, graph):
    """Latent positions by dense products, in NumPy."""
    layers = model.layers
    first, second = layers.first.weight.T, layers.further[0]
    first, second, *biases = (one.detach().numpy() for one in (first, second, *layers.biases))
    transition = dense_transition(graph, "sym", True)
    if isinstance(model, CommitteeGCN):
        hidden = np.maximum(transition @ graph.features @ first + biases[0], 0.0)
        return transition @ hidden @ second + biases[1]
    hidden = np.maximum(graph.features @ first + biases[0], 0.0)
    return dense_diffusion(transition, 0.1, 10) @ (hidden @ second + biases[1])


@pytest.mark.parametrize("kind", [Committee, CommitteeGCN])
def test_posteriors_are_flows_of_positions_that_the_network_gave(kind):
    graph = small_graph()
    model = in_float64(kind, diffusion=DIFFUSION).fit(graph)
    latent = torch.from_numpy(dense_latent(model, graph))
    with torch.no_grad():
        log_density = model.network.flow.log_density(latent).numpy()
    train = graph.labels[graph.split.train]
    frequency = np.bincount(train) / len(train)
    budget = math.sqrt(4.0 * math.pi) ** model.config.encoder.latent
    alpha = 1.0 + budget * np.exp(log_density) * frequency
    total = alpha.sum(1)
    prediction = model.predict(graph)
    np.testing.assert_allclose(prediction.probabilities, alpha / total[:, None], rtol=1e-5)
    np.testing.assert_allclose(prediction.epistemic, -total, rtol=1e-5)


def test_the_loss_is_the_expected_cross_entropy_minus_entropy_summed_over_training_nodes():
    graph = small_graph()
    model = in_float64(Committee).fit(graph)
    latent = torch.randn(4, model.config.encoder.latent, dtype=torch.float64)
    labels = torch.tensor([0, 2, 1, 1])
    with torch.no_grad():
        alpha = model.network.posterior(latent).alpha_NC
        loss = model.loss(latent, labels)
    torch.manual_seed(0)
    drawn = torch.distributions.Dirichlet(alpha).sample((100_000,))
    sampled = -drawn[:, torch.arange(4), labels].log().mean()
    entropy = torch.distributions.Dirichlet(alpha).entropy().mean()
    mean = sampled - model.config.train.entropy_weight * entropy
    expected = len(graph.split.train) * mean
    torch.testing.assert_close(loss, expected, rtol=0.02, atol=0.0)


@pytest.mark.parametrize("kind", [Committee, CommitteeGCN])
def test_networks_learn_are_repeatable_and_are_restored(kind, tmp_path):
    check_learning(kind, tmp_path, LONGER)


@pytest.mark.parametrize("neighbours", ["all", 3])
def test_graph_convolutions_train_on_batches_of_neighbours(neighbours):
    graph = small_graph()
    minibatch = replace(CONFIG.minibatch, batch_size=5, neighbours=neighbours)
    batched = in_neighbour_batches(CommitteeGCN)(replace(BATCHED, minibatch=minibatch)).fit(graph)
    assert isinstance(batched.module, LatentNetwork)
    test = graph.split.test
    assert (batched.predict(graph).predicted_class[test] == graph.labels[test]).mean() > 0.6


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A graph and the path of its uncut rows."""
    graph, folder = small_graph(), tmp_path_factory.mktemp("committee") / "rows"
    facts = DIFFUSION.store_parameters
    return graph, write_store(str(folder), graph, DIFFUSION, k=graph.num_nodes, parameters=facts)


def test_whole_rows_in_one_batch_are_the_whole_graph(stored):
    graph, store = stored
    rows = RowCommittee(BATCHED, dtype=torch.float64).fit(graph, store=store.path).predict(graph)
    whole = Committee(QUIET, dtype=torch.float64).fit(graph).predict(graph)
    np.testing.assert_allclose(rows.probabilities, whole.probabilities, atol=1e-4)
    np.testing.assert_allclose(rows.epistemic, whole.epistemic, rtol=1e-2)


def test_a_missing_store_is_refused(stored):
    graph, _ = stored
    with pytest.raises(StoreError, match="CUQ-GNN-minibatch trains on the rows of a PPR store"):
        RowCommittee(BATCHED).fit(graph)
