import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.baselines.gcn import VGCN, EnergyGCN, EnergyOptions, energy
from gpn_scale.errors import ConfigError
from tests.baselines.graphs import CONFIG, check_learning, in_float64, small_graph
from tests.baselines.pyg import edge_index, pyg


def test_vgcn_is_pygs_layers():
    graph = small_graph()
    model = in_float64(VGCN).fit(graph)
    layers = model.layers
    first, second = pyg().GCNConv(6, 8).double(), pyg().GCNConv(8, 3).double()
    first.lin.weight.data = layers.first.weight.data
    second.lin.weight.data = layers.further[0].data.T
    first.bias.data, second.bias.data = layers.biases[0].data, layers.biases[1].data
    edges, inputs = edge_index(graph), torch.from_numpy(graph.features).double()
    with torch.no_grad():
        expected = second(first(inputs, edges).relu(), edges)
    torch.testing.assert_close(model.final_logits(model.view(graph)), expected)
    probabilities = model.predict(graph).probabilities
    np.testing.assert_allclose(probabilities, expected.softmax(1), rtol=1e-6)


def test_the_last_linear_map_of_representations_gives_logits():
    graph = small_graph()
    model = in_float64(VGCN).fit(graph)
    view, layers = model.view(graph), model.layers
    with torch.no_grad():
        expected = model.representation(view) @ layers.further[0] + layers.biases[1]
    torch.testing.assert_close(model.final_logits(view), expected)


def test_energy_is_minus_the_log_of_summed_exponentials():
    logits = torch.tensor([[0.0, 0.0], [1.0, 3.0]], dtype=torch.float64)
    expected = [-math.log(2.0), -math.log(math.e + math.e**3)]
    np.testing.assert_allclose(energy(logits), expected)
    cooler = -2.0 * math.log(math.exp(0.5) + math.exp(1.5))
    np.testing.assert_allclose(energy(logits, 2.0)[1], cooler)
    graph = small_graph()
    model = in_float64(EnergyGCN).fit(graph)
    np.testing.assert_allclose(
        model.predict(graph).epistemic, energy(model.final_logits(model.view(graph))), rtol=1e-6
    )


@pytest.mark.parametrize("model", [VGCN, EnergyGCN])
def test_networks_learn_are_repeatable_and_are_restored(model, tmp_path):
    check_learning(model, tmp_path)


def test_batch_norm_and_three_layers():
    shape = replace(CONFIG.encoder, layers=3, batch_norm=True)
    graph = small_graph()
    model = VGCN(replace(CONFIG, encoder=shape)).fit(graph)
    assert len(model.layers.norms) == 2
    assert model.reach == 3
    test = graph.split.test
    assert (model.predict(graph).predicted_class[test] == graph.labels[test]).mean() > 0.6


def test_the_temperature_must_be_positive():
    with pytest.raises(ConfigError, match=r"model\.temperature is 0, expected above 0"):
        EnergyOptions(temperature=0.0)
