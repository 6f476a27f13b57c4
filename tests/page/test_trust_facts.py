from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.data.graph import Split
from gpn_scale.evaluation.conformal import DEFAULT_MISS, conformal_summary
from gpn_scale.evaluation.risk_coverage import risk_coverage
from gpn_scale.evaluation.scores import PAGE_SCORES
from gpn_scale.evaluation.temperature import fitted_temperature
from gpn_scale.page.trust_facts import conformal_facts, risk_curves, temperature_facts
from tests.page.test_run_facts import with_test_nodes


def test_the_temperature_is_fitted_to_validation_nodes(prediction, small_graph):
    facts = temperature_facts(prediction, small_graph)
    val = small_graph.split.val
    assert facts.nodes == len(val)
    fitted = fitted_temperature(prediction.probabilities[val], small_graph.labels[val])
    assert facts.fitted == fitted
    at = np.searchsorted(facts.log_temperature, np.log10(fitted))
    assert facts.eces[at] == pytest.approx(facts.ece)
    assert temperature_facts(prediction, with_test_nodes(small_graph, 99, marks=True)) is None
    few = Split(train=small_graph.split.train, val=val[:49], test=small_graph.split.test)
    assert temperature_facts(prediction, replace(small_graph, split=few)) is None


def test_every_score_has_a_curve(prediction, small_graph):
    curves = risk_curves(prediction, small_graph)
    assert [curve.score for curve in curves] == list(PAGE_SCORES)
    test = small_graph.split.test
    wrong = prediction.predicted_class[test] != small_graph.labels[test]
    for curve in curves:
        whole = risk_coverage(getattr(prediction, curve.score)[test], wrong)
        assert curve.area == whole.area
        assert len(curve.coverage) == len(curve.risk) <= 200
    assert risk_curves(prediction, with_test_nodes(small_graph, 50, marks=True))
    assert risk_curves(prediction, with_test_nodes(small_graph, 49, marks=True)) == ()


def test_conformal_sets_are_those_of_the_test_nodes(prediction, small_graph):
    test = small_graph.split.test
    expected = conformal_summary(
        prediction.probabilities[test],
        small_graph.labels[test],
        test,
        300,
        rng_seed=0,
        miss=DEFAULT_MISS,
    )
    assert conformal_facts(prediction, small_graph) == expected
    for count in (0, 1, 99):
        few = with_test_nodes(small_graph, count, marks=True)
        assert conformal_facts(prediction, few) is None
