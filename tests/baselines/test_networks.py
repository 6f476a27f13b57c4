import math
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from gpn_scale.baselines.appnp import APPNP, PPRGo
from gpn_scale.baselines.bayesian import BayesianGCN, BayesianLayers, BayesianOptions
from gpn_scale.baselines.gcn import VGCN, EnergyGCN, EnergyOptions, energy
from gpn_scale.baselines.kernel_gcn import (
    KernelGCN,
    KernelGCNOptions,
    dirichlet_divergence,
    expected_squared_error,
    mean_divergence,
)
from gpn_scale.baselines.layers import Layers, alone
from gpn_scale.baselines.robust import RobustGCN, RobustOptions, unit_divergence
from gpn_scale.baselines.sampled import (
    DropEdge,
    DropEdgeOptions,
    DropoutGCN,
    Ensemble,
    EnsembleOptions,
    SamplingOptions,
    thinned,
)
from gpn_scale.config import DiffusionConfig
from gpn_scale.errors import ConfigError, GraphError, RunError, StoreError
from tests.baselines.graphs import CONFIG, small_graph
from tests.oracles import dense_transition
from tests.ppr.stored import write_store

NETWORKS = [VGCN, EnergyGCN, APPNP, RobustGCN, DropoutGCN, DropEdge, BayesianGCN, KernelGCN]


def exact(model, **changes):
    return model(replace(CONFIG, **changes), dtype=torch.float64)


def pyg():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)
        from torch_geometric import nn

        return nn


def edge_index(graph):
    source = np.repeat(np.arange(graph.num_nodes), graph.out_degree)
    return torch.from_numpy(np.stack([source, graph.indices.astype(np.int64)]))


def test_vgcn_is_pygs_layers():
    graph = small_graph()
    model = exact(VGCN).fit(graph)
    layers = model.layers
    first, second = pyg().GCNConv(6, 8).double(), pyg().GCNConv(8, 3).double()
    first.lin.weight.data = layers.first.weight.data
    second.lin.weight.data = layers.further[0].data.T
    first.bias.data, second.bias.data = layers.biases[0].data, layers.biases[1].data
    edges, inputs = edge_index(graph), torch.from_numpy(graph.features).double()
    with torch.no_grad():
        expected = second(first(inputs, edges).relu(), edges)
    found = model.final_logits(model.view(graph))
    torch.testing.assert_close(found, expected)
    probabilities = model.predict(graph).probabilities
    np.testing.assert_allclose(probabilities, expected.softmax(1), rtol=1e-6)


def test_appnp_is_pygs_propagation():
    graph = small_graph()
    model = exact(APPNP).fit(graph)
    view, layers = model.view(graph), model.layers
    with torch.no_grad():
        hidden = layers.first(torch.from_numpy(graph.features).double()) + layers.biases[0]
        alone = hidden.relu() @ layers.further[0] + layers.biases[1]
        expected = pyg().APPNP(10, 0.1)(alone, edge_index(graph))
    torch.testing.assert_close(model.final_logits(view), expected)


def test_energy_is_minus_the_log_of_summed_exponentials():
    logits = torch.tensor([[0.0, 0.0], [1.0, 3.0]], dtype=torch.float64)
    expected = [-math.log(2.0), -math.log(math.e + math.e**3)]
    np.testing.assert_allclose(energy(logits), expected)
    cooler = -2.0 * math.log(math.exp(0.5) + math.exp(1.5))
    np.testing.assert_allclose(energy(logits, 2.0)[1], cooler)
    graph = small_graph()
    model = exact(EnergyGCN).fit(graph)
    np.testing.assert_allclose(
        model.predict(graph).epistemic, energy(model.final_logits(model.view(graph))), rtol=1e-6
    )


