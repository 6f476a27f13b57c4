"""The whole-row layer against single operations of torch, and divided rows against whole ones."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.nn.hidden import Dropout
from gpn_scale.nn.hidden_whole import kept_units, whole_hidden_layer
from gpn_scale.nn.noise import Noise
from gpn_scale.nn.normalisation import BatchNorm
from tests.nn.test_hidden import gradients, layer_of, plain_layer


def layer(x, linear, norm, dropout):
    """The layer with the arguments of `hidden_layer`, for the dropout of layer 1."""
    kept = None if dropout is None else kept_units(dropout, 2, x)[1]
    return whole_hidden_layer(x, linear, norm, kept, 1.0 if dropout is None else dropout.scale)


@given(
    rows=st.sampled_from([2, 3, 130]),
    width=st.integers(1, 9),
    outputs=st.integers(1, 5),
    normalised=st.booleans(),
    training=st.booleans(),
    divided=st.booleans(),
    fraction=st.sampled_from([None, 0.25, 0.8]),
    hashed=st.booleans(),
    rng_seed=st.integers(0, 2**32),
)
def test_equal_to_single_operations(
    rows, width, outputs, normalised, training, divided, fraction, hashed, rng_seed
):
    torch.manual_seed(rng_seed)
    linear, norm = layer_of(width, outputs, normalised=normalised, training=training)
    if norm is not None and divided:
        norm.total = lambda sums: sums  # a single rank that adds up with nobody
    x, upstream = torch.randn(rows, width).double() * 3 + 1, torch.randn(rows, outputs).double()
    dropout = None
    if fraction is not None:
        dropout = Dropout(Noise(rng_seed, hashed=hashed), fraction, 1)
    result = gradients(layer, x, linear, norm, dropout, upstream)
    moments = None if norm is None else [norm.running_mean.clone(), norm.running_var.clone()]
    torch.manual_seed(rng_seed)
    linear, norm = layer_of(width, outputs, normalised=normalised, training=training)
    expected = gradients(plain_layer, x, linear, norm, dropout, upstream)
    torch.testing.assert_close(result, expected)
    if norm is not None:
        torch.testing.assert_close(moments, [norm.running_mean, norm.running_var])


def test_no_rows_and_one_row():
    linear, norm = layer_of(3, 2, normalised=True)
    one = whole_hidden_layer(torch.zeros(1, 3).double(), linear, norm, None, 1.0)
    assert one.isfinite().all()
    assert norm.running_var.isfinite().all()
    norm.eval()
    none = whole_hidden_layer(torch.zeros(0, 3).double(), linear, norm, None, 1.0)
    assert none.shape == (0, 2)


@pytest.mark.parametrize("total", [None, lambda sums: sums])
def test_batches_are_counted(total):
    norm = BatchNorm(3)
    norm.total = total
    linear = torch.nn.Linear(3, 1)
    for _ in range(2):
        whole_hidden_layer(torch.randn(4, 3), linear, norm, None, 1.0)
    assert norm.num_batches_tracked == 2
