from dataclasses import replace

import pytest
import torch

from gpn_scale.baselines.layers import Layers, dropout, no_mixing
from gpn_scale.config import EncoderConfig
from gpn_scale.errors import GraphError
from tests.baselines.graphs import CONFIG


def test_batch_norm_needs_two_nodes_in_training_alone():
    shape = replace(CONFIG.encoder, batch_norm=True)
    layers = Layers(3, 2, shape, torch.Generator())
    one = torch.ones(1, shape.hidden)
    with pytest.raises(GraphError, match="batch-norm got a batch of one node") as caught:
        layers.after_first(one, no_mixing)
    assert caught.value.arguments == ("minibatch.batch_size", "encoder.batch_norm")
    assert layers.eval().after_first(one, no_mixing).shape == (1, 2)


def test_dropout_drops_a_fraction_and_keeps_the_mean():
    values = torch.ones(20_000)
    assert dropout(values, 0.3, None) is values
    dropped = dropout(values, 0.3, torch.Generator().manual_seed(1))
    assert float((dropped == 0).float().mean()) == pytest.approx(0.3, abs=0.02)
    assert float(dropped.mean()) == pytest.approx(1.0, abs=0.03)


def test_mixing_is_applied_in_every_layer():
    shape = replace(CONFIG.encoder, layers=3)
    layers = Layers(4, 2, shape, torch.Generator())
    calls = []

    def count(values):
        calls.append(values.shape)
        return values

    layers.after_first(torch.ones(5, shape.hidden), count)
    assert calls == [(5, shape.hidden), (5, shape.hidden), (5, 2)]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_logits_are_the_last_linear_map_of_hidden_values(depth):
    layers = Layers(5, 3, EncoderConfig(hidden=4, layers=depth), torch.Generator().manual_seed(1))
    projected = torch.randn(6, 3 if depth == 1 else 4)
    hidden = layers.hidden(projected, no_mixing)
    logits = layers.after_first(projected, no_mixing)
    if depth == 1:
        torch.testing.assert_close(logits, hidden)
        return
    assert (hidden >= 0.0).all()
    torch.testing.assert_close(logits, hidden @ layers.further[-1] + layers.biases[-1])
