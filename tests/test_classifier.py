"""Parameters, fitted attributes and scores of a classifier, as scikit-learn's users expect them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.base import clone

from gpn_scale.config import DiffusionConfig, RunConfig, TrainConfig
from gpn_scale.data.building import build_graph
from gpn_scale.errors import ConfigError, GraphError, RunError, UnfittedError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.keywords import KEYWORDS

QUICK = {"epochs": 5, "hidden": 8, "latent": 4}


def named(graph):
    return replace(
        graph,
        node_names=np.array([f"n{node}" for node in range(graph.num_nodes)]),
        class_names=np.array(["red", "green", "blue"]),
        feature_names=np.array([f"f{column}" for column in range(graph.num_features)]),
    )


@pytest.fixture(scope="module")
def graph(small_graph):
    return named(small_graph)


@pytest.fixture(scope="module")
def fitted(graph):
    return GPNClassifier(**QUICK).fit(graph)


def test_parameters_are_those_of_the_constructor():
    config = RunConfig(model="GPN")
    given = {"config": config, "epochs": 3, "random_state": 2, "verbose": 1, "device": "cpu"}
    parameters = GPNClassifier(**given).get_params()
    assert {name: parameters[name] for name in given} == given
    assert KEYWORDS.keys() <= parameters.keys()
    assert [name for name in KEYWORDS if parameters[name] is not None] == ["epochs", "random_state"]
    del given["config"]
    assert parameters == GPNClassifier(config, **given).get_params()


def test_a_clone_has_the_same_parameters_and_no_model(fitted):
    classifier = GPNClassifier(
        RunConfig(model="GPN"),
        latent=3,
        predicts_with=DiffusionConfig(steps=0),
        dtype=torch.float64,
    )
    copy = clone(classifier)
    assert copy.get_params() == classifier.get_params()
    assert (copy.config, copy.predicts_with) == (classifier.config, classifier.predicts_with)
    assert copy.dtype == torch.float64
    assert not hasattr(clone(fitted), "classes_")


def test_set_parameters_count_from_the_next_fit_on(graph):
    classifier = GPNClassifier(**QUICK)
    assert classifier.set_params(epochs=2, dtype=torch.float64) is classifier
    assert classifier.config.train.epochs == 2
    assert classifier.fit(graph).dtype == torch.float64
    before = classifier.predict(graph).alpha_0
    classifier.set_params(latent=3, verbose=0, dtype=torch.float32)
    assert classifier.config.encoder.latent == 4  # the trained model stays as it is
    np.testing.assert_array_equal(classifier.predict(graph).alpha_0, before)
    assert classifier.fit(graph).config.encoder.latent == 3
    assert classifier.dtype == torch.float32


def test_wrong_parameters_are_refused_and_change_nothing():
    classifier = GPNClassifier(**QUICK)
    with pytest.raises(ConfigError, match="has no parameter 'epoch', expected config, model, mode"):
        classifier.set_params(epoch=3)
    with pytest.raises(ConfigError, match=r"encoder\.latent is 0, expected at least 1"):
        classifier.set_params(latent=0)
    assert classifier.get_params() == GPNClassifier(**QUICK).get_params()
    with pytest.raises(ConfigError, match=r"encoder\.latent is 0"):
        GPNClassifier(latent=0)


def test_what_was_set_and_whether_it_is_fitted_shows(fitted):
    assert repr(GPNClassifier()) == "GPNClassifier(), not fitted"
    config = RunConfig(model="GPN", train=TrainConfig(epochs=3))
    assert repr(GPNClassifier(config, random_state=0)) == (
        "GPNClassifier(config=RunConfig(model='GPN', train=TrainConfig(epochs=3)), random_state=0)"
        ", not fitted"
    )
    assert repr(fitted) == (
        "GPNClassifier(epochs=5, hidden=8, latent=4), fitted: GPN+, 8 features, 3 classes"
    )


def test_fitted_attributes(small_graph, fitted):
    assert fitted.classes_.tolist() == ["red", "green", "blue"]
    assert fitted.n_features_in_ == 8
    assert fitted.feature_names_in_.tolist() == [f"f{column}" for column in range(8)]
    plain = GPNClassifier(epochs=0, model="GPN").fit(small_graph)
    assert plain.classes_.tolist() == [0, 1, 2]
    assert not hasattr(plain, "feature_names_in_")


@pytest.mark.parametrize(
    "name", ["classes_", "n_features_in_", "feature_names_in_", "history_", "trained", "contract"]
)
def test_before_fit_there_are_no_fitted_attributes(name):
    assert not hasattr(GPNClassifier(), name)
    with pytest.raises(UnfittedError, match="call fit or load first") as error:
        getattr(GPNClassifier(), name)
    assert isinstance(error.value, RunError)


def test_probabilities_are_those_of_the_prediction(graph, fitted):
    prediction = fitted.predict(graph)
    np.testing.assert_array_equal(fitted.predict_proba(graph), prediction.probabilities)


def test_the_score_is_the_accuracy_on_test_nodes(graph, fitted):
    right = fitted.predict(graph).predicted_class == graph.labels
    test = np.setdiff1d(graph.split.test, graph.marked)
    assert fitted.score(graph) == pytest.approx(right[test].mean())
    names = [f"n{node}" for node in test[:5]]
    assert fitted.score(graph, nodes=names) == pytest.approx(right[test[:5]].mean())
    unsplit = replace(graph, split=None)
    right = fitted.predict(unsplit).predicted_class == graph.labels
    labelled = np.setdiff1d(np.flatnonzero(graph.labels >= 0), graph.marked)
    assert fitted.score(unsplit) == pytest.approx(right[labelled].mean())


def test_nodes_without_labels_have_no_score(graph, fitted):
    unlabelled = replace(graph, labels=np.full(300, -1, np.int32), split=None)
    with pytest.raises(GraphError, match="classes at its test nodes, expected"):
        fitted.score(unlabelled)
    with pytest.raises(GraphError, match="at some of the nodes"):
        fitted.score(graph, nodes=graph.marks["unseen_class"][:1])


def test_the_graph_of_training_keeps_the_split_that_fit_has_drawn(graph):
    given = replace(graph, split=None)
    classifier = GPNClassifier(**QUICK).fit(given)
    split = classifier.aligned(given).graph.split
    assert split is not None
    drawn = graph.with_split(split)
    right = classifier.predict(drawn).predicted_class == graph.labels
    assert classifier.score(given) == pytest.approx(
        right[np.setdiff1d(split.test, graph.marked)].mean()
    )
    assert "labels" in classifier.predict(given).p.parts
    other = replace(given, features=graph.features + 1)
    assert classifier.aligned(other).graph.split is None
    assert "labels" not in classifier.predict(other).p.parts
    classifier.fit(graph)
    assert classifier.aligned(given).graph.split is None


def test_predictions_know_ids_and_class_names(graph, fitted):
    frame = fitted.predict(graph).to_frame()
    assert frame["node_name"][3] == "n3"
    assert set(frame["predicted_class_name"]) <= {"red", "green", "blue"}
    assert frame["split"].value_counts()["train"] == len(graph.split.train)
    others = replace(graph, class_names=np.array(["blue", "green", "red"]), split=None)
    renamed = fitted.predict(others).to_frame()  # class names are the model's
    assert renamed["predicted_class_name"].tolist() == [
        ["red", "green", "blue"][label] for label in renamed["predicted_class"]
    ]
    both = fitted.predict_with_evidence(graph)[0].to_frame()
    assert both.equals(frame)
    assert fitted.calibrate(graph).to_frame().equals(frame)


def test_new_nodes_have_class_names_and_further_ids(graph, fitted):
    new = fitted.predict_new(graph, graph.features[:2], neighbours=[[0], [1, 300]])
    frame = new.prediction.to_frame()
    assert frame["node"].tolist() == [300, 301]
    assert set(frame["predicted_class_name"]) <= {"red", "green", "blue"}
    assert "label" not in frame


def test_explanations_of_a_users_id(graph, fitted):
    explanation = fitted.explain(graph, "n7", count=2)
    assert explanation.node.tolist() == [7]
    assert repr(explanation).startswith("node 'n7' has ")
    position = fitted.explain(graph, 7, count=2)
    np.testing.assert_array_equal(position.contributors.node, explanation.contributors.node)


def test_the_graph_may_be_of_another_library(small_graph):
    arrays = (small_graph.features, small_graph.labels, _edges(small_graph))
    classifier = GPNClassifier(**QUICK).fit(arrays)
    expected = build_graph(*arrays[2], features=arrays[0], labels=arrays[1])
    other = GPNClassifier(**QUICK).fit(expected)
    np.testing.assert_array_equal(
        classifier.predict_proba(arrays), other.predict(expected).probabilities
    )
    assert classifier.score(arrays) == other.score(expected)
    with pytest.raises(GraphError, match="graph is a str, expected a Graph, a PyG Data"):
        GPNClassifier().fit("CoraML")
    with pytest.raises(GraphError, match="graph is a list, expected a Graph"):
        classifier.predict([])


def _edges(graph):
    return np.stack([np.repeat(np.arange(graph.num_nodes), graph.out_degree), graph.indices])
