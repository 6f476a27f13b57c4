"""`GPNClassifier` with stored rows: fit, predict all, some and new nodes, save, load, refuse."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from gpn_scale import estimator
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
from gpn_scale.errors import ConfigError, GraphError, RunError, StoreError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.ppr.store import PPRStore
from gpn_scale.train.checkpoint import load_tensors, restore_checkpoint, save_checkpoint
from gpn_scale.train.checkpoint import save_tensors as write_tensors
from precompute.build import Resources, build_store

NODES = [5, 0, 17, 5]


def config_of(mode="minibatch", *, diffusion=None, **minibatch):
    return RunConfig(
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
    classifier.predict(small_graph)
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    classifier.save(path)
    return classifier, path


@pytest.fixture
def trained(saved):
    """A fresh copy of the trained classifier."""
    return GPNClassifier.load(saved[1], device="cpu")


def no_summary(*_, **__):
    raise AssertionError("the cluster summary was computed again")


def assert_same(found, expected):
    for part in ("probabilities", "alpha_0", "probabilities_no_network", "alpha_0_no_network"):
        np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))


def assert_same_rows(found, expected):
    assert_same(found.prediction, expected.prediction)
    np.testing.assert_array_equal(found.alpha_0_lower, expected.alpha_0_lower)
    np.testing.assert_array_equal(found.alpha_0_upper, expected.alpha_0_upper)
    for name in ("node", "share", "weight", "leading_class", "tail_share"):
        one, other = (getattr(each.contributors, name) for each in (found, expected))
        np.testing.assert_array_equal(one, other)


def test_some_nodes_are_near_to_all_and_their_interval_holds_the_exact_value(
    trained, small_graph, store
):
    everything = trained.predict(small_graph)
    assert everything.probabilities.shape == (300, 3)
    nodes = np.arange(300)
    found = trained.predict(small_graph, nodes=nodes, store=store, explain=2)
    assert (found.alpha_0_lower <= everything.alpha_0).all()
    assert (everything.alpha_0 <= found.alpha_0_upper).all()
    assert (found.prediction.predicted_class == everything.predicted_class).mean() > 0.9
    alone, exact_alone = (p.alpha_0_no_network for p in (found.prediction, everything))
    np.testing.assert_allclose(alone, exact_alone, rtol=1e-5)
    assert found.contributors.node.shape == (300, 2)


def test_saved_and_loaded_it_predicts_the_same_and_summarises_nothing_again(
    saved, trained, small_graph, store, monkeypatch
):
    classifier, _ = saved
    monkeypatch.setattr(estimator, "node_evidence", no_summary)
    for way in (store, str(store), PPRStore.open(store)):
        found = trained.predict(small_graph, nodes=NODES, store=way, explain=3)
        expected = classifier.predict(small_graph, nodes=NODES, store=store, explain=3)
        assert found.node.tolist() == NODES
        assert_same_rows(found, expected)
    assert_same(trained.predict(small_graph), classifier.predict(small_graph))
    assert trained.model.clusters.summarised


def test_without_predicting_all_the_summary_is_made_on_demand_and_once(
    small_graph, store, monkeypatch, trained
):
    classifier = GPNClassifier(config_of(), device="cpu").fit(small_graph, store=store)
    assert not classifier.model.clusters.summarised
    found = classifier.predict(small_graph, nodes=NODES, store=store, explain=1)
    expected = trained.predict(small_graph, nodes=NODES, store=store, explain=1)
    np.testing.assert_allclose(found.alpha_0_upper, expected.alpha_0_upper, rtol=1e-5)
    np.testing.assert_allclose(found.prediction.alpha_0, expected.prediction.alpha_0, rtol=1e-5)
    monkeypatch.setattr(estimator, "node_evidence", no_summary)
    classifier.predict(small_graph, nodes=NODES, store=store)


@pytest.mark.parametrize("tail", ["clustered", "renormalised", "truncated"])
def test_an_exact_model_predicts_from_rows_too(small_graph, store, tail, tmp_path):
    config = config_of("exact", tail=tail)
    classifier = GPNClassifier(config, device="cpu").fit(small_graph)
    assert classifier.model.clusters is None
    found = classifier.predict(small_graph, nodes=NODES, store=store, explain=1)
    exact = classifier.predict(small_graph).alpha_0[NODES]
    assert (found.alpha_0_lower <= exact).all()
    assert (exact <= found.alpha_0_upper).all()
    classifier.save(tmp_path / "model")
    again = GPNClassifier.load(tmp_path / "model", device="cpu")
    assert_same_rows(again.predict(small_graph, nodes=NODES, store=store, explain=1), found)


def test_other_features_on_the_same_edges_have_a_summary_of_their_own(trained, small_graph, store):
    """Otherwise the interval would be that of the graph of training, and promise nothing."""
    trained.predict(small_graph, nodes=NODES, store=store)
    other = replace(small_graph, features=small_graph.features[::-1].copy())
    found = trained.predict(other, nodes=np.arange(300), store=store)
    fresh = GPNClassifier(trained.config, device="cpu")
    fresh._model = trained.model
    fresh.model.clusters = None
    expected = fresh.predict(other, nodes=np.arange(300), store=store)
    np.testing.assert_array_equal(found.alpha_0_upper, expected.alpha_0_upper)
    exact = trained.predict(other).alpha_0
    assert (found.alpha_0_lower <= exact).all()
    assert (exact <= found.alpha_0_upper).all()


def test_rows_with_other_cuts_have_a_summary_of_their_own(trained, small_graph, store, tmp_path):
    """The same clusters, but their nodes weigh what these rows have cut off from them."""
    shorter = stored(small_graph, tmp_path / "shorter", k=3)
    before = trained.predict(small_graph, nodes=NODES, store=store, explain=1)
    mean_PC = trained.model.clusters.mean_PC.clone()
    found = trained.predict(small_graph, nodes=NODES, store=shorter, explain=1)
    assert not torch.equal(trained.model.clusters.mean_PC, mean_PC)
    trained.model.clusters = None
    assert_same_rows(found, trained.predict(small_graph, nodes=NODES, store=shorter, explain=1))
    assert_same_rows(before, trained.predict(small_graph, nodes=NODES, store=store, explain=1))


def test_a_graph_without_split_is_split_and_predicted(small_graph, store):
    bare = replace(small_graph, split=None)
    classifier = GPNClassifier(config_of(), device="cpu").fit(bare, store=store)
    found = classifier.predict(bare, nodes=NODES, store=store)
    exact = classifier.predict(bare).alpha_0[NODES]
    assert ((found.alpha_0_lower <= exact) & (exact <= found.alpha_0_upper)).all()


def newcomers(graph):
    features = graph.features[[3, 200]] + np.float32(0.1)
    return features, [[0, 7, 7], [graph.num_nodes, 12]]


@pytest.mark.parametrize("tolerance", [0.0, 1e-3])
def test_new_nodes_get_what_the_rebuilt_graph_gives(trained, small_graph, tolerance):
    features, neighbours = newcomers(small_graph)
    found = trained.predict_new(small_graph, features, neighbours, tolerance=tolerance)
    rebuilt = grown_graph(small_graph, new_nodes(small_graph, features, neighbours))
    exact = trained.predict(rebuilt)
    assert (found.alpha_0_lower <= exact.alpha_0[300:] * (1 + 1e-5)).all()
    assert (exact.alpha_0[300:] <= found.alpha_0_upper * (1 + 1e-5)).all()
    if tolerance == 0.0:
        got = found.prediction
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
    largest = float(trained.model.clusters.largest_total_P.max())
    assert largest < 1e-3 * limit
    gaps = [found.alpha_0_upper - found.alpha_0_lower for found in (narrow, wide)]
    assert (gaps[0] > 0).all()
    assert (gaps[1] > 1000 * gaps[0]).all()


def test_new_nodes_that_do_not_fit_are_refused(trained, small_graph):
    features, _ = newcomers(small_graph)
    with pytest.raises(GraphError, match="302"):
        trained.predict_new(small_graph, features, [[0], [302]])
    with pytest.raises(GraphError, match="feature"):
        trained.predict_new(small_graph, features[:, :5], [[0], [1]])
    narrow = build_graph([0], [1], features=np.zeros((2, 5), np.float32))
    with pytest.raises(GraphError, match=r"5 feature columns, the model was trained on 8"):
        trained.predict_new(narrow, features[:, :5], [[0], [1]])


def test_stores_that_do_not_fit_are_refused_on_predict(trained, small_graph, store, tmp_path):
    with pytest.raises(StoreError, match="needs their rows: give the store"):
        trained.predict(small_graph, nodes=NODES, store=None)
    with pytest.raises(StoreError, match="is not a PPR store"):
        trained.predict(small_graph, nodes=NODES, store=tmp_path)
    other = replace(small_graph, indices=small_graph.indices[::-1].copy())
    with pytest.raises(StoreError, match="graph fingerprint"):
        trained.predict(other, nodes=NODES, store=store)
    trained.config = replace(trained.config, diffusion=DiffusionConfig(teleport=0.3))
    with pytest.raises(StoreError, match=r"rows of teleport 0.1, the model diffuses with 0.3"):
        trained.predict(small_graph, nodes=NODES, store=store)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"nodes": [300]}, StoreError, "node 300 is out of range"),
        ({"nodes": [-1]}, StoreError, "node -1 is out of range"),
        ({"nodes": [0.5]}, GraphError, "nodes must be a vector of integer node ids"),
        ({"nodes": [0], "explain": -1}, ConfigError, "explain is -1, expected at least 0"),
    ],
)
def test_nodes_that_do_not_fit_are_refused(trained, small_graph, store, options, error, message):
    with pytest.raises(error, match=message):
        trained.predict(small_graph, store=store, **options)


def changed(path, target, edit):
    """A copy of the file `path` with its tensors and facts edited."""
    tensors, facts = load_tensors(path)
    edit(tensors, facts)
    write_tensors(target, tensors, facts)
    return target


FIRST, MEAN = "encoder.first.weight", "clusters.mean_PC"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda t, f: t.pop(FIRST), r"has nothing for 'encoder.first.weight', expected"),
        (lambda t, f: t.pop(MEAN), r"has nothing for 'clusters.mean_PC', expected"),
        (
            lambda t, f: t.update(more=torch.zeros(2)),
            r"float32 of shape \[2\] for 'more', expected",
        ),
        (
            lambda t, f: t.update({MEAN: torch.zeros(5, 3)}),
            r"of shape \[5, 3\] for 'clusters.mean_PC', expected .*\[4, 3\]: it is of another",
        ),
        (lambda t, f: f.update(num_classes=4), "expected"),
        (lambda t, f: f.update(num_clusters=0), r"for 'clusters.* expected nothing"),
        (lambda t, f: f.pop("summary_of"), "does not tell 'summary_of': it was written by another"),
        (lambda t, f: f["config"]["encoder"].update(lattent=2), "no field 'encoder.lattent'"),
    ],
)
def test_a_file_of_another_model_is_refused_in_one_sentence(saved, tmp_path, edit, message):
    path = changed(saved[1], tmp_path / "model", edit)
    with pytest.raises((RunError, ConfigError), match=message) as caught:
        GPNClassifier.load(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_model_is_refused(tmp_path):
    with pytest.raises(RunError, match="does not exist"):
        GPNClassifier.load(tmp_path / "none")
    (tmp_path / "text").write_text("not tensors")
    with pytest.raises(RunError, match="cannot be read"):
        GPNClassifier.load(tmp_path / "text")
    save_file({"a": torch.zeros(1)}, tmp_path / "foreign")
    with pytest.raises(RunError, match="format None, expected 1"):
        GPNClassifier.load(tmp_path / "foreign")
    save_file({"a": torch.zeros(1)}, tmp_path / "odd", {"facts": "{"})
    with pytest.raises(RunError, match="cannot be read"):
        GPNClassifier.load(tmp_path / "odd")
    save_file({"a": torch.zeros(1)}, tmp_path / "bare", {"facts": json.dumps({"format": 1})})
    with pytest.raises(RunError, match="expected a model file"):
        GPNClassifier.load(tmp_path / "bare")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda t, f: t.pop(f"model.{FIRST}"), "has nothing for 'model.encoder.first.weight'"),
        (
            lambda t, f: t.update({f"best.{MEAN}": torch.zeros(5, 3)}),
            r"for 'best.clusters.mean_PC'",
        ),
        (lambda t, f: t.update({"optimiser.0.exp_avg": torch.zeros(1)}), "'optimiser.0.exp_avg'"),
        (lambda t, f: t.pop("optimiser.0.step"), "has nothing for 'optimiser.0.step', expected"),
        (lambda t, f: t.update({"optimiser.99.step": torch.zeros(())}), "expected nothing"),
        (lambda t, f: t.pop("generator"), "has nothing for 'generator'"),
        (lambda t, f: f.pop("epoch"), "is a model file, expected a training checkpoint"),
    ],
)
def test_a_checkpoint_whose_tensors_do_not_fit_is_refused(
    small_graph, store, tmp_path, edit, message
):
    config = config_of()
    classifier = GPNClassifier(config, device="cpu")
    trainer = classifier.trainer(small_graph, store)
    list(trainer.records())
    save_checkpoint(tmp_path / "whole", trainer, config, "graph")
    path = changed(tmp_path / "whole", tmp_path / "changed", edit)
    other = GPNClassifier(config, device="cpu").trainer(small_graph, store)
    before = {name: value.clone() for name, value in other.model.state_dict().items()}
    with pytest.raises(RunError, match=message) as caught:
        restore_checkpoint(path, other, config, "graph")
    assert "\n" not in str(caught.value)
    assert other.progress.epoch == 0
    assert all(torch.equal(before[n], value) for n, value in other.model.state_dict().items())
