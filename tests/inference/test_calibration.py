import numpy as np
import pytest

from gpn_scale.config import RunConfig, TrainConfig
from gpn_scale.data.graph import MISSING_LABEL
from gpn_scale.estimator import GPNClassifier
from gpn_scale.inference.all_nodes import averaged, predict_all
from gpn_scale.inference.calibration import calibrated


@pytest.fixture(scope="module")
def trained(small_graph):
    config = RunConfig(train=TrainConfig(epochs=3))
    return GPNClassifier(config, device="cpu").fit(small_graph).trained


def test_surroundings_are_means_over_rows(trained, small_graph):
    nodes = np.flatnonzero(small_graph.labels != MISSING_LABEL)[::3]
    calibration, prediction = calibrated(
        trained, small_graph, nodes, predict_all(trained, small_graph)
    )
    surprise = calibration.surprise(prediction)
    for part, values in surprise.items():
        expected = averaged(trained, small_graph, values[:, None])[nodes, 0]
        np.testing.assert_allclose(calibration.surroundings[part], expected, rtol=1e-5)
    np.testing.assert_allclose(prediction.surprise, np.sum(list(surprise.values()), axis=0))
    assert (prediction.p.known > 0).all()


def test_too_few_nodes_give_a_temperature_only(trained, small_graph):
    nodes = np.flatnonzero(small_graph.labels != MISSING_LABEL)[:5]
    raw = predict_all(trained, small_graph)
    calibration, prediction = calibrated(trained, small_graph, nodes, raw)
    assert calibration.tempering.temperature > 0
    assert prediction.p is None
    assert prediction.surprise is None