@pytest.mark.parametrize("model", NETWORKS)
def test_networks_learn_are_repeatable_and_come_back_from_their_tensors(model, tmp_path):
    graph = small_graph()
    longer = replace(CONFIG, train=replace(CONFIG.train, epochs=60))
    fitted = model(longer).fit(graph)
    found = fitted.predict(graph)
    test = graph.split.test
    right = found.predicted_class[test] == graph.labels[test]
    assert right.mean() > 0.6  # three classes
    np.testing.assert_allclose(found.probabilities.sum(1), 1.0, rtol=1e-5)
    again = model(longer).fit(graph).predict(graph)
    np.testing.assert_array_equal(again.probabilities, found.probabilities)
    loaded = model(longer)
    loaded.load(graph, fitted.state(), tmp_path)
    np.testing.assert_array_equal(loaded.predict(graph).probabilities, found.probabilities)
    other = replace(longer, encoder=replace(longer.encoder, hidden=9))
    with pytest.raises(RunError):
        model(other).load(graph, fitted.state(), tmp_path)


def test_sampled_scores_are_mean_and_summed_variance():
    graph = small_graph()
    model = DropoutGCN(CONFIG, SamplingOptions(samples=7), dtype=torch.float64).fit(graph)
    view, generator = model.view(graph), model.generator(2)
    with torch.no_grad():
        model.module.eval()
        passes = torch.stack([model.logits(view, generator).softmax(1) for _ in range(7)])
    found = model.predict(graph)
    np.testing.assert_allclose(found.probabilities, passes.mean(0), rtol=1e-6)
    spread = passes.var(0, unbiased=False).sum(1)
    np.testing.assert_allclose(found.epistemic, spread, rtol=1e-5, atol=1e-12)


def test_an_ensemble_is_its_members(tmp_path):
    graph = small_graph()
    model = Ensemble(CONFIG, EnsembleOptions(members=3)).fit(graph)
    found = model.predict(graph)
    alone = [member.predict(graph).probabilities for member in model._members]
    assert len(alone) == 3
    assert not np.allclose(alone[0], alone[1])
    np.testing.assert_allclose(found.probabilities, np.mean(alone, 0), rtol=1e-5)
    loaded = Ensemble(CONFIG, EnsembleOptions(members=3))
    loaded.load(graph, model.state(), tmp_path)
    np.testing.assert_array_equal(loaded.predict(graph).epistemic, found.epistemic)


def test_thinned_edges_are_a_normalised_part_of_the_graph():
    graph = small_graph()
    view = exact(DropEdge).view(graph)
    generator = torch.Generator().manual_seed(3)
    matrix = thinned(view.edges, 0.4, generator)
    dense = matrix.multiply(torch.eye(graph.num_nodes, dtype=torch.float64)).numpy()
    whole = dense_transition(graph, "sym", True)
    kept = dense > 0
    assert not (kept & (whole == 0)).any()
    np.testing.assert_array_equal(kept, kept.T)
    assert kept.diagonal().all()
    share = (kept.sum() - graph.num_nodes) / graph.num_edges
    assert 0.5 < share < 0.7
    degree = kept.sum(1)
    np.testing.assert_allclose(dense, kept / np.sqrt(np.outer(degree, degree)))
    kept_weights = thinned(
        view.edges, 0.4, torch.Generator().manual_seed(3), renormalised=False
    ).multiply(torch.eye(graph.num_nodes, dtype=torch.float64))
    scale = np.where(np.eye(graph.num_nodes) > 0, 1.0, 1.0 / 0.6)
    np.testing.assert_allclose(kept_weights, np.where(kept, whole * scale, 0.0))
    nothing = thinned(view.edges, 0.0, generator)
    np.testing.assert_allclose(nothing.values, view.edges.transition("sym").values)


def test_the_divergence_of_gaussian_weights_has_its_closed_form():
    options = BayesianOptions(prior_share=1.0, prior_wide=0.7, initial_deviation=0.3)
    generator = torch.Generator().manual_seed(1)
    layers = BayesianLayers(Layers(4, 2, CONFIG.encoder, generator), options).double()
    with torch.no_grad():
        draws = [float(layers.draw(generator)[1]) for _ in range(4000)]
    expected = 0.0
    for name in layers.names:
        mean = layers.means.get_parameter(name).detach()
        ratio = (mean.square() + 0.3**2) / 0.7**2
        expected += float((math.log(0.7 / 0.3) + 0.5 * ratio - 0.5).sum())
    error = np.std(draws) / math.sqrt(len(draws))
    assert abs(np.mean(draws) - expected) < 4 * error


