import pytest
import torch

from gpn_scale.baselines.kernel_gcn import (
    KernelGCN,
    KernelGCNOptions,
    dirichlet_divergence,
    expected_squared_error,
    mean_divergence,
)
from gpn_scale.errors import ConfigError
from tests.baselines.graphs import check_learning


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


def test_the_students_divergence_is_from_the_teacher():
    alpha = torch.rand(5, 3, dtype=torch.float64) * 10 + 0.1
    teacher = torch.rand(5, 3, dtype=torch.float64).softmax(1)
    student = torch.distributions.Categorical(alpha)
    expected = torch.distributions.kl_divergence(student, torch.distributions.Categorical(teacher))
    torch.testing.assert_close(mean_divergence(alpha, teacher.log()), expected)


def test_the_network_learns_is_repeatable_and_is_restored(tmp_path):
    check_learning(KernelGCN, tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"teacher_weight": -1.0}, r"model\.teacher_weight is -1, expected at least 0"),
        ({"kernel_weight": -1.0}, r"model\.kernel_weight is -1, expected at least 0"),
        ({"sigma": 0.0}, r"model\.sigma is 0, expected above 0"),
        ({"cutoff": -1}, r"model\.cutoff is -1, expected at least 0 hops"),
    ],
)
def test_options_out_of_range_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        KernelGCNOptions(**changes)
