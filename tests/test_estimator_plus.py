"""`GPNClassifier` as GPN+: its parts are trained apart, never see unknown nodes, and are saved."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.config import (
    DiffusionConfig,
    EncoderConfig,
    FlowConfig,
    MinibatchConfig,
    OpinionConfig,
    RunConfig,
    TrainConfig,
)
from gpn_scale.data.splits import leave_out_classes
from gpn_scale.errors import ConfigError, MissingScoreError, RunError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.temperature import NodeTemperature
from gpn_scale.inference.all_nodes import predict_all
from gpn_scale.models.registry import MODELS, setting_of
from gpn_scale.nn.opinion import Opinion
from gpn_scale.train.checkpoint import load_tensors, save_tensors
from tests.ppr.stored import write_store

PLUS = RunConfig(
    encoder=EncoderConfig(hidden=8, latent=4),
    minibatch=MinibatchConfig(batch_size=16, tail_nodes=64),
    train=TrainConfig(epochs=6, warmup_steps=2),
)
GPN = replace(PLUS, model="GPN")
P_VALUES = ("features", "neighbourhood", "opinion", "labels", "known")
ARRAYS = (
    "probabilities",
    "probabilities_no_network",
    "alpha_0",
    "alpha_0_no_network",
    "energy",
    "label_evidence",
)


def fitted(config, graph, store=None):
    return GPNClassifier(config, device="cpu").fit(graph, store=store)


def below(prefix, state):
    return {name: tensor for name, tensor in state.items() if name.startswith(prefix)}


def assert_equal_states(got, expected):
    assert got.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(got[name], tensor), name


def assert_same(got, expected):
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(got, name), getattr(expected, name), err_msg=name)
    for name in P_VALUES:
        np.testing.assert_array_equal(got.p_value(name), expected.p_value(name), err_msg=name)


@pytest.fixture(scope="module")
def store(small_graph, tmp_path_factory):
    folder, diffusion = tmp_path_factory.mktemp("rows"), PLUS.diffusion
    kinds = {"parameters": diffusion.store_parameters, "clusters": 4}
    return write_store(str(folder), small_graph, diffusion, k=8, **kinds)


@pytest.fixture(scope="module")
def plus(small_graph):
    return fitted(PLUS, small_graph)


@pytest.mark.parametrize("mode", ["exact", "minibatch"])
def test_the_gpn_inside_is_trained_as_a_gpn_with_the_same_seed(small_graph, store, mode):
    alone, inside = (
        fitted(replace(config, mode=mode), small_graph, store).state() for config in (GPN, PLUS)
    )
    others = below(("opinion.", "calibration."), inside)
    assert_equal_states({n: t for n, t in inside.items() if n not in others}, alone)
    assert below("opinion.encoder", others)
    assert "calibration.temperature" in others


@pytest.mark.parametrize("mode", ["exact", "minibatch"])
def test_the_opinion_does_not_depend_on_the_evidence(small_graph, store, mode):
    config = replace(PLUS, mode=mode)
    other = replace(
        config,
        flow=FlowConfig(radial_layers=2),
        train=replace(PLUS.train, entropy_weight=0.5, warmup_steps=4, weight_decay=0.1),
    )
    first, second = (fitted(each, small_graph, store).state() for each in (config, other))
    assert_equal_states(below("opinion.", first), below("opinion.", second))
    name = "encoder.first.weight"
    assert not torch.equal(first[name], second[name])


def test_parts_are_trained_one_after_the_other(small_graph):
    records, classifier = [], GPNClassifier(PLUS, device="cpu")
    classifier.fit(small_graph, observe=records.append)
    parts = [record.part for record in records]
    assert parts == ["features"] * (6 + 2) + ["opinion"] * 6
    assert len(GPNClassifier(GPN).trainers(small_graph)) == 1


def test_training_the_opinion_leaves_the_rest_as_it_was(small_graph, plus):
    classifier = GPNClassifier(PLUS, device="cpu")
    features, opinion = classifier.trainers(small_graph)
    with pytest.raises(RunError, match="has no model yet"):
        classifier.fit_trainer(opinion)
    classifier.fit_trainer(features)
    assert classifier.trained.opinion is None
    before = {name: tensor.clone() for name, tensor in classifier.state().items()}
    _, again = classifier.trainers(small_graph)
    classifier.fit_trainer(again)
    assert isinstance(classifier.trained.opinion.network, Opinion)
    after = classifier.state()
    assert classifier.trained.calibration is None
    assert_equal_states({name: after[name] for name in before}, before)
    classifier.calibrate(small_graph)
    assert_equal_states(classifier.state(), plus.state())


@pytest.mark.parametrize("part", [0, 1])
def test_a_part_that_is_trained_again_needs_a_new_calibration(small_graph, plus, part):
    classifier = GPNClassifier(PLUS, device="cpu")
    classifier.load_state(small_graph, plus.state(), "memory")
    classifier.fit_trainer(classifier.trainers(small_graph)[part])
    assert classifier.trained.opinion is not None
    assert classifier.trained.calibration is None
    assert classifier.predict(small_graph).p is None
    classifier.calibrate(small_graph)
    assert_equal_states(classifier.state(), plus.state())


def test_the_temperatures_of_the_state_are_the_fitted_ones(small_graph, plus):
    raw = predict_all(replace(plus.trained, calibration=None), small_graph)
    val = small_graph.split.val
    own = raw.rows(val)
    rule = NodeTemperature.fitted(own.probabilities, own.energy, small_graph.labels[val])
    state = plus.state()
    assert state["calibration.temperature"].item() == rule.temperature
    assert state["calibration.temperature_slope"].tolist() == [
        rule.slope,
        rule.mean,
        rule.deviation,
    ]
    assert plus.trained.calibration.num_nodes == len(val)


def test_labels_of_test_nodes_and_of_unknown_nodes_change_nothing(small_graph, plus):
    labels, test = small_graph.labels.copy(), small_graph.split.test
    labels[test] = (labels[test] + 1) % 3
    unknown = np.setdiff1d(small_graph.marked, test)
    labels[unknown] = 0
    assert (labels != small_graph.labels).sum() > 150
    other = fitted(PLUS, replace(small_graph, labels=labels))
    assert_equal_states(other.state(), plus.state())


def test_labels_of_left_out_classes_change_nothing(small_graph):
    left_out = leave_out_classes(small_graph, 1)
    hidden = np.flatnonzero((small_graph.labels == 2) & (left_out.labels < 0))
    assert not np.isin(hidden, [*left_out.split.train, *left_out.split.val]).any()
    labels = left_out.labels.copy()
    labels[hidden] = np.arange(len(hidden)) % 2
    first = fitted(PLUS, left_out).state()
    second = fitted(PLUS, replace(left_out, labels=labels)).state()
    assert_equal_states(second, first)
    known = int((small_graph.labels[small_graph.split.val] != 2).sum())
    assert first["calibration.num_nodes"].item() == known


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_saved_and_loaded_it_predicts_the_same(small_graph, store, tmp_path, dtype):
    classifier = GPNClassifier(replace(PLUS, mode="minibatch"), device="cpu", dtype=dtype)
    classifier.fit(small_graph, store=store)
    prediction = classifier.predict(small_graph, store=store)
    nodes = classifier.predict_nodes(small_graph, [5, 0], store).prediction
    classifier.save(tmp_path / "model")
    loaded = GPNClassifier.load(tmp_path / "model", device="cpu")
    assert loaded.config == classifier.config
    assert_equal_states(loaded.state(), classifier.state())
    assert_same(loaded.predict(small_graph), prediction)
    assert_same(loaded.predict_nodes(small_graph, [5, 0], store).prediction, nodes)
    again = GPNClassifier(classifier.config, device="cpu", dtype=dtype)
    again.load_state(small_graph, classifier.state(), "memory")
    assert_same(again.predict(small_graph), prediction)


def test_a_loaded_model_knows_the_surprise_of_its_graph(small_graph, plus, tmp_path, monkeypatch):
    plus.save(tmp_path / "model")
    loaded = GPNClassifier.load(tmp_path / "model", device="cpu")
    monkeypatch.setattr(loaded, "predict", None)  # predicting all nodes again would fail
    new = small_graph.features[:1], [[0, 1]]
    got, expected = (each.predict_new(small_graph, *new).prediction for each in (loaded, plus))
    np.testing.assert_array_equal(got.p.known, expected.p.known)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda t: t.pop("calibration.temperature"), "has nothing for 'temperature'"),
        (lambda t: t.pop("calibration.num_nodes"), "expected"),
        (lambda t: t.pop("opinion.encoder.first.bias"), "has nothing for 'encoder.first.bias'"),
        (lambda t: t["calibration.temperature"].fill_(-2.0), "a temperature of -2.0, expected"),
        (lambda t: t["calibration.scores.energy"].fill_(np.nan), "not finite"),
        (lambda t: t["calibration.around.labels"].fill_(np.nan), "not finite"),
        (lambda t: t.pop("calibration.around.labels"), r"has nothing for 'around.labels'"),
        (
            lambda t: t.update(surprise=t["surprise"].double()),
            "float64 .* for 'surprise', expected",
        ),
        (lambda t: t.update(surprise=t["surprise"][None]), r"\[1, 300\] for 'surprise', expected"),
    ],
)
def test_a_damaged_file_is_refused_in_one_sentence(plus, tmp_path, edit, message):
    plus.save(tmp_path / "model")
    tensors, facts = load_tensors(tmp_path / "model")
    edit(tensors)
    save_tensors(tmp_path / "model", tensors, facts)
    with pytest.raises(RunError, match=message) as caught:
        GPNClassifier.load(tmp_path / "model")
    assert "\n" not in str(caught.value)
    assert "train again" in str(caught.value)


def test_a_file_from_before_there_was_gpn_plus_is_of_a_gpn(small_graph, tmp_path):
    classifier = fitted(GPN, small_graph)
    classifier.save(tmp_path / "model")
    tensors, facts = load_tensors(tmp_path / "model")
    del facts["config"]["model"], facts["config"]["opinion"]
    save_tensors(tmp_path / "model", tensors, facts)
    loaded = GPNClassifier.load(tmp_path / "model", device="cpu")
    assert loaded.config == GPN
    prediction = loaded.predict(small_graph)
    np.testing.assert_array_equal(prediction.alpha_0, classifier.predict(small_graph).alpha_0)
    assert (prediction.p, prediction.energy, prediction.label_evidence) == (None, None, None)
    for name in P_VALUES:
        assert prediction.score(f"p_{name}") is None
        with pytest.raises(MissingScoreError, match=f"no p-value '{name}', only none: a GPN"):
            prediction.p_value(name)


def test_logarithms_of_evidence_are_refused(small_graph):
    logs = DiffusionConfig(of="log_evidence")
    with pytest.raises(ConfigError, match=r"expected 'evidence' for model='GPN\+'") as caught:
        replace(PLUS, diffusion=logs)
    assert set(caught.value.arguments) == {"diffusion.of", "model"}
    with pytest.raises(ConfigError, match=r"expected 'evidence' for model='GPN\+'"):
        setting_of("GPN+[diffusion.of=log_evidence]", PLUS, [], small_graph)
    assert replace(GPN, diffusion=logs).diffusion == logs


def test_the_registry_has_gpn_plus_in_both_modes(small_graph):
    assert next(iter(MODELS)) == "GPN+"
    for name, mode in (("GPN+", "exact"), ("GPN+-minibatch", "minibatch"), ("GPN", "exact")):
        setting = setting_of(name, RunConfig(), [("opinion.epochs", "3")], small_graph)
        assert (setting.config.model, setting.config.mode) == (
            name.removesuffix("-minibatch"),
            mode,
        )
        assert setting.config.opinion == OpinionConfig(epochs=3)
        assert setting.needs_rows == (mode == "minibatch")
    fingerprints = {
        setting_of(name, RunConfig(), [], small_graph).fingerprint
        for name in ("GPN", "GPN+", "GPN+-minibatch", "GPN+[opinion.dropout=0.1]")
    }
    assert len(fingerprints) == 4
