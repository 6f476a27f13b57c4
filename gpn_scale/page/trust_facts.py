"""Facts that show whether confidence can be trusted: risk, conformal sets, temperature."""

import math

import numpy as np

from gpn_scale.data.graph import Graph
from gpn_scale.evaluation.conformal import DEFAULT_MISS, ConformalSummary, conformal_summary
from gpn_scale.evaluation.metrics import expected_calibration_error, negative_log_likelihood
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.risk_coverage import risk_coverage
from gpn_scale.evaluation.sample_sizes import (
    LEAST_BINNED_NODES,
    LEAST_CONFORMAL_NODES,
    LEAST_CURVE_NODES,
    LEAST_FITTED_NODES,
)
from gpn_scale.evaluation.scores import PAGE_SCORES
from gpn_scale.evaluation.temperature import fitted_temperature, scaled
from gpn_scale.page.facts import ScoreCurve, TemperatureFacts

_CURVE_POINTS = 200
_RNG_SEED = 0
_LOG_TEMPERATURES = np.linspace(-0.7, 0.7, 29)
"""log10 of the temperatures that the curve shows."""


def risk_curves(prediction: Prediction, graph: Graph) -> tuple[ScoreCurve, ...]:
    """Return the risk-coverage curve of each of the four scores; () for too few test nodes."""
    assert graph.split is not None
    test = graph.split.test
    if len(test) < LEAST_CURVE_NODES:
        return ()
    wrong = prediction.probabilities[test].argmax(1) != graph.labels[test]
    curves = []
    for name, score in prediction.scores(test, PAGE_SCORES).items():
        assert score is not None  # a GPN has all four
        curve = risk_coverage(score, wrong)
        thin = curve.thinned(_CURVE_POINTS)
        curves.append(
            ScoreCurve(score=name, coverage=thin.coverage_N, risk=thin.risk_N, area=curve.area)
        )
    return tuple(curves)


def conformal_facts(prediction: Prediction, graph: Graph) -> ConformalSummary | None:
    """Return size and coverage of the test nodes' conformal sets; None for too few test nodes."""
    assert graph.split is not None
    test = graph.split.test
    if len(test) < LEAST_CONFORMAL_NODES:
        return None
    return conformal_summary(
        prediction.probabilities[test],
        graph.labels[test],
        test,
        num_nodes=graph.num_nodes,
        rng_seed=_RNG_SEED,
        miss=DEFAULT_MISS,
    )


def temperature_facts(prediction: Prediction, graph: Graph) -> TemperatureFacts | None:
    """Return the temperature fitted to the validation nodes, and its effect on the test nodes.

    None for too few validation or test nodes.
    """
    assert graph.split is not None
    val, test = graph.split.val, graph.split.test
    if len(val) < LEAST_FITTED_NODES or len(test) < LEAST_BINNED_NODES:
        return None
    fitted = fitted_temperature(prediction.probabilities[val], graph.labels[val])
    probability, label = prediction.probabilities[test], graph.labels[test]
    powers = np.union1d(_LOG_TEMPERATURES, [math.log10(fitted)])
    eces = [expected_calibration_error(scaled(probability, 10.0**p), label) for p in powers]
    return TemperatureFacts(
        fitted=fitted,
        nodes=len(val),
        ece=expected_calibration_error(scaled(probability, fitted), label),
        nll=negative_log_likelihood(scaled(probability, fitted), label),
        log_temperature=powers,
        eces=np.array(eces),
    )