def test_the_prior_of_weights_is_a_mixture():
    options = BayesianOptions(prior_share=0.25, prior_wide=1.0, prior_narrow=0.1)
    layers = BayesianLayers(Layers(4, 2, CONFIG.encoder, torch.Generator()), options)
    weight = torch.linspace(-1.0, 1.0, 11, dtype=torch.float64)
    wide, narrow = (torch.distributions.Normal(0.0, scale) for scale in (1.0, 0.1))
    density = 0.25 * wide.log_prob(weight).exp() + 0.75 * narrow.log_prob(weight).exp()
    torch.testing.assert_close(layers.log_prior(weight), density.log())


def test_robust_layers_by_hand():
    graph = small_graph()
    model = exact(RobustGCN).fit(graph)
    layers, view = model.layers, model.view(graph)
    sym = torch.from_numpy(dense_transition(graph, "sym", True))
    inputs = torch.from_numpy(graph.features).double()

    def summed(mean, variance):
        attention = (-variance).exp()
        return sym @ (mean * attention), sym.square() @ (variance * attention.square())

    with torch.no_grad():
        mean = torch.nn.functional.elu(inputs @ layers.first_mean.weight.T)
        variance = (inputs @ layers.first_variance.weight.T).relu()
        mean, variance = summed(mean, variance)
        mean = torch.nn.functional.elu(mean @ layers.means[0])
        mean, variance = summed(mean, (variance @ layers.variances[0]).relu())
        found = layers(view, layers.first(view))
    torch.testing.assert_close(found[0], mean)
    torch.testing.assert_close(found[1], variance)


def test_divergence_from_unit_gaussians():
    mean = torch.tensor([[0.5, -1.0]], dtype=torch.float64)
    variance = torch.tensor([[0.3, 2.0]], dtype=torch.float64)
    normal = torch.distributions.Normal(mean, variance.sqrt())
    unit = torch.distributions.Normal(torch.zeros_like(mean), torch.ones_like(mean))
    expected = torch.distributions.kl_divergence(normal, unit).mean(1)
    torch.testing.assert_close(unit_divergence(mean, variance), expected)


def test_the_divergence_of_rgcn_is_summed_over_nodes():
    graph, losses = small_graph(), []
    for weight in (0.0, 0.1):
        options = RobustOptions(divergence_weight=weight)
        model = RobustGCN(CONFIG, options, dtype=torch.float64).fit(graph)
        model.load(graph, {name: 0.1 + 0.0 * t for name, t in model.state().items()}, Path())
        view = model.view(graph)
        losses.append(float(next(model.losses(view, model.generator(), 1)).detach()))
        divergence = float(unit_divergence(*model.layers.first(view)).detach().sum())
    assert losses[1] - losses[0] == pytest.approx(0.1 * divergence)
    assert divergence > graph.num_nodes * 1e-3


def test_losses_of_dirichlets_agree_with_samples():
    alpha = torch.tensor([[2.0, 3.0, 0.5], [10.0, 1.0, 1.0]], dtype=torch.float64)
    labels = torch.tensor([0, 2])
    torch.manual_seed(0)
    drawn = torch.distributions.Dirichlet(alpha).sample((20_000,))
    target = torch.nn.functional.one_hot(labels, 3)
    error = (target - drawn).square().sum(2).mean(0)
    torch.testing.assert_close(expected_squared_error(alpha, labels), error, rtol=0.03, atol=0.0)
    zero = dirichlet_divergence(alpha, alpha)
    torch.testing.assert_close(zero, torch.zeros_like(zero))


