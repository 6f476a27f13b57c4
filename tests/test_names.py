"""A model carries the names of its columns and classes, and applies them to any graph."""

import numpy as np
import pytest

from gpn_scale.config import RunConfig, SplitConfig, TrainConfig
from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Split
from gpn_scale.errors import GraphError
from gpn_scale.estimator import GPNClassifier

RNG = np.random.default_rng(3)
COUNT = 200
LABELS = np.arange(COUNT) % 2
FEATURES = (RNG.normal(size=(COUNT, 3)) + np.outer(LABELS, [3.0, 0.0, -3.0])).astype(np.float32)
EDGES = (np.arange(COUNT), (np.arange(COUNT) + 2) % COUNT)


def graph_with(columns=(0, 1, 2), classes=("legit", "fraud"), labels=LABELS):
    names = np.array(["amount", "age", "visits"])[list(columns)]
    return build_graph(
        *EDGES,
        features=FEATURES[:, list(columns)],
        feature_names=names,
        labels=labels,
        class_names=classes,
    )


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    config = RunConfig(split=SplitConfig(train=0.3, val=0.3), train=TrainConfig(epochs=20))
    classifier = GPNClassifier(config, device="cpu").fit(graph_with())
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    classifier.save(path)
    return path


def test_columns_in_another_order_give_the_same_prediction(model_file):
    classifier = GPNClassifier.load(model_file, device="cpu")
    expected = classifier.predict(graph_with())
    for order in ([2, 1, 0], [1, 2, 0]):
        prediction = classifier.predict(graph_with(order))
        np.testing.assert_array_equal(prediction.probabilities, expected.probabilities)
        np.testing.assert_array_equal(prediction.alpha_0, expected.alpha_0)


def test_calibration_matches_columns_by_name(model_file):
    classifier = GPNClassifier.load(model_file, device="cpu")
    split = Split(train=[0, 1], val=np.arange(100, 150), test=[2])
    expected, got = (
        classifier.calibrate(graph_with(order).with_split(split)).probabilities
        for order in ([0, 1, 2], [2, 1, 0])
    )
    np.testing.assert_array_equal(got, expected)


def test_a_missing_column_is_refused_by_every_question(model_file):
    classifier = GPNClassifier.load(model_file, device="cpu")
    lacking = graph_with([0, 2])
    for ask in (
        classifier.predict,
        classifier.perturbed,
        lambda graph: classifier.explain(graph, 3),
        lambda graph: classifier.predict_new(graph, [[0.0, 0.0, 0.0]], [[1]]),
    ):
        with pytest.raises(GraphError, match="no feature column 'age'"):
            ask(lacking)


def test_class_names_are_the_models_whatever_the_graph_calls_them(model_file):
    classifier = GPNClassifier.load(model_file, device="cpu")
    assert classifier.contract.class_names == ("legit", "fraud")
    renamed = graph_with(classes=("fraud", "legit"), labels=1 - LABELS)
    aligned, notes, _ = classifier.aligned(renamed)
    assert notes == ()
    assert aligned.class_names.tolist() == ["legit", "fraud"]
    np.testing.assert_array_equal(aligned.labels, LABELS)
    one_class = graph_with(classes=("legit",), labels=np.where(LABELS == 0, 0, -1))
    predicted = classifier.predict(one_class).predicted_class
    np.testing.assert_array_equal(predicted, classifier.predict(graph_with()).predicted_class)
