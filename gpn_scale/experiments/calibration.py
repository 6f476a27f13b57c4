"""Measures of whether confidence can be trusted: calibration, and accuracy with rejection."""

import numpy as np

from gpn_scale.data.graph import Graph
from gpn_scale.evaluation.metrics import (
    brier_score,
    expected_calibration_error,
    maximum_calibration_error,
    negative_log_likelihood,
)
from gpn_scale.evaluation.prediction import AbstractPrediction
from gpn_scale.evaluation.prediction_metrics import Metrics
from gpn_scale.evaluation.risk_coverage import risk_coverage
from gpn_scale.evaluation.temperature import fitted_temperature, scaled

REFUSED = (0.1, 0.2, 0.5)
"""Fractions of the test nodes, the least certain ones, that are not classified."""


def calibration(prediction: AbstractPrediction, graph: Graph) -> Metrics:
    """Measure test calibration at the temperature with the least validation loss.

    Also measure the accuracy of the remaining test nodes when each score rejects a fraction.
    """
    assert graph.split is not None
    val, test = graph.split.val, graph.split.test
    temperature = fitted_temperature(prediction.probabilities[val], graph.labels[val])
    probability, label = scaled(prediction.probabilities[test], temperature), graph.labels[test]
    metrics: Metrics = {
        "temperature": temperature,
        "ece_scaled": expected_calibration_error(probability, label),
        "mce_scaled": maximum_calibration_error(probability, label),
        "brier_scaled": brier_score(probability, label),
        "nll_scaled": negative_log_likelihood(probability, label),
    }
    wrong = prediction.predicted_class[test] != label
    for name, score in prediction.scores(test).items():
        accuracy_N = np.empty(0) if score is None else risk_coverage(score, wrong).accuracy_N
        for fraction in REFUSED:
            answered = max(round((1 - fraction) * len(test)), 1)
            value = accuracy_N[answered - 1] if len(accuracy_N) else np.nan
            metrics[f"accuracy@{name}_{fraction:.2f}_refused"] = float(value)
    return metrics
