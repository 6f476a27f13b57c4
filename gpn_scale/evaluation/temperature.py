"""Temperature scaling: one number that calibrates confidence (Guo et al., 2017).

Probabilities are raised to the power 1/T and normalised. A temperature above 1 makes the model less
confident, one below 1 more confident. Predicted classes and the evidence do not change.

Shapes: N nodes, C classes.
"""

import numpy as np
from numpy.typing import NDArray

_RANGE = (0.05, 20.0)
_BISECTIONS = 60


def scaled(probability_NC: NDArray[np.floating], temperature: float) -> NDArray[np.float64]:
    """Return the probabilities at another temperature, (N, C).

    >>> scaled(np.array([[0.9, 0.1]]), temperature=2.0).round(6).tolist()
    [[0.75, 0.25]]
    """
    power_NC = _logits(probability_NC) / temperature
    power_NC -= power_NC.max(1, keepdims=True, initial=-np.inf)
    raised_NC = np.exp(power_NC)
    return np.asarray(raised_NC / raised_NC.sum(1, keepdims=True))


def fitted_temperature(probability_NC: NDArray[np.floating], label_N: NDArray[np.integer]) -> float:
    """Return the temperature in [0.05, 20] with the smallest mean of -log p of the labels.

    The mean is convex in 1/T. Its slope is the expected logit minus the label's logit, averaged
    over nodes; bisection finds the zero of this slope. The result is 1 for no nodes.

    >>> overconfident, labels = np.array([[0.9, 0.1]] * 4), np.array([0, 0, 0, 1])
    >>> round(fitted_temperature(overconfident, labels), 6)  # 0.9 becomes 0.75
    2.0
    """
    if len(label_N) == 0:
        return 1.0
    logit_NC = _logits(probability_NC)
    of_label_N = logit_NC[np.arange(len(label_N)), label_N]
    low, high = (1.0 / end for end in reversed(_RANGE))
    for _ in range(_BISECTIONS):
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
