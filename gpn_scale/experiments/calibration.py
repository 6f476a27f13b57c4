"""Can confidence be trusted? Temperature, and accuracy when the least certain are refused."""

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
"""Shares of the test nodes that are not answered."""


def calibration(prediction: AbstractPrediction, graph: Graph) -> Metrics:
    """The temperature that validation nodes ask for, and what it does to the test nodes' numbers.

    Also the accuracy on what is left when a share of the test nodes is refused by each score.
    """
    assert graph.split is not None
    val, test = graph.split.val, graph.split.test
    temperature = fitted_temperature(prediction.probabilities[val], graph.labels[val])
    probability, label = scaled(prediction.probabilities[test], temperature), graph.labels[test]
    found: Metrics = {
        "temperature": temperature,
        "ece_scaled": expected_calibration_error(probability, label),
        "mce_scaled": maximum_calibration_error(probability, label),
        "brier_scaled": brier_score(probability, label),
        "nll_scaled": negative_log_likelihood(probability, label),
    }
    wrong = prediction.predicted_class[test] != label
    for name, score in prediction.scores(test).items():
        accuracy_N = np.empty(0) if score is None else risk_coverage(score, wrong).accuracy_N
        for share in REFUSED:
            answered = max(round((1 - share) * len(test)), 1)
            value = accuracy_N[answered - 1] if len(accuracy_N) else np.nan
            found[f"accuracy@{name}_{share:.2f}_refused"] = float(value)
    return found
