import pytest
import torch
from scipy import special

from gpn_scale.nn.losses import bayesian_loss
from gpn_scale.nn.posterior import DirichletPosterior
from tests.nn.test_posterior import exact_entropy, random_alpha


def test_loss_is_a_sum_over_nodes(generator):
    posterior = random_alpha(generator, rows=2)
    label = torch.tensor([1, 2])
    alpha = posterior.alpha_NC.numpy()
    expected = special.digamma(alpha.sum(1)) - special.digamma(alpha[[0, 1], [1, 2]])
    expected -= 0.3 * exact_entropy(alpha)
    loss = bayesian_loss(posterior, label, entropy_weight=0.3)
    assert loss.item() == pytest.approx(expected.sum())


def test_more_evidence_for_the_label_lowers_the_loss():
    label = torch.tensor([0])
    losses = [
        bayesian_loss(
            DirichletPosterior.from_evidence(torch.tensor([[evidence, 1.0]])),
            label,
            entropy_weight=0.0,
        ).item()
        for evidence in (0.0, 1.0, 10.0, 1e6)
    ]
    assert losses == sorted(losses, reverse=True)


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("classes", [1, 2])
def test_small_sizes(rows, classes):
    posterior = DirichletPosterior.from_evidence(torch.ones(rows, classes))
    loss = bayesian_loss(posterior, torch.zeros(rows, dtype=torch.long), entropy_weight=1.0)
    assert loss.shape == ()
    assert loss.isfinite()
