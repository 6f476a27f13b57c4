import builtins
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from gpn_scale.baselines.gaussian_process import (
    FeatureProcess,
    FeatureProcessOptions,
    MaternOptions,
    MaternProcess,
    PolynomialKernel,
    averaged_powers,
    laplacian_spectrum,
)
from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import CSRFeatures, Split
from gpn_scale.data.shifts import shifted_edges
from gpn_scale.errors import ConfigError, GraphError
from tests.baselines.graphs import CONFIG, small_graph
from tests.oracles import dense_transition


def as_sparse(graph):
    count, width = graph.features.shape
    features = CSRFeatures(
        indptr=np.arange(count + 1) * width,
        indices=np.tile(np.arange(width, dtype=np.int32), count),
        values=graph.features.ravel().astype(np.float32),
        num_columns=width,
    )
    return replace(graph, features=features)


@pytest.mark.parametrize("sparse", [False, True])
def test_covariances_are_averages_over_both_neighbourhoods(sparse):
    graph = small_graph(nodes=60)
    nodes = np.array([7, 3, 3, 20])
    view = FeatureProcess(CONFIG).view(as_sparse(graph) if sparse else graph)
    found = averaged_powers(view, nodes, 3).numpy()
    features = graph.features.astype(np.float64)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    average = dense_transition(graph, "rw", True)
    for power in (1, 2, 3):
        whole = average @ (features @ features.T) ** power @ average.T
        np.testing.assert_allclose(found[power - 1], whole[np.ix_(nodes, nodes)], rtol=1e-5)


def test_the_polynomial_is_expanded_by_powers():
    kernel = PolynomialKernel(3).double()
    products = torch.rand(4, 4, dtype=torch.float64)
    scale = offset = torch.nn.functional.softplus(torch.zeros((), dtype=torch.float64))
    powers = torch.stack([products, products**2, products**3])
    torch.testing.assert_close(kernel(powers), (scale * products + offset) ** 3)


def test_the_spectrum_is_that_of_the_laplacian():
    graph = small_graph(nodes=60)
    laplacian = np.eye(60) - dense_transition(graph, "sym", False)
    for pairs in (10, 60):
        value, vector = (part.numpy() for part in laplacian_spectrum(graph, pairs))
        expected = np.linalg.eigvalsh(laplacian)[:pairs]
        np.testing.assert_allclose(value, np.maximum(expected, 0.0), atol=1e-5)
        np.testing.assert_allclose(laplacian @ vector, vector * value, atol=1e-4)


@pytest.mark.parametrize("model", [FeatureProcess, MaternProcess])
def test_processes_learn_are_repeatable_and_come_back(model, tmp_path):
    graph = small_graph()
    state = torch.random.get_rng_state()
    fitted = model(CONFIG).fit(graph)
    torch.testing.assert_close(torch.random.get_rng_state(), state)
    found = fitted.predict(graph)
    test = graph.split.test
    assert (found.predicted_class[test] == graph.labels[test]).mean() > 0.5
    spread = (found.probabilities * (1 - found.probabilities)).sum(1)
    np.testing.assert_allclose(found.epistemic, spread, rtol=1e-5)
    again = model(CONFIG)
    again.load(graph, fitted.state(), tmp_path)
    np.testing.assert_array_equal(again.predict(graph).probabilities, found.probabilities)
    latent = model(CONFIG, replace(fitted.options, epistemic="latent"))
    latent.load(graph, fitted.state(), tmp_path)
    scores = latent.predict(graph).epistemic
    assert (scores > 0).all()
    assert not np.allclose(scores, found.epistemic)


def test_nothing_of_an_earlier_graph_is_left_in_a_process():
    graph = small_graph()
    model = FeatureProcess(CONFIG).fit(graph)
    before = model.predict(graph).probabilities
    moved = shifted_edges(graph, 0.5, "random", 1)
    fresh = FeatureProcess(CONFIG)
    fresh.load(graph, model.state(), Path("nowhere"))
    expected = fresh.predict(moved).probabilities
    np.testing.assert_array_equal(model.predict(moved).probabilities, expected)
    np.testing.assert_array_equal(model.predict(graph).probabilities, before)


def test_graphs_above_their_size_are_refused_with_an_estimate():
    graph = small_graph()
    with pytest.raises(GraphError, match=r"GGP on .* needs about 0\.0006 GiB .* 120 nodes"):
        FeatureProcess(CONFIG, FeatureProcessOptions(memory_gib=1e-6)).fit(graph)
    with pytest.raises(GraphError, match=r"Matern-GGP on graph .* 24 training, 24 validation"):
        MaternProcess(CONFIG, MaternOptions(memory_gib=1e-6)).fit(graph)
    with pytest.raises(ConfigError, match=r"model\.eigenpairs is 0"):
        MaternOptions(eigenpairs=0)
    for options in (MaternOptions, FeatureProcessOptions):
        with pytest.raises(ConfigError, match=r"model\.memory_gib is nan"):
            options(memory_gib=float("nan"))
    with pytest.raises(ConfigError, match=r"model\.degree is 0"):
        FeatureProcessOptions(degree=0)


def chain(count, train, val, **changes):
    ends = np.arange(count - 1)
    graph = build_graph(
        *(ends, ends + 1),
        num_nodes=count,
        labels=np.arange(count) % 2,
        features=np.zeros((count, 1), np.float32),
        **changes,
    )
    ids = np.arange(count)
    return graph.with_split(
        Split(train=ids[:train], val=ids[train : train + val], test=ids[train + val :])
    )


@pytest.mark.parametrize("kind", [FeatureProcess, MaternProcess])
@pytest.mark.parametrize(
    ("count", "train", "val"), [(300_000, 20_000, 2), (60_000, 140, 30_000), (80_000, 40_000, 2)]
)
def test_a_large_graph_is_refused_before_any_covariance(kind, count, train, val):
    with pytest.raises(GraphError, match=rf"{kind.name} on graph .* needs about [\d.,]+ GiB"):
        kind(CONFIG).fit(chain(count, train, val))


def test_a_directed_graph_has_no_laplacian():
    graph = chain(60, 20, 20, directed=True)
    with pytest.raises(GraphError, match="Matern-GGP got the directed graph"):
        MaternProcess(CONFIG).fit(graph)


def test_places_need_no_features():
    standardised = replace(CONFIG, encoder=replace(CONFIG.encoder, standardise=True))
    graph = small_graph()
    bare = replace(graph, features=None)
    found = MaternProcess(standardised).fit(bare).predict(bare)
    expected = MaternProcess(standardised).fit(graph).predict(graph)
    np.testing.assert_array_equal(found.probabilities, expected.probabilities)


def test_without_gpytorch_the_way_to_it_is_named(monkeypatch):
    real = builtins.__import__

    def missing(name, *rest, **more):
        if name.startswith("gpn_scale.baselines.gp_network"):
            raise ImportError("No module named 'gpytorch'")
        return real(name, *rest, **more)

    monkeypatch.delitem(sys.modules, "gpn_scale.baselines.gp_network", raising=False)
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ConfigError, match=r"GGP needs GPyTorch.*pip install gpn-scale\[gp\]"):
        FeatureProcess(CONFIG).fit(small_graph())
