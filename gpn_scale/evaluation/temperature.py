"""Temperature scaling: one or two numbers that calibrate confidence (Guo et al., 2017).

Probabilities are raised to the power 1/T and normalised. A temperature above 1 makes the model less
confident, one below 1 more confident. Predicted classes and the evidence do not change.

Shapes: N nodes, V validation nodes, C classes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

_RANGE = (0.05, 20.0)
_BISECTIONS = 60
_LARGEST_SLOPE = 1.0
SLOPE_PRECISION = 20.0
"""Precision of the normal prior of the slope, so that few validation nodes hardly move it from 0.

Slopes of 0.1 to 0.5 were measured."""
LOG_PRECISION = 2.0
"""Precision of the normal prior of log T: if a few validation nodes are all predicted correctly,
they do not make the model certain of everything."""
_OUTERMOST = 3.0
"""Standard deviations from the mean beyond which the energy changes the temperature no further."""


@dataclass(frozen=True, slots=True)
class NodeTemperature:
    """A temperature of every node, which depends on how strongly its logits speak.

    log T_v = log T - b x_v, where x_v is the energy of v's logits, standardised by the validation
    nodes and limited to three deviations. Networks exaggerate where their logits are large: a slope
    b above 0 makes such nodes, whose energy is low, less confident, and the others more.

    >>> rule = NodeTemperature(2.0, slope=0.5, mean=-4.0, deviation=1.0)
    >>> rule.of(np.array([-4.0, -6.0])).round(3)  # at the mean; two deviations below it
    array([2.   , 5.437])
    """

    temperature: float
    """Temperature T at the mean energy; of all nodes if the slope is 0."""
    slope: float = 0.0
    """How much log T_v falls with every standard deviation of energy."""
    mean: float = 0.0
    """Mean energy of the validation nodes."""
    deviation: float = 1.0
    """Standard deviation of the energies of the validation nodes."""

    @classmethod
    def fitted(
        cls,
        probability_VC: NDArray[np.floating],
        energy_V: NDArray[np.floating] | None,
        label_V: NDArray[np.integer],
    ) -> "NodeTemperature":
        """Return the rule that fits the validation nodes best: least loss, with priors.

        Without energies, or if they are all equal, the slope is 0.
        """
        if len(label_V) == 0:
            return cls(1.0)
        flat = cls(fitted_temperature(probability_VC, label_V))
        if energy_V is not None and np.ptp(energy_V) > 0.0:
            energy_V = np.asarray(energy_V, np.float64)
            flat = cls(flat.temperature, 0.0, float(energy_V.mean()), float(energy_V.std()))
            x_V = flat._standardised(energy_V)
        else:
            x_V = np.zeros(len(label_V))
        logit_VC = _logits(probability_VC)
        of_label_V = logit_VC[np.arange(len(label_V)), label_V]

        def loss(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            """Return the sum of -log p of the labels and of the priors, with its gradient."""
            power_V = np.exp(parameters[0] + parameters[1] * x_V)
            scaled_VC = power_V[:, None] * logit_VC
            top_V = scaled_VC.max(1)
            raised_VC = np.exp(scaled_VC - top_V[:, None])
            sum_V = raised_VC.sum(1)
            nll = (top_V + np.log(sum_V) - power_V * of_label_V).sum()
            change_V = power_V * ((raised_VC * logit_VC).sum(1) / sum_V - of_label_V)
            pull = np.array([LOG_PRECISION, SLOPE_PRECISION]) * parameters
            change = np.array([change_V.sum(), (change_V * x_V).sum()])
            return float(nll + 0.5 * pull @ parameters), change + pull

        limits = [(-np.log(_RANGE[1]), -np.log(_RANGE[0])), (-_LARGEST_SLOPE, _LARGEST_SLOPE)]
        start = np.array([-np.log(flat.temperature), 0.0])
        power, slope = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=limits).x
        return cls(float(np.exp(-power)), float(slope), flat.mean, flat.deviation)

    def of(self, energy_N: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the temperatures of nodes with these energies, (N,)."""
        return self.temperature * np.exp(-self.slope * self._standardised(energy_N))

    def scaled(
        self, probability_NC: NDArray[np.floating], energy_N: NDArray[np.floating] | None
    ) -> NDArray[np.float64]:
        """Return the probabilities at the nodes' own temperatures, (N, C)."""
        if energy_N is None or self.slope == 0.0:
            return scaled(probability_NC, self.temperature)
        return scaled(probability_NC, self.of(energy_N)[:, None])

    def _standardised(self, energy_N: NDArray[np.floating]) -> NDArray[np.float64]:
        x_N = (np.asarray(energy_N, np.float64) - self.mean) / self.deviation
        return np.clip(x_N, -_OUTERMOST, _OUTERMOST)


def scaled(
    probability_NC: NDArray[np.floating], temperature: float | NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the probabilities at another temperature, one of all nodes or (N, 1), (N, C).

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
