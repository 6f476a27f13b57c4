"""Further views of a prediction: its temperature, its vacuity and dissonance -> facts."""

import math

import numpy as np

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.evaluation.metrics import expected_calibration_error, negative_log_likelihood
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.temperature import fitted_temperature, scaled
from gpn_scale.page.facts import Histogram, TemperatureFacts, histogram_of

_TEMPERATURES = np.linspace(-0.7, 0.7, 29)
"""log10 of those that the curve shows."""


def temperature_facts(prediction: Prediction, graph: Graph) -> TemperatureFacts | None:
    """The temperature that the validation nodes ask for, measured on the test nodes."""
    assert graph.split is not None
    val, test = graph.split.val, graph.split.test
    if len(val) == 0 or len(test) == 0:
        return None
    fitted = fitted_temperature(prediction.probabilities[val], graph.labels[val])
    own, label = prediction.probabilities[test], graph.labels[test]
    at = np.union1d(_TEMPERATURES, [math.log10(fitted)])
    eces = [expected_calibration_error(scaled(own, 10.0**power), label) for power in at]
    return TemperatureFacts(
        fitted=fitted,
        nodes=len(val),
        ece=expected_calibration_error(scaled(own, fitted), label),
        nll=negative_log_likelihood(scaled(own, fitted), label),
        log_temperature=at,
        eces=np.array(eces),
    )


def vacuity_histogram(prediction: Prediction, known: NodeIds, marked: NodeIds) -> Histogram:
    """log10 of the share of the posterior that is prior, of known and unknown nodes."""
    groups = {"known test nodes": known, "unknown nodes": marked}
    return histogram_of(
        {name: np.log10(prediction.rows(ids).vacuity) for name, ids in groups.items() if len(ids)}
    )


def dissonance_histogram(prediction: Prediction, graph: Graph) -> Histogram:
    """Conflict between classes, of right and wrong predictions among the test nodes."""
    assert graph.split is not None
    test = graph.split.test
    own = prediction.rows(test)
    right = own.predicted_class == graph.labels[test]
    groups = {"right": right, "wrong": ~right}
    return histogram_of({name: own.dissonance[of] for name, of in groups.items() if of.any()})
