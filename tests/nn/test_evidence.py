import math

import pytest
import torch

from gpn_scale.nn.evidence import Evidence


@pytest.mark.parametrize(
    ("budget", "factor"),
    [("latent", (4 * math.pi) ** 2), ("latent_classes", 3 * (4 * math.pi) ** 2), ("one", 1.0)],
)
def test_evidence_is_budget_times_density_times_prior(budget, factor):
    prior = torch.tensor([0.5, 0.3, 0.2]).double()
    model = Evidence(prior, latent=4, budget=budget, log_limit=30.0)
    log_density = torch.tensor([[-3.0, 0.0, 1.0]]).double()
    expected = factor * log_density.exp() * prior
    torch.testing.assert_close(model(log_density), expected)


def test_evidence_is_clamped_and_the_clamp_passes_no_gradient():
    model = Evidence(torch.tensor([0.5, 0.5]), latent=2, budget="latent", log_limit=30.0)
    log_density = torch.tensor([[-1e9, 1e9]], requires_grad=True)
    evidence = model(log_density)
    torch.testing.assert_close(evidence, torch.tensor([[math.exp(-30), math.exp(30)]]))
    evidence.sum().backward()
    assert log_density.grad.tolist() == [[0.0, 0.0]]


def test_no_nodes():
    model = Evidence(torch.tensor([0.5, 0.5]), latent=2, budget="latent", log_limit=30.0)
    assert model(torch.zeros(0, 2)).shape == (0, 2)
