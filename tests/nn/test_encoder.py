import pytest
import torch

from gpn_scale.nn.encoder import Encoder, InputLinear
from gpn_scale.nn.noise import Noise
from tests.nn.test_sparse import sparse_of


def encoder(generator, **options):
    settings = {"num_features": 5, "hidden": 4, "layers": 3, "latent": 2, "dropout": 0.5}
    settings |= {"batch_norm": False, "generator": generator, **options}
    return Encoder(**settings).double()


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("rows", [0, 1, 6])
def test_shapes(generator, layers, rows):
    assert encoder(generator, layers=layers)(torch.zeros(rows, 5).double()).shape == (rows, 2)


def test_sparse_and_dense_inputs_give_the_same_values_and_gradients(generator):
    inputs = torch.tensor([[0, 1, 0, 0, 2], [0, 0, 0, 0, 0], [3, 0, 0, 1, 0]]).double()
    model = encoder(generator)
    model.first.standardise(inputs.mean(0), inputs.square().mean(0))
    gradients = []
    for form in (inputs, sparse_of(inputs)):
        model.zero_grad()
        output = model(form)
        output.square().sum().backward()
        gradients.append((output.detach(), model.first.weight.grad.clone()))
    torch.testing.assert_close(gradients[0], gradients[1])


def test_standardised_columns_have_mean_0_and_variance_1(generator):
    inputs = torch.randn(50, 3, generator=generator).double() * 5 + 100
    inputs[:, 2] = 7.0
    linear = InputLinear(3, 3, generator).double()
    linear.standardise(inputs.mean(0), inputs.square().mean(0))
    with torch.no_grad():
        linear.weight.copy_(torch.eye(3))
        linear.bias.zero_()
        output = linear(inputs)
    torch.testing.assert_close(output.mean(0), torch.zeros(3).double(), atol=1e-9, rtol=0)
    expected = torch.tensor([1.0, 1.0, 0.0]).double()
    torch.testing.assert_close(output.std(0, correction=0), expected, atol=1e-9, rtol=0)


def test_the_same_noise_gives_the_same_output(generator):
    model = encoder(generator)
    inputs = torch.ones(3, 5).double()
    state = generator.get_state()
    first = model(inputs, Noise.drawn(generator))
    other = model(inputs, Noise.drawn(generator))
    generator.set_state(state)
    assert torch.equal(model(inputs, Noise.drawn(generator)), first)
    assert not torch.equal(other, first)


def test_batch_norm_is_between_the_layers_only(generator):
    assert len(encoder(generator, batch_norm=True).norms) == 2
    assert len(encoder(generator, batch_norm=True, layers=1).norms) == 0
