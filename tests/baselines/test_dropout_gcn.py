import numpy as np
import pytest
import torch

from gpn_scale.baselines.dropout_gcn import DropoutGCN, SamplingOptions
from gpn_scale.errors import ConfigError
from tests.baselines.graphs import CONFIG, check_learning, small_graph


def test_scores_are_mean_and_summed_variance_of_random_passes():
    graph = small_graph()
    model = DropoutGCN(CONFIG, SamplingOptions(samples=7), dtype=torch.float64).fit(graph)
    view, generator = model.view(graph), model.generator(2)
    with torch.no_grad():
        model.module.eval()
        passes = torch.stack([model.logits(view, generator).softmax(1) for _ in range(7)])
    prediction = model.predict(graph)
    np.testing.assert_allclose(prediction.probabilities, passes.mean(0), rtol=1e-6)
    variance = passes.var(0, unbiased=False).sum(1)
    np.testing.assert_allclose(prediction.epistemic, variance, rtol=1e-5, atol=1e-12)


def test_the_network_learns_is_repeatable_and_is_restored(tmp_path):
    check_learning(DropoutGCN, tmp_path)


def test_a_prediction_needs_a_pass():
    with pytest.raises(ConfigError, match=r"model\.samples is 0, expected at least 1 random pass"):
        SamplingOptions(samples=0)
