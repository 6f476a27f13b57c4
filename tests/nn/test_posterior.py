import numpy as np
import pytest
import torch
from torch.distributions import Dirichlet

from gpn_scale.nn.posterior import DirichletPosterior


def random_alpha(generator, rows=6, classes=4, log_scale=3.0):
    evidence = torch.exp(log_scale * torch.randn(rows, classes, generator=generator).double())
    return DirichletPosterior.from_evidence(evidence)


def exact_entropy(alpha: np.ndarray) -> np.ndarray:
    """The textbook form in extended precision by mpmath, one number at a time."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        values = []
        for row in alpha:
            row = [mpmath.mpf(float(a)) for a in row]
            total = sum(row)
            log_beta = sum(mpmath.loggamma(a) for a in row) - mpmath.loggamma(total)
            value = log_beta + (total - len(row)) * mpmath.digamma(total)
            values.append(float(value - sum((a - 1) * mpmath.digamma(a) for a in row)))
    return np.array(values)


def test_mean_and_total(generator):
    posterior = random_alpha(generator)
    reference = Dirichlet(posterior.alpha_NC)
    torch.testing.assert_close(posterior.mean_NC, reference.mean)
    torch.testing.assert_close(posterior.alpha_0_N, reference.concentration.sum(-1))


def test_expected_nll_is_the_mean_over_samples(generator):
    torch.manual_seed(0)
    posterior = random_alpha(generator, rows=3, log_scale=1.0)
    label = torch.tensor([0, 3, 1])
    samples = Dirichlet(posterior.alpha_NC).sample((200_000,))
    by_sampling = -samples.log()[:, torch.arange(3), label].mean(0)
    torch.testing.assert_close(posterior.expected_nll(label), by_sampling, rtol=0.02, atol=0.0)


def test_entropy_is_torchs_and_the_mean_over_samples(generator):
    torch.manual_seed(0)
    posterior = random_alpha(generator, log_scale=1.0)
    reference = Dirichlet(posterior.alpha_NC)
    torch.testing.assert_close(posterior.entropy(), reference.entropy(), rtol=1e-9, atol=1e-9)
    by_sampling = -reference.log_prob(reference.sample((200_000,))).mean(0)
    torch.testing.assert_close(posterior.entropy(), by_sampling, rtol=0.02, atol=0.02)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 2e-4)])
@pytest.mark.parametrize("scale", [0.0, 1.0, 29.0, 31.0, 1e4, 1e7, 1e12])
def test_entropy_does_not_cancel(dtype, tolerance, scale):
    alpha = 1.0 + scale * torch.tensor([[0.0, 0.5, 1.0], [1.0, 1.0, 1.0]], dtype=torch.float64)
    alpha = alpha.to(dtype)
    entropy = DirichletPosterior(alpha).entropy().double().numpy()
    np.testing.assert_allclose(entropy, exact_entropy(alpha.numpy()), atol=tolerance, rtol=1e-6)


def test_entropy_gradient_is_finite_and_right_across_the_seam():
    alpha = torch.tensor([[29.9, 30.1, 1.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a: DirichletPosterior(a).entropy(), alpha)
    huge = torch.tensor([[1e13, 1.0]], requires_grad=True)
    DirichletPosterior(huge).entropy().sum().backward()
    assert huge.grad.isfinite().all()


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("classes", [1, 2])
def test_small_sizes(rows, classes):
    posterior = DirichletPosterior.from_evidence(torch.ones(rows, classes))
    label = torch.zeros(rows, dtype=torch.long)
    assert posterior.mean_NC.shape == (rows, classes)
    assert posterior.expected_nll(label).shape == (rows,)
    assert posterior.entropy().shape == (rows,)
