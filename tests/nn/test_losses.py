import pytest
import torch
from scipy import special

from gpn_scale.device import CPU_RULE, GPU_RULE, forced_rule
from gpn_scale.nn.losses import bayesian_loss
from gpn_scale.nn.posterior import DirichletPosterior
from tests.nn.test_posterior import exact_entropy, random_alpha


@pytest.fixture(autouse=True, params=[CPU_RULE, GPU_RULE], ids=["on CPUs", "on GPUs"])
def rule(request):
    with forced_rule(request.param):
        yield request.param


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("largest", [0.0, 5.0, 15.0, 30.0])
@pytest.mark.parametrize("entropy_weight", [0.0, 1e-4, 1.0])
def test_both_rules_have_the_same_loss_and_gradient(generator, dtype, largest, entropy_weight):
    log_evidence_NC = (torch.rand(40, 5, generator=generator).double() * 2 - 1) * largest
    label_N = torch.randint(5, (40,), generator=generator)

    def loss_and_gradient(rule, dtype):
        evidence_NC = log_evidence_NC.exp().to(dtype).requires_grad_()
        with forced_rule(rule):
            posterior = DirichletPosterior.from_evidence(evidence_NC)
            loss = bayesian_loss(posterior, label_N, entropy_weight=entropy_weight)
        assert loss.dtype == dtype
        (gradient,) = torch.autograd.grad(loss, evidence_NC)
        assert gradient.dtype == dtype
        return loss.item(), gradient.double()

    loss, gradient = loss_and_gradient(GPU_RULE, dtype)
    expected, expected_gradient = loss_and_gradient(CPU_RULE, torch.float64)
    assert loss == pytest.approx(expected, rel=1e-6 if dtype == torch.float32 else 1e-9)
    bound = (2e-5 if dtype == torch.float32 else 1e-9) * expected_gradient.abs().max().item()
    torch.testing.assert_close(gradient, expected_gradient, rtol=0.0, atol=bound)
