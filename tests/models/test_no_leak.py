"""Nothing that a model learns or calibrates depends on which nodes are unknown, or on their labels.

Unknown nodes are in the graph during training, with their features and edges, as in the paper. What
must not matter, bit for bit: how they are divided among the left-out classes, which of them the
evaluation will ask for, and the labels of all test nodes.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.data.graph import MISSING_LABEL
from gpn_scale.data.shifts import shifted_edges
from gpn_scale.data.splits import class_prior, left_out_class_set, prepare_graph
from gpn_scale.evaluation.scores import DETECTION_SCORES
from gpn_scale.experiments.calibration import calibration
from gpn_scale.models.registry import MODELS, setting_of
from tests.baselines.graphs import CONFIG, unsplit_graph
from tests.ppr.stored import write_store

CLASSES, LEFT_OUT, CLASS_SET = 6, 3, 1
GRAPH = unsplit_graph(nodes=180, classes=CLASSES)
HIDDEN = np.isin(GRAPH.labels, left_out_class_set(CLASSES, LEFT_OUT, CLASS_SET))
RECIPE = replace(
    CONFIG,
    train=replace(CONFIG.train, epochs=3),
    data=replace(CONFIG.data, left_out_classes=LEFT_OUT, left_out_set=CLASS_SET),
)
QUICK = {
    "GPN-minibatch": [("minibatch.tail", "stationary")],
    "GPN+-minibatch": [("minibatch.tail", "stationary")],
    "VGCN-Ensemble": [("model.members", "2")],
    "VGCN-Ensemble-minibatch": [("model.members", "2")],
}
NAMES = [*MODELS, "GPN[encoder.standardise=true]"]


def shuffled(values, seed):
    return np.random.default_rng(seed).permutation(values)


def relabelled():
    """The whole graph, with the labels of all hidden nodes shuffled among them."""
    labels = GRAPH.labels.copy()
    labels[HIDDEN] = shuffled(labels[HIDDEN], 1)
    assert (labels != GRAPH.labels).any()
    return replace(GRAPH, labels=labels)


def prepared(graph):
    return prepare_graph(graph, RECIPE)


def other_unknown_and_test():
    """The graph of training, with other hidden labels, without marks, with other test labels."""
    graph = prepared(relabelled())
    labels, test = graph.labels.copy(), graph.split.test
    labels[test] = shuffled(labels[test], 2)
    return replace(graph, labels=labels, marks={})


def other_training_label():
    """The graph of training, in which two training nodes of different classes change places."""
    graph = prepared(GRAPH)
    labels, train = graph.labels.copy(), graph.split.train
    first, second = train[0], train[labels[train] != labels[train[0]]][0]
    labels[[first, second]] = labels[[second, first]]
    return replace(graph, labels=labels)


def changed_unknown_nodes():
    """The graph of training, with other features of the unknown nodes and other edges of theirs."""
    graph = prepared(GRAPH)
    features, rng = graph.features.copy(), np.random.default_rng(3)
    features[HIDDEN] = rng.normal(size=features[HIDDEN].shape)
    return replace(shifted_edges(graph, 0.3, "random", 4), features=features)


def fitted(name, graph, folder):
    setting = setting_of(name, RECIPE, QUICK.get(name, []), GRAPH)
    store = None
    if setting.needs_rows:
        diffusion = setting.row_diffusion
        facts = diffusion.store_parameters
        store = write_store(str(folder), GRAPH, diffusion, k=8, parameters=facts).path
    return setting.new().fit(graph, store=store)


def computed(model, graph):
    """All that a model computes of the graph: its probabilities and every score that it has."""
    prediction = model.predict(graph)
    scores = prediction.scores(np.arange(graph.num_nodes), DETECTION_SCORES)
    arrays = {name: score for name, score in scores.items() if score is not None}
    return {"probabilities": prediction.probabilities, **arrays}


def assert_same(first, second):
    assert first.keys() == second.keys()
    for name, values in first.items():
        np.testing.assert_array_equal(np.asarray(values), np.asarray(second[name]), name)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_learns_nothing_from_unknown_nodes_or_test_labels(name, tmp_path):
    graph = prepared(GRAPH)
    model = fitted(name, graph, tmp_path / "rows")
    other = fitted(name, other_unknown_and_test(), tmp_path / "other")
    state, expected = model.state(), computed(model, graph)
    assert_same(other.state(), state)
    assert_same(computed(other, graph), expected)
    assert expected["probabilities"].shape[1] == CLASSES - LEFT_OUT
    # The same comparison notices that two labels of training nodes were exchanged.
    changed = fitted(name, other_training_label(), tmp_path / "changed")
    assert (computed(changed, graph)["probabilities"] != expected["probabilities"]).any()


@pytest.mark.parametrize("name", NAMES)
def test_predictions_of_changed_unknown_nodes_leave_the_model_as_it_was(name, tmp_path):
    graph = prepared(GRAPH)
    model = fitted(name, graph, tmp_path / "rows")
    state = {key: torch.clone(tensor) for key, tensor in model.state().items()}
    expected = computed(model, graph)
    computed(model, changed_unknown_nodes())
    model.perturbed(graph).with_edges(changed_unknown_nodes())
    assert_same(model.state(), state)
    assert_same(computed(model, graph), expected)


def test_the_split_of_known_nodes_ignores_labels_of_hidden_ones():
    first, second = prepared(GRAPH), prepared(relabelled())
    for part in ("train", "val", "test"):
        ids = getattr(first.split, part)
        np.testing.assert_array_equal(ids, getattr(second.split, part))
        assert not HIDDEN[ids].any()
    np.testing.assert_array_equal(first.labels, second.labels)
    assert (first.labels[HIDDEN] == MISSING_LABEL).all()
    assert first.num_classes == second.num_classes == CLASSES - LEFT_OUT


def test_the_class_prior_is_that_of_the_known_classes_in_training():
    graph = prepared(GRAPH)
    counts = np.bincount(GRAPH.labels[graph.split.train], minlength=CLASSES)
    known = np.setdiff1d(np.arange(CLASSES), left_out_class_set(CLASSES, LEFT_OUT, CLASS_SET))
    np.testing.assert_array_equal(class_prior(graph), counts[known] / len(graph.split.train))
    np.testing.assert_array_equal(class_prior(other_unknown_and_test()), class_prior(graph))


def test_the_temperature_is_fitted_to_validation_nodes_alone(tmp_path):
    graph = prepared(GRAPH)
    prediction = fitted("APPNP", graph, tmp_path).predict(graph)
    temperature = calibration(prediction, graph)["temperature"]
    assert calibration(prediction, other_unknown_and_test())["temperature"] == temperature
    labels, val = graph.labels.copy(), graph.split.val
    labels[val] = (labels[val] + 1) % graph.num_classes
    assert calibration(prediction, replace(graph, labels=labels))["temperature"] != temperature


@pytest.mark.parametrize("name", ["GPN+", "GPN", "VGCN", "APPNP+temperature"])
def test_early_stopping_and_calibration_look_at_validation_labels(name, tmp_path):
    graph = prepared(GRAPH)
    labels, val = graph.labels.copy(), graph.split.val
    labels[val] = (labels[val] + 1) % graph.num_classes
    changes = [("train.epochs", "30"), ("train.patience", "2")]
    states = [
        setting_of(name, RECIPE, changes, GRAPH).new().fit(variant).state()
        for variant in (graph, replace(graph, labels=labels))
    ]
    assert any(not torch.equal(states[0][key], states[1][key]) for key in states[0])
