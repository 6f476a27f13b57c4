from pathlib import Path

import pytest
import torch

from gpn_scale.baselines.robust_gcn import RobustGCN, RobustOptions, unit_divergence
from gpn_scale.errors import ConfigError
from tests.baselines.graphs import CONFIG, check_learning, in_float64, small_graph
from tests.oracles import dense_transition


def test_robust_layers_by_hand():
    graph = small_graph()
    model = in_float64(RobustGCN).fit(graph)
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
        logits = layers(view, layers.first(view))
    torch.testing.assert_close(logits[0], mean)
    torch.testing.assert_close(logits[1], variance)


def test_divergence_from_unit_gaussians():
    mean = torch.tensor([[0.5, -1.0]], dtype=torch.float64)
    variance = torch.tensor([[0.3, 2.0]], dtype=torch.float64)
    normal = torch.distributions.Normal(mean, variance.sqrt())
    unit = torch.distributions.Normal(torch.zeros_like(mean), torch.ones_like(mean))
    expected = torch.distributions.kl_divergence(normal, unit).mean(1)
    torch.testing.assert_close(unit_divergence(mean, variance), expected)


def test_the_divergence_is_summed_over_nodes():
    graph, losses = small_graph(), []
    for weight in (0.0, 0.1):
        options = RobustOptions(divergence_weight=weight)
        model = RobustGCN(CONFIG, options, dtype=torch.float64).fit(graph)
        constant = {name: 0.1 + 0.0 * tensor for name, tensor in model.state().items()}
        model.load_state(graph, constant, Path())
        view = model.view(graph)
        losses.append(float(next(model.losses(view, model.generator(), 1)).detach()))
        divergence = float(unit_divergence(*model.layers.first(view)).detach().sum())
    assert losses[1] - losses[0] == pytest.approx(0.1 * divergence)
    assert divergence > graph.num_nodes * 1e-3


def test_the_network_learns_is_repeatable_and_is_restored(tmp_path):
    check_learning(RobustGCN, tmp_path)


def test_a_negative_rate_of_attention_is_refused():
    with pytest.raises(ConfigError, match=r"model\.attention is -1, expected at least 0"):
        RobustOptions(attention=-1.0)
