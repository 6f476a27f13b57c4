"""One number that brings confidence to accuracy: temperature scaling (Guo et al., 2017).

Probabilities to the power of 1/T, normalised again: above 1 a temperature makes the model less
confident, below 1 more. No node changes its class, and scores of evidence stay as they are.

Shapes: N nodes, C classes.
"""

import numpy as np
from numpy.typing import NDArray

_RANGE = (0.05, 20.0)
_HALVINGS = 60


def scaled(probability_NC: NDArray[np.floating], temperature: float) -> NDArray[np.float64]:
    """Probabilities at another temperature."""
    power_NC = _logits(probability_NC) / temperature
    power_NC -= power_NC.max(1, keepdims=True, initial=-np.inf)
    raised_NC = np.exp(power_NC)
    return np.asarray(raised_NC / raised_NC.sum(1, keepdims=True))


def fitted_temperature(probability_NC: NDArray[np.floating], label_N: NDArray[np.integer]) -> float:
    """The temperature of least mean -log p of the labels, within [0.05, 20]; 1 for no nodes.

    The mean is convex in 1/T: its slope, E[logit] - logit of the label, is halved down on.
    """
    if len(label_N) == 0:
        return 1.0
    logit_NC = _logits(probability_NC)
    of_label_N = logit_NC[np.arange(len(label_N)), label_N]
    low, high = (1.0 / end for end in reversed(_RANGE))
    for _ in range(_HALVINGS):
        middle = np.sqrt(low * high)
        expected_N = (scaled(probability_NC, 1.0 / middle) * logit_NC).sum(1)
        if (expected_N - of_label_N).mean() < 0:
            low = middle
        else:
            high = middle
    return float(1.0 / np.sqrt(low * high))


def _logits(probability_NC: NDArray[np.floating]) -> NDArray[np.float64]:
    least = np.finfo(np.float32).tiny
    return np.log(np.maximum(np.asarray(probability_NC, np.float64), least))
