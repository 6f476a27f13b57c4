"""From a trained model to facts, and from these to a page."""

from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.config import RunConfig, TrainConfig
from gpn_scale.data.graph import Split
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.prediction_metrics import (
    classification_metrics,
    out_of_distribution_metrics,
)
from gpn_scale.evaluation.temperature import fitted_temperature
from gpn_scale.page.prediction_facts import prediction_facts, run_facts
from gpn_scale.page.run_files import RunRecord
from gpn_scale.page.run_page import page_sections
from tests.page.samples import training_curves


@pytest.fixture(scope="module")
def trained(small_graph):
    config = RunConfig(train=TrainConfig(epochs=5))
    return GPNClassifier(config, device="cpu").fit(small_graph)


def with_test_nodes(graph, count, marks):
    split = graph.split
    some = Split(train=split.train, val=split.val, test=split.test[:count])
    return replace(graph, split=some, marks=graph.marks if marks else {})


def test_facts_are_the_numbers_of_the_report(trained, small_graph):
    prediction = trained.predict(small_graph)
    found = prediction_facts(trained, small_graph, prediction, None)
    wanted = out_of_distribution_metrics(prediction, small_graph)
    for score in ("aleatoric", "epistemic", "epistemic_no_network"):
        assert found.detection["all"][score] == wanted[f"auroc_{score}"]
        for mark, values in wanted["marks"].items():
            assert found.detection[mark][score] == values[f"auroc_{score}"]
    test = classification_metrics(prediction, small_graph, small_graph.split.test)
    for curve in found.risk:
        assert curve.risk[-1] == pytest.approx(1 - test["accuracy"])
    counts = {"known test nodes": wanted["id_nodes"], "unknown nodes": wanted["ood_nodes"]}
    assert found.alpha_0.counts == found.alpha_0_no_network.counts == counts
    assert found.reliability.count_B.sum() == len(small_graph.split.test)


@pytest.mark.parametrize("marks", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, 40])
def test_any_number_of_test_nodes_has_a_page(trained, small_graph, count, marks):
    graph = with_test_nodes(small_graph, count, marks)
    record = RunRecord(config=RunConfig(), training=training_curves(), report=None)
    facts = run_facts(record, trained, graph, trained.predict(graph), None)
    assert (facts.prediction is None) == (count == 0 and not marks)
    names = [section.name for section in page_sections(facts)]
    assert ("nodes" in names) == (facts.prediction is not None)
    if facts.prediction is None:
        assert "no test nodes" in facts.missing[0]


def test_a_page_is_the_same_every_time(trained, small_graph):
    prediction = trained.predict(small_graph)
    first, second = (prediction_facts(trained, small_graph, prediction, None) for _ in range(2))
    np.testing.assert_array_equal(first.latent.position, second.latent.position)
    assert first.explained == second.explained
    assert first.conformal == second.conformal


def test_views_are_the_numbers_of_the_prediction(trained, small_graph):
    prediction = trained.predict(small_graph)
    found = prediction_facts(trained, small_graph, prediction, None)
    val, test = small_graph.split.val, small_graph.split.test
    assert found.temperature.nodes == len(val)
    fitted = fitted_temperature(prediction.probabilities[val], small_graph.labels[val])
    assert found.temperature.fitted == fitted
    at = np.searchsorted(found.temperature.log_temperature, np.log10(fitted))
    assert found.temperature.eces[at] == pytest.approx(found.temperature.ece)
    right = prediction.predicted_class[test] == small_graph.labels[test]
    assert found.dissonance.counts == {"right": right.sum(), "wrong": (~right).sum()}
    assert found.vacuity.counts["unknown nodes"] == len(small_graph.marked)
    assert found.neighbours.method == "t-SNE"
