import numpy as np
import pytest

from gpn_scale.data.graph import Split
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.experiments.calibration import REFUSED, calibration


@pytest.fixture
def answered(small_graph):
    """A prediction of `small_graph` whose scores have to do with its errors, and the graph."""
    rng = np.random.default_rng(0)
    graph, count = small_graph, small_graph.num_nodes
    logit = rng.normal(size=(count, graph.num_classes))
    logit[np.arange(count), np.maximum(graph.labels, 0)] += 1.0
    probability = (np.exp(logit) / np.exp(logit).sum(1, keepdims=True)).astype(np.float32)
    alpha_0 = rng.uniform(1, 100, count).astype(np.float32)
    return graph, Prediction(
        probabilities=probability,
        probabilities_no_network=probability,
        alpha_0=alpha_0,
        alpha_0_no_network=alpha_0,
    )


def test_accuracy_is_that_of_the_surest(answered):
    graph, prediction = answered
    assert isinstance(graph.split, Split)
    test = graph.split.test
    metrics = calibration(prediction, graph)
    surest = np.argsort(-prediction.probabilities[test].max(1), kind="stable")
    for fraction in REFUSED:
        kept = test[surest[: round((1 - fraction) * len(test))]]
        right = prediction.predicted_class[kept] == graph.labels[kept]
        assert metrics[f"accuracy@aleatoric_{fraction:.2f}_refused"] == pytest.approx(right.mean())


def test_a_fitted_temperature_calibrates(answered):
    graph, prediction = answered
    metrics = calibration(prediction, graph)
    assert metrics["temperature"] > 0
    assert 0 <= metrics["ece_scaled"] <= metrics["mce_scaled"] <= 1
    assert all(np.isfinite(value) for value in metrics.values())
