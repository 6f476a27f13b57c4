"""scikit-learn's own tools on nodes, and its own checks on rows of features."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from gpn_scale.data.building import build_graph
from gpn_scale.errors import ConfigError, GraphError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.keywords import KEYWORDS
from gpn_scale.sklearn import NodeEstimator

QUICK = {"epochs": 10, "patience": 10, "hidden": 8, "latent": 4, "learning_rate": 0.05}
EXPECTED_FAILURES: dict[str, str] = {}
"""Checks of scikit-learn that cannot pass, with the reason.

None: the checks pass matrices of features, so they run without a graph, as rows without edges.
"""


@pytest.fixture(scope="module")
def nodes(small_graph):
    return np.setdiff1d(np.flatnonzero(small_graph.labels >= 0), small_graph.marked)


@pytest.fixture(scope="module")
def fitted(small_graph, nodes):
    return NodeEstimator(small_graph, **QUICK).fit(nodes[:120], small_graph.labels[nodes[:120]])


@pytest.mark.slow
def test_the_checks_of_scikit_learn_pass():
    results = check_estimator(
        NodeEstimator(**QUICK), expected_failed_checks=EXPECTED_FAILURES, on_skip=None
    )
    assert {each["check_name"] for each in results} > {"check_classifiers_train"}
    assert not [each for each in results if each["status"] not in {"passed", "skipped"}]
    skipped = {each["check_name"] for each in results if each["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}  # which an environment variable of scipy turns on


def test_cross_validation_over_nodes(small_graph, nodes):
    labels = np.array(["red", "green", "blue"])[small_graph.labels[nodes]]
    estimator = NodeEstimator(small_graph, **QUICK)
    scores = cross_val_score(estimator, nodes, labels, cv=StratifiedKFold(3))
    assert scores.shape == (3,)
    assert scores.mean() > 0.6
    log_losses = cross_val_score(
        estimator, nodes[:, None], labels, cv=StratifiedKFold(2), scoring="neg_log_loss"
    )
    assert (log_losses > -np.log(3)).all()


def test_grids_and_pipelines_over_its_parameters(small_graph, nodes):
    pipeline = Pipeline([("model", NodeEstimator(small_graph, **QUICK))])
    grid = {"model__epochs": [0, 10], "model__teleport": [0.2]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(nodes, small_graph.labels[nodes])
    assert search.best_params_["model__epochs"] == 10
    assert search.predict(nodes[:5]).shape == (5,)


def test_rows_without_a_graph_may_be_scaled_first(small_graph, nodes):
    features, labels = small_graph.features[nodes], small_graph.labels[nodes]
    rows = make_pipeline(StandardScaler(), NodeEstimator(**QUICK)).fit(features, labels)
    assert rows.score(features, labels) > 0.6
    assert rows[-1].n_features_in_ == small_graph.num_features


def test_it_is_the_classifier_on_the_nodes_it_was_given(small_graph, nodes, fitted):
    graph = fitted.graph_
    assert np.union1d(graph.split.train, graph.split.val).tolist() == nodes[:120].tolist()
    assert len(graph.split.test) == 0
    hidden = np.setdiff1d(np.arange(300), nodes[:120])
    assert (graph.labels[hidden] == -1).all()  # no label of another node is seen
    expected = GPNClassifier(**QUICK).fit(graph).predict(graph)
    np.testing.assert_array_equal(fitted.prediction_.alpha_0, expected.alpha_0)
    np.testing.assert_array_equal(fitted.predict(nodes), expected.predicted_class[nodes])
    np.testing.assert_array_equal(fitted.predict_proba(nodes), expected.probabilities[nodes])
    assert fitted.prediction_.p is not None


def test_every_class_has_training_and_validation_nodes(small_graph, nodes):
    labels = small_graph.labels[nodes]
    for fraction, seed in ((0.01, 0), (0.5, 1), (0.99, 2)):
        estimator = NodeEstimator(
            small_graph, validation_fraction=fraction, random_state=seed, **QUICK | {"epochs": 0}
        )
        split = estimator.fit(nodes, labels).graph_.split
        for part in (split.train, split.val):
            assert set(small_graph.labels[part]) == {0, 1, 2}
        size = np.bincount(labels)
        wanted = np.clip(np.round(fraction * size), 1, size - 1)
        assert np.bincount(small_graph.labels[split.val]).tolist() == wanted.tolist()


def test_seeds(small_graph, nodes):
    def held_out(random_state):
        estimator = NodeEstimator(small_graph, random_state=random_state, epochs=0)
        return estimator.fit(nodes, small_graph.labels[nodes]).graph_.split.val.tolist()

    assert held_out(3) == held_out(3) != held_out(4)
    assert held_out(None) == held_out(None)
    draws = np.random.RandomState(5)
    assert held_out(draws) != held_out(draws)
    assert held_out(np.random.RandomState(5)) == held_out(np.random.RandomState(5))


def test_its_parameters_are_those_of_the_classifier():
    own, others = NodeEstimator().get_params(), GPNClassifier().get_params()
    assert own.keys() - others.keys() == {"graph", "validation_fraction"}
    assert {name: own[name] for name in own if name in others} == {
        name: others[name] for name in own if name in others
    }
    assert KEYWORDS.keys() <= own.keys()


def test_a_clone_shares_the_graph_and_is_not_fitted(small_graph, nodes, fitted):
    copy = clone(fitted)
    assert copy.graph is small_graph
    assert copy.epochs == 10
    with pytest.raises(NotFittedError):
        copy.predict(nodes)
    assert "graph=Graph('synthetic', nodes=300" in repr(copy)


def test_a_fitted_estimator_can_be_copied_to_other_processes(nodes, fitted):
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.predict_proba(nodes), fitted.predict_proba(nodes))


def test_nodes_by_name_and_graphs_of_other_libraries(small_graph, nodes, fitted):
    names = np.array([f"n{node}" for node in range(300)])
    graph = replace(small_graph, node_names=names)
    some, labels = nodes[:120], small_graph.labels[nodes[:120]]
    named = NodeEstimator(graph, **QUICK).fit(names[some], labels)
    np.testing.assert_array_equal(named.predict(names[nodes]), fitted.predict(nodes))
    arrays = (np.eye(6, 2), None, [[0, 2], [1, 3]])
    assert NodeEstimator(arrays, epochs=0).fit([0, 1, 2, 3], [0, 1, 0, 1]).predict([5]).shape == (
        1,
    )


@pytest.mark.parametrize(
    ("options", "X", "y", "error", "message"),
    [
        ({}, [0, 1, 1], [0, 1, 0], GraphError, "X holds node 1 with two classes"),
        ({}, [0, 300], [0, 1], GraphError, r"nodes holds 300, expected ids in \[0, 300\)"),
        ({}, [0, 1], [0, 1], GraphError, r"2 sample\(s\), one per class, expected at least two"),
        ({}, [0, 1], [0, 0], GraphError, r"has 1 class\(es\) to learn"),
        ({}, [0, 1], [0, 1, 2], ValueError, "inconsistent numbers of samples"),
        ({}, [0.5, 1.5], [0, 1], GraphError, "must be a vector of integer node ids"),
        ({"validation_fraction": 1}, [0, 1], [0, 1], ConfigError, "validation_fraction is 1, exp"),
        ({"mode": "minibatch"}, [0, 1, 2], [0, 1, 1], ConfigError, "mode is 'minibatch', expected"),
        ({"epochs": -1}, [0, 1, 2], [0, 1, 1], ConfigError, "train.epochs is -1"),
    ],
)
def test_other_samples_are_refused(small_graph, options, X, y, error, message):
    with pytest.raises(error, match=message):
        NodeEstimator(small_graph, **options).fit(X, y)


def test_a_graph_without_features_is_refused():
    with pytest.raises(GraphError, match="has no features"):
        NodeEstimator(build_graph([0], [1], num_nodes=4)).fit([0, 1, 2], [0, 1, 1])
