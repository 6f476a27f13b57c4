"""`GPNClassifier` with stored rows: fit, predict all, some and new nodes, save, load, refuse."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale import predictor
from gpn_scale.config import (
    DiffusionConfig,
    EncoderConfig,
    MinibatchConfig,
    PPRConfig,
    RunConfig,
    SplitConfig,
    TrainConfig,
)
from gpn_scale.data.building import build_graph
from gpn_scale.diffusion.growth import grown_graph, new_nodes
from gpn_scale.errors import ConfigError, GraphError, StoreError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.inference import explanation
from gpn_scale.ppr.store import PPRStore
from precompute.build import build_store
from precompute.resources import Resources

NODES = [5, 0, 17, 5]


def config_of(mode="minibatch", *, diffusion=None, **minibatch):
    return RunConfig(
        model="GPN",
        mode=mode,
        split=SplitConfig(train=0.2, val=0.2),
        encoder=EncoderConfig(hidden=8, latent=4),
        diffusion=diffusion or DiffusionConfig(),
        minibatch=MinibatchConfig(**{"batch_size": 32, "tail_nodes": 64, **minibatch}),
        train=TrainConfig(epochs=3, warmup_steps=1),
    )


def stored(graph, path, k=8):
    build_store(
        graph,
        PPRConfig(diffusion=DiffusionConfig(), k=k, clusters=4),
        path,
        resources=Resources(threads=1, memory_bytes=1 << 30),
    )
    return path


@pytest.fixture(scope="module")
def store(small_graph, tmp_path_factory):
    """Path of a store with the eight heaviest entries of every node."""
    return stored(small_graph, tmp_path_factory.mktemp("rows") / "store")


@pytest.fixture(scope="module")
def saved(small_graph, store, tmp_path_factory):
    """(classifier, path): trained in minibatches, used on all nodes, then saved."""
    classifier = GPNClassifier(config_of(), device="cpu").fit(small_graph, store=store)
    classifier.predict(small_graph, store=store)
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    classifier.save(path)
    return classifier, path


@pytest.fixture
def trained(saved):
    """A fresh copy of the trained classifier."""
    return GPNClassifier.load(saved[1], device="cpu")


def no_summary(*_, **__):
    raise AssertionError("the cluster summary was computed again")


def assert_same(result, expected):
    for part in ("probabilities", "alpha_0", "probabilities_no_network", "alpha_0_no_network"):
        np.testing.assert_array_equal(getattr(result, part), getattr(expected, part))


def assert_same_rows(result, expected):
    assert_same(result.prediction, expected.prediction)
    np.testing.assert_array_equal(result.alpha_0_lower, expected.alpha_0_lower)
    np.testing.assert_array_equal(result.alpha_0_upper, expected.alpha_0_upper)
    for name in ("node", "share", "weight", "leading_class", "tail_share"):
        one, other = (getattr(each.contributors, name) for each in (result, expected))
        np.testing.assert_array_equal(one, other)


def test_some_nodes_are_near_to_all_and_their_interval_holds_the_exact_value(
    trained, small_graph, store
):
    everything = trained.predict(small_graph)
    assert everything.probabilities.shape == (300, 3)
    nodes = np.arange(300)
    result = trained.predict_nodes(small_graph, nodes, store, explain=2)
    assert (result.alpha_0_lower <= everything.alpha_0).all()
    assert (everything.alpha_0 <= result.alpha_0_upper).all()
    assert (result.prediction.predicted_class == everything.predicted_class).mean() > 0.9
    alone, exact_alone = (p.alpha_0_no_network for p in (result.prediction, everything))
    np.testing.assert_allclose(alone, exact_alone, rtol=1e-5)
    assert result.contributors.node.shape == (300, 2)


def test_saved_and_loaded_it_predicts_the_same_and_summarises_nothing_again(
    saved, trained, small_graph, store, monkeypatch
):
    classifier, _ = saved
    monkeypatch.setattr(predictor, "summarise_model", no_summary)
    for rows in (store, str(store), PPRStore.open(store)):
        result = trained.predict_nodes(small_graph, NODES, rows, explain=3)
        expected = classifier.predict_nodes(small_graph, NODES, store, explain=3)
        assert result.node.tolist() == NODES
        assert_same_rows(result, expected)
    assert_same(trained.predict(small_graph), classifier.predict(small_graph))
    assert trained.trained.network.clusters.largest_total_P.isfinite().all()


def test_without_predicting_all_the_summary_is_made_on_demand_and_once(
    small_graph, store, monkeypatch, trained
):
    classifier = GPNClassifier(config_of(), device="cpu").fit(small_graph, store=store)
    assert classifier.trained.network.clusters.largest_total_P.isinf().all()
    result = classifier.predict_nodes(small_graph, NODES, store, explain=1)
    expected = trained.predict_nodes(small_graph, NODES, store, explain=1)
    np.testing.assert_allclose(result.alpha_0_upper, expected.alpha_0_upper, rtol=1e-5)
    np.testing.assert_allclose(result.prediction.alpha_0, expected.prediction.alpha_0, rtol=1e-5)
    monkeypatch.setattr(predictor, "summarise_model", no_summary)
    classifier.predict_nodes(small_graph, NODES, store)


@pytest.mark.parametrize("tail", ["clustered", "renormalised", "truncated"])
def test_an_exact_model_predicts_from_rows_too(small_graph, store, tail, tmp_path):
    config = config_of("exact", tail=tail)
    classifier = GPNClassifier(config, device="cpu").fit(small_graph)
    assert classifier.trained.network.clusters is None
    result = classifier.predict_nodes(small_graph, NODES, store, explain=1)
    exact = classifier.predict(small_graph).alpha_0[NODES]
    assert (result.alpha_0_lower <= exact).all()
    assert (exact <= result.alpha_0_upper).all()
    classifier.save(tmp_path / "model")
    again = GPNClassifier.load(tmp_path / "model", device="cpu")
    assert_same_rows(again.predict_nodes(small_graph, NODES, store, explain=1), result)


def test_other_features_on_the_same_edges_have_a_summary_of_their_own(trained, small_graph, store):
    """Otherwise the interval would be that of the graph of training, and promise nothing."""
    trained.predict_nodes(small_graph, NODES, store)
    other = replace(small_graph, features=small_graph.features[::-1].copy())
    result = trained.predict_nodes(other, np.arange(300), store)
    fresh = GPNClassifier(trained.config, device="cpu")
    fresh.load_state(other, trained.state(), "trained")
    expected = fresh.predict_nodes(other, np.arange(300), store)
    np.testing.assert_array_equal(result.alpha_0_upper, expected.alpha_0_upper)
    exact = trained.predict(other).alpha_0
    assert (result.alpha_0_lower <= exact).all()
    assert (exact <= result.alpha_0_upper).all()


def test_rows_with_other_cuts_have_a_summary_of_their_own(trained, small_graph, store, tmp_path):
    """The same clusters, but their nodes weigh what these rows have cut off from them."""
    shorter = stored(small_graph, tmp_path / "shorter", k=3)
    before = trained.predict_nodes(small_graph, NODES, store, explain=1)
    mean_PC = trained.trained.network.clusters.mean_PC.clone()
    result = trained.predict_nodes(small_graph, NODES, shorter, explain=1)
    assert not torch.equal(trained.trained.network.clusters.mean_PC, mean_PC)
    trained.trained.network.clusters = None
    assert_same_rows(result, trained.predict_nodes(small_graph, NODES, shorter, explain=1))
    assert_same_rows(before, trained.predict_nodes(small_graph, NODES, store, explain=1))


def test_a_graph_without_split_is_split_and_predicted(small_graph, store):
    bare = replace(small_graph, split=None)
    classifier = GPNClassifier(config_of(), device="cpu").fit(bare, store=store)
    result = classifier.predict_nodes(bare, NODES, store)
    exact = classifier.predict(bare).alpha_0[NODES]
    assert ((result.alpha_0_lower <= exact) & (exact <= result.alpha_0_upper)).all()


def newcomers(graph):
    features = graph.features[[3, 200]] + np.float32(0.1)
    return features, [[0, 7, 7], [graph.num_nodes, 12]]


@pytest.mark.parametrize("tolerance", [0.0, 1e-3])
def test_new_nodes_get_what_the_rebuilt_graph_gives(trained, small_graph, tolerance):
    features, neighbours = newcomers(small_graph)
    result = trained.predict_new(small_graph, features, neighbours, tolerance=tolerance)
    rebuilt = grown_graph(small_graph, new_nodes(small_graph, features, neighbours))
    exact = trained.predict(rebuilt)
    assert (result.alpha_0_lower <= exact.alpha_0[300:] * (1 + 1e-5)).all()
    assert (exact.alpha_0[300:] <= result.alpha_0_upper * (1 + 1e-5)).all()
    if tolerance == 0.0:
        got = result.prediction
        np.testing.assert_allclose(got.alpha_0, exact.alpha_0[300:], rtol=1e-5)
        np.testing.assert_allclose(got.probabilities, exact.probabilities[300:], rtol=1e-5)
        alone = exact.alpha_0_no_network[300:]
        np.testing.assert_allclose(got.alpha_0_no_network, alone, rtol=1e-5)


def test_new_nodes_use_the_summary_of_their_own_graph_only(trained, small_graph):
    features, neighbours = newcomers(small_graph)
    narrow = trained.predict_new(small_graph, features, neighbours, tolerance=1e-3)
    other = replace(small_graph, features=small_graph.features[::-1].copy())
    wide = trained.predict_new(other, features, neighbours, tolerance=1e-3)
    limit = 3 * np.exp(trained.config.evidence.log_limit)
    largest = float(trained.trained.network.clusters.largest_total_P.max())
    assert largest < 1e-3 * limit
    gaps = [result.alpha_0_upper - result.alpha_0_lower for result in (narrow, wide)]
    assert (gaps[0] > 0).all()
    assert (gaps[1] > 1000 * gaps[0]).all()


def test_new_nodes_that_do_not_fit_are_refused(trained, small_graph):
    features, _ = newcomers(small_graph)
    with pytest.raises(GraphError, match="302"):
        trained.predict_new(small_graph, features, [[0], [302]])
    with pytest.raises(GraphError, match="feature"):
        trained.predict_new(small_graph, features[:, :5], [[0], [1]])
    narrow = build_graph([0], [1], features=np.zeros((2, 5), np.float32))
    with pytest.raises(GraphError, match=r"5 feature columns, but the model was trained on 8"):
        trained.predict_new(narrow, features[:, :5], [[0], [1]])


def test_stores_that_do_not_fit_are_refused_on_predict(trained, small_graph, store, tmp_path):
    with pytest.raises(StoreError, match="is not a PPR store"):
        trained.predict_nodes(small_graph, NODES, tmp_path)
    other = replace(small_graph, indices=small_graph.indices[::-1].copy())
    with pytest.raises(StoreError, match="graph fingerprint"):
        trained.predict_nodes(other, NODES, store)
    with pytest.raises(StoreError, match="is not a PPR store"):
        trained.predict(small_graph, store=tmp_path)
    distant = DiffusionConfig(teleport=0.3)
    other_rows = GPNClassifier(trained.config, predicts_with=distant, device="cpu")
    other_rows.load_state(small_graph, trained.state(), "trained")
    with pytest.raises(StoreError, match=r"rows with teleport=0.1, .* diffuses with teleport=0.3"):
        other_rows.predict_nodes(small_graph, NODES, store)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"nodes": [300]}, GraphError, r"nodes holds 300, expected ids in \[0, 300\)"),
        ({"nodes": [-1]}, GraphError, r"nodes holds -1, expected ids in \[0, 300\)"),
        ({"nodes": ["a"]}, GraphError, "nodes holds 'a', but the nodes of graph .* have no names"),
        ({"nodes": [0.5]}, GraphError, "nodes must be a vector of integer node ids"),
        ({"nodes": [0], "explain": -1}, ConfigError, "explain is -1, expected at least 0"),
    ],
)
def test_nodes_that_do_not_fit_are_refused(trained, small_graph, store, options, error, message):
    with pytest.raises(error, match=message):
        trained.predict_nodes(small_graph, rows=store, **options)


def test_nodes_by_name_are_those_at_their_positions(trained, small_graph, store):
    names = np.array([f"n{node}" for node in range(300)])
    graph = replace(small_graph, node_names=names)
    by_name = trained.predict_nodes(graph, names[NODES], store)
    by_position = trained.predict_nodes(graph, NODES, store)
    assert by_name.node.tolist() == list(NODES)
    np.testing.assert_array_equal(by_name.prediction.alpha_0, by_position.prediction.alpha_0)
    assert by_name.prediction.to_frame()["node_name"].tolist() == names[NODES].tolist()


def test_evidence_comes_with_the_prediction_and_explains_nodes(trained, small_graph, store):
    prediction, evidence = trained.predict_with_evidence(small_graph)
    assert_same(prediction, trained.predict(small_graph))
    np.testing.assert_allclose(evidence.total + 3, prediction.alpha_0_no_network, rtol=1e-5)
    leading = prediction.probabilities_no_network.argmax(1)
    np.testing.assert_array_equal(evidence.leading_class, leading)
    given = trained.explain(small_graph, [5, 17], evidence=evidence)
    computed = trained.explain(small_graph, [5, 17])
    np.testing.assert_array_equal(given.contributors.node, computed.contributors.node)
    np.testing.assert_allclose(given.evidence, prediction.alpha_0[[5, 17]] - 3, rtol=1e-3)
    assert trained.explain(small_graph, 17, count=2).contributors.node.shape == (1, 2)


def test_a_graph_that_is_too_large_is_explained_by_its_rows(
    trained, small_graph, store, monkeypatch
):
    monkeypatch.setattr(explanation, "MAX_EXACT_NODES", 10)
    result = trained.explain(small_graph, NODES, rows=store, count=2)
    expected = trained.predict_nodes(small_graph, NODES, store, explain=2)
    assert result.source == "stored"
    np.testing.assert_array_equal(result.contributors.node, expected.contributors.node)
    with pytest.raises(StoreError, match="an explanation needs stored rows, and none were given"):
        trained.explain(small_graph, NODES)


def test_without_a_store_predicting_all_collects_no_cluster_evidence(small_graph, store):
    classifier = GPNClassifier(config_of(), device="cpu").fit(small_graph, store=store)
    classifier.predict(small_graph)
    assert classifier.trained.network.clusters.largest_total_P.isinf().all()
    classifier.predict(small_graph, store=store)
    assert classifier.trained.network.clusters.largest_total_P.isfinite().all()
