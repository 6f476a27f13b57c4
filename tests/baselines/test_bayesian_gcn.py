import math

import numpy as np
import pytest
import torch

from gpn_scale.baselines.bayesian_gcn import BayesianGCN, BayesianLayers, BayesianOptions
from gpn_scale.baselines.layers import Layers
from gpn_scale.errors import ConfigError
from tests.baselines.graphs import CONFIG, check_learning


def test_the_divergence_of_gaussian_weights_has_its_closed_form():
    options = BayesianOptions(prior_fraction=1.0, prior_wide=0.7, initial_deviation=0.3)
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
    options = BayesianOptions(prior_fraction=0.25, prior_wide=1.0, prior_narrow=0.1)
    layers = BayesianLayers(Layers(4, 2, CONFIG.encoder, torch.Generator()), options)
    weight = torch.linspace(-1.0, 1.0, 11, dtype=torch.float64)
    wide, narrow = (torch.distributions.Normal(0.0, scale) for scale in (1.0, 0.1))
    density = 0.25 * wide.log_prob(weight).exp() + 0.75 * narrow.log_prob(weight).exp()
    torch.testing.assert_close(layers.log_prior(weight), density.log())


def test_the_network_learns_is_repeatable_and_is_restored(tmp_path):
    check_learning(BayesianGCN, tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prior_fraction": 0.0}, r"model\.prior_fraction is 0"),
        ({"prior_wide": 0.0}, r"model\.prior_wide is 0"),
        ({"divergence_weight": -1.0}, r"model\.divergence_weight is -1"),
        ({"samples": 0}, r"model\.samples is 0, expected at least 1 drawn network"),
    ],
)
def test_options_out_of_range_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        BayesianOptions(**changes)
