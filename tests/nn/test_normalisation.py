import pytest
import torch

from gpn_scale.nn.noise import NOISE_ROWS
from gpn_scale.nn.normalisation import BatchNorm


def test_moments_of_columns_far_from_0_do_not_cancel():
    torch.manual_seed(1)
    x = torch.randn(3 * NOISE_ROWS, 4) + 1e4
    norm = BatchNorm(4)
    moments = norm.moments(x, NOISE_ROWS)
    torch.testing.assert_close(
        moments.inverse_deviation_H,
        (x.double().var(0, correction=0)).rsqrt().float(),
        rtol=1e-3,
        atol=0,
    )


@pytest.mark.parametrize("block", [1, 3, 100])
def test_moments_and_running_moments_are_those_of_torch(block):
    torch.manual_seed(2)
    x = torch.randn(10, 4).double()
    ours, torchs = BatchNorm(4).double(), torch.nn.BatchNorm1d(4).double()
    moments = ours.moments(x, block)
    normalised = (x - moments.mean_H) * moments.inverse_deviation_H
    torch.testing.assert_close(normalised, torchs(x).detach())
    assert moments.count == 10
    for name, value in torchs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], value)


def test_in_evaluation_the_running_moments_hold_and_do_not_change():
    norm = BatchNorm(2).eval()
    norm.running_mean.copy_(torch.tensor([1.0, 2.0]))
    norm.running_var.copy_(torch.tensor([4.0, 9.0]))
    moments = norm.moments(torch.randn(5, 2), 8)
    assert moments.count is None
    assert moments.mean_H.tolist() == [1.0, 2.0]
    torch.testing.assert_close(moments.inverse_deviation_H, torch.tensor([1 / 2, 1 / 3]))
    assert norm.num_batches_tracked == 0


@pytest.mark.parametrize("cut", [0, 1, 7])
def test_ranks_that_divide_the_rows_have_the_moments_of_all(cut):
    torch.manual_seed(3)
    x = torch.randn(7, 3).double()
    alone = BatchNorm(3).double().moments(x, 4)
    sent = []

    def moments_of(part, total):
        norm = BatchNorm(3).double()
        norm.total = total
        return norm.moments(part, 4)

    def send(sums):
        sent.append(sums)
        return torch.ones_like(sums)  # any total will do: only what was sent is used

    moments_of(x[cut:], send)
    moments = moments_of(x[:cut], lambda sums: sums + sent[0])
    assert moments.count == alone.count
    torch.testing.assert_close(moments.mean_H, alone.mean_H)
    torch.testing.assert_close(moments.inverse_deviation_H, alone.inverse_deviation_H)
