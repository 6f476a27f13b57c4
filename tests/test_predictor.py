"""Predictions of GPN+ by every method of the classifier, p-values, and parts that are missing."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.config import EncoderConfig, RunConfig, SplitConfig, TrainConfig
from gpn_scale.data.building import build_graph
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Split
from gpn_scale.data.splits import stratified_split
from gpn_scale.diffusion.growth import grown_graph, new_nodes
from gpn_scale.errors import ConfigError, GraphError, MissingScoreError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.inference.all_nodes import predict_all
from tests.inference.models import (
    assert_counted,
    assert_plus,
    dense_average,
    dense_prediction,
    total_surprise,
)
from tests.ppr.stored import write_store

PLUS = RunConfig(
    split=SplitConfig(train=0.2, val=0.2),
    encoder=EncoderConfig(hidden=8, latent=4),
    train=TrainConfig(epochs=10, warmup_steps=2),
)
ALL_PARTS = ("features", "neighbourhood", "opinion", "labels")


def fitted(graph, config=PLUS, dtype=torch.float64):
    return GPNClassifier(config, device="cpu", dtype=dtype).fit(graph)


def notes(classifier):
    return " ".join(classifier.trained.calibration.notes)


def around_of(classifier, graph, prediction):
    """Surprise of the surroundings of all nodes of a graph, by dense matrices."""
    surprise = total_surprise(prediction, classifier.trained.calibration)
    return dense_average(classifier.trained, graph, surprise)


def assert_all_counted(got, classifier, graph):
    around = around_of(classifier, graph, got)
    assert_counted(got, classifier.trained.calibration, around)


@pytest.fixture(scope="module")
def classifier(small_graph):
    return fitted(small_graph)


@pytest.fixture(scope="module")
def all_rows(small_graph, tmp_path_factory):
    """A store with every entry of every row."""
    folder, diffusion = tmp_path_factory.mktemp("rows"), PLUS.diffusion
    kinds = {"parameters": diffusion.store_parameters, "clusters": 2}
    return write_store(str(folder), small_graph, diffusion, k=300, **kinds)


def test_all_nodes_some_nodes_and_the_unchanged_graph_agree(small_graph, classifier, all_rows):
    calibration = classifier.trained.calibration
    assert calibration.parts == ALL_PARTS
    expected = dense_prediction(classifier.trained, small_graph)
    # The last bit of a score decides whether a validation node is as strange as itself, so that
    # surprise is counted from each prediction's own arrays.
    whole, unchanged = (
        classifier.predict(small_graph),
        classifier.perturbed(small_graph).unchanged(),
    )
    around = around_of(classifier, small_graph, whole)
    assert_plus(whole, expected, calibration, around)
    own_around = around_of(classifier, small_graph, unchanged)
    assert_plus(unchanged, expected, calibration, own_around)
    nodes = np.array([7, 3, 7, 299])
    some = classifier.predict_nodes(small_graph, nodes, all_rows).prediction
    assert_plus(some, expected.rows(nodes), calibration, around[nodes], rtol=1e-4)
    collected = classifier.predict(small_graph, store=all_rows)
    assert_plus(collected, expected, calibration, around)
    again = classifier.predict_nodes(small_graph, nodes, all_rows).prediction
    assert_plus(again, expected.rows(nodes), calibration, around[nodes], rtol=1e-4)


def test_new_nodes_are_predicted_as_in_the_grown_graph(small_graph, classifier):
    features, neighbours = small_graph.features[:2] + 1, [[0, 1, 300], []]
    got = classifier.predict_new(small_graph, features, neighbours, tolerance=0.0).prediction
    grown = grown_graph(small_graph, new_nodes(small_graph, features, neighbours))
    expected = dense_prediction(classifier.trained, grown).rows(np.array([300, 301]))
    calibration = classifier.trained.calibration
    before, joined = (
        total_surprise(each, calibration) for each in (classifier.predict(small_graph), expected)
    )
    around = dense_average(classifier.trained, grown, np.append(before, joined))[300:]
    assert_plus(got, expected, calibration, around)
    assert got.label_evidence[1] == 0.0  # no label reaches a node without neighbours


def test_surroundings_of_the_validation_nodes_are_those_of_the_graph(small_graph, classifier):
    calibration, val = classifier.trained.calibration, small_graph.split.val
    around = around_of(classifier, small_graph, classifier.predict(small_graph))
    total = np.sum([calibration.surroundings[part] for part in ALL_PARTS], axis=0)
    np.testing.assert_allclose(total, around[val], rtol=1e-5)


def test_a_small_budget_gives_the_same_p_values(small_graph, classifier, tmp_path):
    got = classifier.predict(small_graph, memory_bytes=29 << 20, scratch=tmp_path)
    expected = classifier.predict(small_graph)
    for part in (*ALL_PARTS, "known"):
        np.testing.assert_array_equal(got.p_value(part), expected.p_value(part))


def test_calibration_takes_a_prediction_that_is_there_already(small_graph, classifier):
    again = fitted(small_graph)
    raw = predict_all(replace(again.trained, calibration=None), small_graph)
    got, expected = again.calibrate(small_graph, raw), classifier.predict(small_graph)
    assert got.probabilities is raw.probabilities
    for part in (*ALL_PARTS, "known"):
        np.testing.assert_array_equal(got.p_value(part), expected.p_value(part))
    states = [again.state(), classifier.state()]
    again.calibrate(small_graph)
    for state in (*states[1:], again.state()):
        assert all(torch.equal(state[name], states[0][name]) for name in states[0])


def test_calibration_stays_within_the_memory_budget(small_graph, classifier, tmp_path):
    again = fitted(small_graph)
    budget = {"memory_bytes": 29 << 20, "scratch": tmp_path}
    got, _ = again.predict_with_evidence(small_graph, **budget, calibrate=True)
    np.testing.assert_array_equal(got.p.known, classifier.predict(small_graph).p.known)
    with pytest.raises(ConfigError, match="too small to predict"):
        again.calibrate(small_graph, predict_all(again.trained, small_graph), memory_bytes=1 << 10)


def test_predictions_of_gpn_plus_refuse_a_diffusion_of_logarithms():
    logs = replace(PLUS.diffusion, of="log_evidence")
    with pytest.raises(ConfigError, match="expected 'evidence' for model='GPN\\+'"):
        GPNClassifier(PLUS, predicts_with=logs)
    gpn = replace(PLUS, model="GPN")
    assert GPNClassifier(gpn, predicts_with=logs).predicts_with is logs


def test_predicting_with_evidence_may_calibrate_on_the_way(small_graph, classifier):
    again = GPNClassifier(PLUS, device="cpu", dtype=torch.float64)
    for trainer in again.trainers(small_graph):
        again.fit_trainer(trainer)
    raw, _ = again.predict_with_evidence(small_graph)
    assert raw.p is None
    got, evidence = again.predict_with_evidence(small_graph, calibrate=True)
    np.testing.assert_array_equal(got.p.known, classifier.predict(small_graph).p.known)
    np.testing.assert_allclose(evidence.total, got.alpha_0_no_network - 3.0, rtol=1e-3, atol=1e-5)


def test_other_validation_nodes_give_another_calibration(small_graph):
    again = fitted(small_graph)
    before = again.state()
    other = stratified_split(replace(small_graph, split=None), train=0.2, val=0.3, rng_seed=5)
    again.calibrate(other)
    after = again.state()
    assert after["calibration.num_nodes"] == len(other.split.val)
    weights = [name for name in before if not name.startswith("calibration.")]
    assert all(torch.equal(before[name], after[name]) for name in weights)


def test_a_gpn_has_nothing_to_calibrate(small_graph):
    gpn = fitted(small_graph, replace(PLUS, model="GPN"))
    before = gpn.state()
    assert gpn.calibrate(replace(small_graph, split=None)).p is None
    assert gpn.state().keys() == before.keys()
    with pytest.raises(MissingScoreError, match="no p-value 'known', only none"):
        gpn.predict(small_graph).p_value("known")


def test_calibration_needs_validation_nodes(small_graph):
    again = fitted(small_graph)
    with pytest.raises(GraphError, match="has no split"):
        again.calibrate(replace(small_graph, split=None))


def test_without_a_split_the_labels_part_is_missing_and_the_others_remain(small_graph, classifier):
    got = classifier.predict(replace(small_graph, split=None))
    whole = classifier.predict(small_graph)
    assert got.label_evidence is None
    assert got.p.parts == ("features", "neighbourhood", "opinion")
    assert_all_counted(got, classifier, small_graph)
    for part in got.p.parts:
        np.testing.assert_array_equal(got.p_value(part), whole.p_value(part))
    assert not np.array_equal(got.p.known, whole.p.known)
    with pytest.raises(MissingScoreError, match=r"'labels', only features, .*, known: .* a split"):
        got.p_value("labels")


def with_validation(graph, val):
    return replace(graph, split=replace(graph.split, val=np.sort(val)))


def test_fewer_than_19_validation_nodes_give_no_p_values(small_graph):
    val = small_graph.split.val
    few = fitted(with_validation(small_graph, val[:18]))
    assert few.predict(small_graph).p is None
    assert "There are 18 validation nodes; p-values need at least 19" in notes(few)
    enough = fitted(with_validation(small_graph, val[:19]))
    assert enough.predict(small_graph).p.known.min() >= np.float32(1 / 20)
    assert "smallest possible one is 5.0%" in notes(enough)


def test_one_validation_node_is_enough_to_train(small_graph):
    alone = fitted(with_validation(small_graph, small_graph.split.val[:1]))
    got = alone.predict(small_graph)
    assert got.p is None
    assert np.isfinite(got.probabilities).all()
    assert "There are 1 validation nodes" in notes(alone)


def test_a_class_may_have_no_validation_nodes(small_graph):
    val = small_graph.split.val
    some = fitted(with_validation(small_graph, val[small_graph.labels[val] != 2]))
    got = some.predict(small_graph)
    assert got.p.parts == ALL_PARTS
    assert np.isfinite(got.probabilities).all()
    assert_all_counted(got, some, small_graph)


def two_components(size=80):
    """Two rings; labels, and so the split, are in the first one alone."""
    ring = np.arange(size)
    source = np.concatenate([ring, ring + size])
    target = np.concatenate([(ring + 1) % size, (ring + 1) % size + size])
    rng, labels = np.random.default_rng(1), np.append(ring % 2, np.full(size, -1))
    features = rng.normal(size=(2 * size, 4)) + np.abs(labels)[:, None]
    split = Split(train=ring[:20], val=ring[20:60], test=ring[60:])
    return build_graph(source, target, features=features, labels=labels, split=split)


def test_no_label_reaches_another_component():
    graph = two_components()
    alone = fitted(graph)
    got = alone.predict(graph)
    assert not got.label_evidence[80:].any()
    calibration = alone.trained.calibration
    assert calibration.parts == ALL_PARTS
    assert_all_counted(got, alone, graph)
    unreached = (calibration.scores["label_absence"] == 0).sum()
    np.testing.assert_allclose(got.p_value("labels")[80:], (1 + unreached) / 41, rtol=1e-6)


def test_a_graph_without_edges_leaves_out_neighbourhood_and_labels():
    rng, labels = np.random.default_rng(2), np.arange(200) % 2
    features = rng.normal(size=(200, 4)) + 2 * labels[:, None]
    graph = build_graph([], [], features=features, labels=labels)
    alone = fitted(graph, replace(PLUS, split=SplitConfig(train=0.2, val=0.6)))
    got = alone.predict(graph)
    assert got.p.parts == ("features", "opinion")
    assert "leaves out neighbourhood, labels" in notes(alone)
    assert_all_counted(got, alone, graph)
    with pytest.raises(MissingScoreError, match="'neighbourhood', only features, opinion, known"):
        got.p_value("neighbourhood")


def test_predicting_another_graph_of_one_node(small_graph, classifier):
    one = build_graph([], [], features=np.zeros((1, small_graph.num_features), np.float32))
    got = classifier.predict(one)
    assert got.probabilities.shape == (1, 3)
    assert got.p.parts == ("features", "neighbourhood", "opinion")
    np.testing.assert_allclose(got.alpha_0, got.alpha_0_no_network, rtol=1e-6)


def test_p_values_of_known_nodes_are_uniform_and_those_of_unknown_ones_small():
    graph = load_graph("synthetic:nodes=3000,classes=4,features=16,separation=4")
    graph = stratified_split(graph, train=0.05, val=0.25, rng_seed=1)
    config = replace(PLUS, train=TrainConfig(epochs=30))
    got = fitted(graph, config, torch.float32).predict(graph)
    test = np.setdiff1d(graph.split.test, graph.marked)
    val = len(graph.split.val)
    error = np.sqrt(1.0 / val + 1.0 / len(test))
    for part in (*ALL_PARTS, "known"):
        p = np.sort(got.p_value(part)[test])
        below = np.searchsorted(p, p, side="right") / len(p)
        # Super-uniform: P(p <= x) <= x, up to 1.63 standard errors (1 % of Kolmogorov-Smirnov).
        assert (below - p).max() < 1.63 * error, part
        if part != "labels":  # label evidence has ties: many nodes that no label reaches
            assert np.abs(below - p).max() < 1.63 * error, part
    unknown = graph.marks["unseen_class"]
    known = got.p_value("known")
    assert np.median(known[unknown]) < 0.5 * np.median(known[test])
