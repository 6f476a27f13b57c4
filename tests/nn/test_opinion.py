"""The opinion's forward pass against plain matrices, its seed, and its sizes."""

import pytest
import torch

from gpn_scale.config import EncoderConfig, FlowConfig, OpinionConfig, RunConfig
from gpn_scale.nn.noise import Noise
from gpn_scale.nn.opinion import Opinion

CONFIG = RunConfig(encoder=EncoderConfig(hidden=6, latent=4), opinion=OpinionConfig(dropout=0.5))


def opinion_of(config=CONFIG, *, num_features=5, num_classes=3, seed=1):
    generator = torch.Generator().manual_seed(seed)
    sizes = {"num_features": num_features, "num_classes": num_classes}
    return Opinion(config, **sizes, generator=generator).double()


def test_logits_of_a_perceptron_are_diffused(generator):
    opinion = opinion_of()
    x_NF = torch.randn(7, 5, generator=generator, dtype=torch.float64)
    rows_BN = torch.rand(2, 7, generator=generator, dtype=torch.float64)
    first, last = opinion.encoder.first, opinion.encoder.further[0]
    hidden_NH = (x_NF @ first.weight.T + first.bias).relu()
    expected_BC = rows_BN @ (hidden_NH @ last.weight.T + last.bias)
    torch.testing.assert_close(opinion(x_NF, lambda logits_NC: rows_BN @ logits_NC), expected_BC)


@pytest.mark.parametrize("num_nodes", [0, 1])
@pytest.mark.parametrize("num_classes", [1, 2])
def test_no_node_and_one_node(num_nodes, num_classes):
    opinion = opinion_of(num_classes=num_classes)
    x_NF = torch.ones(num_nodes, 5, dtype=torch.float64)
    assert opinion(x_NF, lambda logits_NC: logits_NC).shape == (num_nodes, num_classes)
    assert opinion.num_classes == num_classes


def test_dropout_is_its_own_and_needs_noise(generator):
    opinion, x_NF = opinion_of(), torch.ones(4, 5, dtype=torch.float64)

    def logits(model, noise=None):
        return model(x_NF, lambda logits_NC: logits_NC, noise)

    plain = logits(opinion)
    assert torch.equal(plain, logits(opinion.train()))
    assert not torch.equal(plain, logits(opinion, Noise.drawn(generator)))
    config = RunConfig(
        encoder=EncoderConfig(hidden=6, latent=4, dropout=0.9), opinion=OpinionConfig(dropout=0.0)
    )
    without = opinion_of(config)
    torch.testing.assert_close(logits(without, Noise.drawn(generator)), logits(without))


def test_the_generator_decides_on_initial_values_and_evidence_settings_do_not():
    other = RunConfig(encoder=EncoderConfig(hidden=6, latent=9), flow=FlowConfig(radial_layers=2))
    first, same, changed = (
        opinion_of(config, seed=seed).state_dict()
        for config, seed in ((CONFIG, 1), (other, 1), (CONFIG, 2))
    )
    assert first.keys() == same.keys()
    assert all(torch.equal(first[name], same[name]) for name in first)
    assert not torch.equal(first["encoder.first.weight"], changed["encoder.first.weight"])


def test_all_parameters_train_from_the_first_step():
    opinion = opinion_of()
    assert opinion.warmup_parameters() == []
    assert set(opinion.parameters()) == set(opinion.encoder.parameters())


def test_cluster_means_join_the_state_once_they_are_known():
    opinion = opinion_of()
    assert "cluster_PS" not in opinion.state_dict()
    opinion.cluster_PS = torch.zeros(2, 4)
    assert opinion.state_dict()["cluster_PS"].shape == (2, 4)
