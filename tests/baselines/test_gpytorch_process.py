import pytest
import torch

gpytorch = pytest.importorskip("gpytorch")

from gpn_scale.baselines.gpytorch_process import NodeProcess  # noqa: E402


def covariances(count, scale=1.0):
    """Squared-exponential covariances of points on a line, with a little noise on the diagonal."""
    point = torch.linspace(0.0, 3.0, count, dtype=torch.float64)
    distance = point[:, None] - point
    return scale * (-distance.square()).exp() + 1e-6 * torch.eye(count, dtype=torch.float64)


@pytest.fixture
def process():
    torch.manual_seed(0)
    return NodeProcess(6, 2).double()


def test_before_training_the_posterior_is_the_prior(process):
    process.eval()
    with torch.no_grad():
        mean, variance = process.moments(lambda: covariances(10, scale=2.0), 4)
    assert mean.shape == variance.shape == (4, 2)
    torch.testing.assert_close(mean, torch.zeros_like(mean), atol=2e-2, rtol=0.0)
    torch.testing.assert_close(variance, torch.full_like(variance, 2.0), atol=2e-2, rtol=0.0)


def test_training_fits_the_labels_of_the_inducing_nodes(process):
    labels = torch.tensor([0, 0, 0, 1, 1, 1])
    optimiser = torch.optim.Adam(process.parameters(), lr=0.1)
    block = covariances(6)
    losses = []
    for _ in range(60):
        optimiser.zero_grad()
        loss = process.loss(lambda: block, labels)
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.8 * losses[0]
    process.eval()
    # The same nodes again, after the inducing ones.
    twice = block.repeat(2, 2)
    with torch.no_grad():
        means = process.means(lambda: twice, 6)
    assert means.argmax(1).tolist() == labels.tolist()


def test_factors_of_an_earlier_block_are_dropped(process):
    process.eval()
    with torch.no_grad():
        first = process.moments(lambda: covariances(8, scale=1.0), 2)[1]
        second = process.moments(lambda: covariances(8, scale=4.0), 2)[1]
        again = process.moments(lambda: covariances(8, scale=1.0), 2)[1]
    assert not torch.allclose(first, second)
    torch.testing.assert_close(first, again)
