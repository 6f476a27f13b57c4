import pytest

from gpn_scale.config import RunConfig, TrainConfig
from gpn_scale.estimator import GPNClassifier


@pytest.fixture(scope="package")
def trained(small_graph):
    """A classifier of the small graph."""
    config = RunConfig(model="GPN", train=TrainConfig(epochs=5))
    return GPNClassifier(config, device="cpu").fit(small_graph)


@pytest.fixture(scope="package")
def prediction(trained, small_graph):
    """Its prediction of all nodes."""
    return trained.predict(small_graph)