def test_pprgo_with_whole_rows_is_appnp(tmp_path):
    graph = small_graph()
    diffusion = DiffusionConfig(teleport=0.1)
    facts, k = diffusion.store_parameters, graph.num_nodes
    store = write_store(str(tmp_path / "rows"), graph, diffusion, k=k, parameters=facts)
    config = replace(CONFIG, encoder=replace(CONFIG.encoder, dropout=0.0), diffusion=diffusion)
    batched = replace(config, mode="minibatch")
    rows = PPRGo(batched, dtype=torch.float64).fit(graph, store=store.path).predict(graph)
    whole = APPNP(config, dtype=torch.float64).fit(graph).predict(graph)
    np.testing.assert_allclose(rows.probabilities, whole.probabilities, atol=1e-4)
    small = replace(batched, minibatch=replace(config.minibatch, batch_size=5))
    batches = PPRGo(small).fit(graph, store=store.path).predict(graph)
    test = graph.split.test
    assert (batches.predicted_class[test] == graph.labels[test]).mean() > 0.6
    with pytest.raises(StoreError, match="PPRGo trains on the rows of a store"):
        PPRGo(batched).fit(graph)
    other = replace(batched, diffusion=DiffusionConfig(teleport=0.3))
    with pytest.raises(StoreError, match=r"has rows of teleport 0\.1, the model diffuses"):
        PPRGo(other).fit(graph, store=store.path)
    with pytest.raises(ConfigError, match="PPRGo trains with mode=minibatch, got mode=exact"):
        PPRGo(config).fit(graph)
    with pytest.raises(ConfigError, match="VGCN trains with mode=exact, got mode=minibatch"):
        VGCN(batched).fit(graph)


def test_batch_norm_and_three_layers():
    shape = replace(CONFIG.encoder, layers=3, batch_norm=True)
    graph = small_graph()
    model = VGCN(replace(CONFIG, encoder=shape)).fit(graph)
    assert len(model.layers.norms) == 2
    assert model.reach == 3
    test = graph.split.test
    assert (model.predict(graph).predicted_class[test] == graph.labels[test]).mean() > 0.6


def test_the_students_divergence_is_from_the_teacher():
    alpha = torch.rand(5, 3, dtype=torch.float64) * 10 + 0.1
    teacher = torch.rand(5, 3, dtype=torch.float64).softmax(1)
    student = torch.distributions.Categorical(alpha)
    expected = torch.distributions.kl_divergence(student, torch.distributions.Categorical(teacher))
    torch.testing.assert_close(mean_divergence(alpha, teacher.log()), expected)


def test_batch_norm_needs_two_nodes_in_training_alone():
    shape = replace(CONFIG.encoder, batch_norm=True)
    layers = Layers(3, 2, shape, torch.Generator())
    one = torch.ones(1, shape.hidden)
    with pytest.raises(GraphError, match="batch-norm got a batch of one node"):
        layers.after_first(one, alone)
    assert layers.eval().after_first(one, alone).shape == (1, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (lambda: EnsembleOptions(members=0), r"model\.members is 0, expected at least 1 network"),
        (lambda: SamplingOptions(samples=0), r"model\.samples is 0"),
        (lambda: DropEdgeOptions(edge_dropout=1.0), r"model\.edge_dropout is 1"),
        (lambda: EnergyOptions(temperature=0.0), r"model\.temperature is 0"),
        (lambda: BayesianOptions(prior_share=0.0), r"model\.prior_share is 0"),
        (lambda: BayesianOptions(prior_wide=0.0), r"model\.prior_wide is 0"),
        (lambda: BayesianOptions(divergence_weight=-1.0), r"model\.divergence_weight is -1"),
        (lambda: RobustOptions(attention=-1.0), r"model\.attention is -1"),
        (lambda: KernelGCNOptions(teacher_weight=-1.0), r"model\.teacher_weight is -1"),
        (lambda: KernelGCNOptions(sigma=0.0), r"model\.sigma and model\.cutoff are 0"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        options()


def test_refusals_of_graphs():
    graph = small_graph()
    with pytest.raises(GraphError, match="has no features"):
        VGCN(CONFIG).fit(replace(graph, features=None))
    with pytest.raises(GraphError, match="has no split"):
        VGCN(CONFIG).fit(replace(graph, split=None))
    with pytest.raises(GraphError, match="this VGCN has learnt nothing yet"):
        VGCN(CONFIG).predict(graph)
    weighted = replace(graph, edge_weight=np.ones(graph.num_edges, np.float32))
    with pytest.raises(GraphError, match="DropEdge is defined for these"):
        DropEdge(CONFIG).fit(weighted)
