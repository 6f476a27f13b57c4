import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.baselines.feature_process import FeatureProcess, FeatureProcessOptions
from gpn_scale.baselines.matern_process import MaternOptions, MaternProcess
from gpn_scale.errors import ConfigError, GraphError, MissingExtraError
from tests.baselines.graphs import CONFIG, chain, small_graph


@pytest.mark.parametrize("model", [FeatureProcess, MaternProcess])
def test_processes_learn_are_repeatable_and_are_restored(model, tmp_path):
    graph = small_graph()
    state = torch.random.get_rng_state()
    fitted = model(CONFIG).fit(graph)
    torch.testing.assert_close(torch.random.get_rng_state(), state)
    prediction = fitted.predict(graph)
    test = graph.split.test
    assert (prediction.predicted_class[test] == graph.labels[test]).mean() > 0.5
    variance = (prediction.probabilities * (1 - prediction.probabilities)).sum(1)
    np.testing.assert_allclose(prediction.epistemic, variance, rtol=1e-5)
    again = model(CONFIG)
    again.load_state(graph, fitted.state(), tmp_path)
    np.testing.assert_array_equal(again.predict(graph).probabilities, prediction.probabilities)
    latent = model(CONFIG, replace(fitted.options, epistemic="latent"))
    latent.load_state(graph, fitted.state(), tmp_path)
    scores = latent.predict(graph).epistemic
    assert (scores > 0).all()
    assert not np.allclose(scores, prediction.epistemic)


def test_graphs_above_their_size_are_refused_with_an_estimate():
    graph = small_graph()
    with pytest.raises(GraphError, match=r"GGP on .* needs about 0\.0006 GiB .* 120 nodes"):
        FeatureProcess(CONFIG, FeatureProcessOptions(memory_gib=1e-6)).fit(graph)
    with pytest.raises(
        GraphError, match=r"Matern-GGP on graph .* 24 training nodes, 24 validation nodes"
    ):
        MaternProcess(CONFIG, MaternOptions(memory_gib=1e-6)).fit(graph)
    for options in (MaternOptions, FeatureProcessOptions):
        with pytest.raises(ConfigError, match=r"model\.memory_gib is nan"):
            options(memory_gib=float("nan"))


@pytest.mark.parametrize("kind", [FeatureProcess, MaternProcess])
@pytest.mark.parametrize(
    ("count", "train", "val"), [(300_000, 20_000, 2), (60_000, 140, 30_000), (80_000, 40_000, 2)]
)
def test_a_large_graph_is_refused_before_any_covariance(kind, count, train, val):
    with pytest.raises(GraphError, match=rf"{kind.name} on graph .* needs about [\d.,]+ GiB"):
        kind(CONFIG).fit(chain(count, train, val))


def test_without_gpytorch_the_message_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "gpytorch", None)
    with pytest.raises(MissingExtraError, match=r"GGP needs .*pip install 'gpn-scale\[gp\]'"):
        FeatureProcess(CONFIG).fit(small_graph())
