from dataclasses import replace

import pytest
import torch

from gpn_scale.baselines.gcn import VGCN
from gpn_scale.errors import RunError
from tests.baselines.graphs import CONFIG, small_graph


def test_tensors_of_another_shape_are_refused(tmp_path):
    graph = small_graph()
    fitted = VGCN(CONFIG).fit(graph)
    other = replace(CONFIG, encoder=replace(CONFIG.encoder, hidden=9))
    with pytest.raises(RunError):
        VGCN(other).load_state(graph, fitted.state(), tmp_path)


def test_the_module_exists_after_training():
    model = VGCN(CONFIG)
    with pytest.raises(RunError, match="has not been trained yet"):
        _ = model.module
    with pytest.raises(RunError, match="has not been trained yet"):
        model.state()


def test_standardised_inputs_have_the_moments_of_all_nodes():
    graph = small_graph()
    config = replace(CONFIG, encoder=replace(CONFIG.encoder, standardise=True))
    model = VGCN(config, dtype=torch.float64).fit(graph)
    features = torch.from_numpy(graph.features).double()
    torch.testing.assert_close(model.layers.first.shift_F, features.mean(0), rtol=1e-5, atol=1e-6)


def test_logits_in_training_are_random_and_final_ones_are_not():
    graph = small_graph()
    model = VGCN(CONFIG).fit(graph)
    view = model.view(graph)
    first, second = (model.logits(view, model.generator(offset)) for offset in (1, 2))
    assert not torch.allclose(first, second)
    torch.testing.assert_close(model.final_logits(view), model.final_logits(view))
    assert not model.final_logits(view).requires_grad
