import numpy as np
import pytest
from scipy.stats import kstest

from gpn_scale.config import RunConfig, TrainConfig
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.detection import known_test_nodes
from gpn_scale.page.known_facts import known_facts, uniform_distance
from tests.page.test_run_facts import with_test_nodes


@pytest.fixture(scope="module")
def classifier(small_graph):
    return GPNClassifier(RunConfig(train=TrainConfig(epochs=3)), device="cpu").fit(small_graph)


def test_the_p_values_are_those_of_known_and_unknown_nodes(classifier, small_graph):
    prediction = classifier.predict(small_graph)
    facts = known_facts(prediction, small_graph, classifier.trained.calibration)
    assert facts.validation_nodes == len(small_graph.split.val)
    known = known_test_nodes(small_graph)
    assert facts.p_known.counts == {
        "known test nodes": len(known),
        "unknown nodes": len(small_graph.marked),
    }
    assert facts.distance == uniform_distance(prediction.p.known[known])


def test_few_known_nodes_have_no_distribution(classifier, small_graph):
    prediction, calibration = classifier.predict(small_graph), classifier.trained.calibration
    facts = known_facts(prediction, small_graph, calibration)
    assert facts.distance is not None
    assert "known test nodes" in facts.p_known.counts
    few = known_facts(prediction, with_test_nodes(small_graph, 8, marks=False), calibration)
    assert few.distance is None
    assert few.p_known is None


def test_a_gpn_has_no_such_facts(classifier, small_graph):
    prediction = classifier.predict(small_graph)
    assert known_facts(prediction, small_graph, None) is None


@pytest.mark.parametrize("count", [1, 2, 50])
def test_the_distance_is_that_of_kolmogorov_and_smirnov(count):
    values = np.random.default_rng(count).uniform(size=count) ** 2
    assert uniform_distance(values) == pytest.approx(kstest(values, "uniform").statistic)
    assert uniform_distance(values[:0]) == 0.0
