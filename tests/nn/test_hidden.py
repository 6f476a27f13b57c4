import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import batch_norm

from gpn_scale.nn import hidden
from gpn_scale.nn.hidden import Dropout, hidden_layer
from gpn_scale.nn.noise import NOISE_ROWS, Noise
from gpn_scale.nn.normalisation import BatchNorm


def kept(dropout, rows, width):
    """1 for kept units, 0 for dropped ones, by the definition."""
    bits = dropout.noise.bits(dropout.depth, rows, width, torch.device("cpu"))
    return (bits.long() >= dropout.level - 2**15).double()


def plain_layer(x, linear, norm, dropout):
    """The same in single operations of torch."""
    if norm is not None:
        x = batch_norm(
            x, norm.running_mean, norm.running_var, norm.weight, norm.bias, training=norm.training
        )
    x = torch.relu(x)
    if dropout is not None:
        x = x * kept(dropout, *x.shape) * dropout.scale
    return linear(x)


def layer_of(width, outputs, *, normalised, training=True):
    """A linear map and perhaps a batch-norm, in float64, with values unlike their defaults."""
    linear, norm = nn.Linear(width, outputs).double(), None
    if normalised:
        norm = BatchNorm(width).double().train(training)
        for tensor in (norm.weight, norm.bias, norm.running_mean):
            nn.init.normal_(tensor)
        nn.init.uniform_(norm.running_var, 0.5, 2.0)
    return linear, norm


def gradients(layer, x, linear, norm, dropout, upstream):
    x = x.detach().requires_grad_()
    parameters = [*linear.parameters(), *(() if norm is None else norm.parameters())]
    out = layer(x, linear, norm, dropout)
    return out.detach(), torch.autograd.grad(out, [x, *parameters], upstream)


@given(
    rows=st.sampled_from([2, 3, NOISE_ROWS - 1, NOISE_ROWS, 2 * NOISE_ROWS + 7]),
    width=st.integers(1, 9),
    outputs=st.integers(1, 5),
    normalised=st.booleans(),
    training=st.booleans(),
    fraction=st.sampled_from([None, 0.25, 0.8]),
    rng_seed=st.integers(0, 2**32),
)
def test_equal_to_single_operations(rows, width, outputs, normalised, training, fraction, rng_seed):
    torch.manual_seed(rng_seed)
    linear, norm = layer_of(width, outputs, normalised=normalised, training=training)
    x, upstream = torch.randn(rows, width).double() * 3 + 1, torch.randn(rows, outputs).double()
    dropout = None if fraction is None else Dropout(Noise(rng_seed), fraction, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hidden, "_CACHE_ELEMENTS", 1)  # blocks of NOISE_ROWS
        found = gradients(hidden_layer, x, linear, norm, dropout, upstream)
    moments = None if norm is None else [norm.running_mean.clone(), norm.running_var.clone()]
    torch.manual_seed(rng_seed)
    linear, norm = layer_of(width, outputs, normalised=normalised, training=training)
    expected = gradients(plain_layer, x, linear, norm, dropout, upstream)
    torch.testing.assert_close(found, expected)
    if norm is not None:
        torch.testing.assert_close(moments, [norm.running_mean, norm.running_var])


def test_no_rows_and_one_row():
    linear, norm = layer_of(3, 2, normalised=True)
    assert hidden_layer(torch.zeros(1, 3).double(), linear, norm, None).isfinite().all()
    norm.eval()
    assert hidden_layer(torch.zeros(0, 3).double(), linear, norm, None).shape == (0, 2)


def test_dropout_keeps_the_mean():
    linear = nn.Linear(200, 200)
    nn.init.eye_(linear.weight)
    nn.init.zeros_(linear.bias)
    out = hidden_layer(torch.ones(200, 200), linear, None, Dropout(Noise(5), 0.25, 0)).detach()
    assert out.unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert out.mean().item() == pytest.approx(1.0, abs=0.02)
