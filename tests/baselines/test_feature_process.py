from pathlib import Path

import numpy as np
import pytest
import torch

from gpn_scale.baselines.feature_process import (
    FeatureProcess,
    FeatureProcessOptions,
    PolynomialKernel,
    averaged_powers,
)
from gpn_scale.data.shifts import shifted_edges
from gpn_scale.errors import ConfigError
from tests.baselines.graphs import CONFIG, as_sparse, small_graph
from tests.oracles import dense_transition


@pytest.mark.parametrize("sparse", [False, True])
def test_covariances_are_averages_over_both_neighbourhoods(sparse):
    graph = small_graph(nodes=60)
    nodes = np.array([7, 3, 3, 20])
    view = FeatureProcess(CONFIG).view(as_sparse(graph) if sparse else graph)
    powers = averaged_powers(view, nodes, 3).numpy()
    features = graph.features.astype(np.float64)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    average = dense_transition(graph, "rw", True)
    for power in (1, 2, 3):
        whole = average @ (features @ features.T) ** power @ average.T
        np.testing.assert_allclose(powers[power - 1], whole[np.ix_(nodes, nodes)], rtol=1e-5)


def test_the_polynomial_is_expanded_by_powers():
    kernel = PolynomialKernel(3).double()
    products = torch.rand(4, 4, dtype=torch.float64)
    scale = offset = torch.nn.functional.softplus(torch.zeros((), dtype=torch.float64))
    powers = torch.stack([products, products**2, products**3])
    torch.testing.assert_close(kernel(powers), (scale * products + offset) ** 3)


def test_nothing_of_an_earlier_graph_is_left_in_a_process():
    graph = small_graph()
    model = FeatureProcess(CONFIG).fit(graph)
    before = model.predict(graph).probabilities
    moved = shifted_edges(graph, 0.5, "random", 1)
    fresh = FeatureProcess(CONFIG)
    fresh.load_state(graph, model.state(), Path("nowhere"))
    expected = fresh.predict(moved).probabilities
    np.testing.assert_array_equal(model.predict(moved).probabilities, expected)
    np.testing.assert_array_equal(model.predict(graph).probabilities, before)


def test_the_degree_must_be_positive():
    with pytest.raises(ConfigError, match=r"model\.degree is 0"):
        FeatureProcessOptions(degree=0)
