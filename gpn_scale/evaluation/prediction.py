"""`Prediction`: per node, the class and the four uncertainty scores.

Shapes: N nodes, C classes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.nn.model import GPNOutput

SCORES = ("aleatoric", "epistemic", "epistemic_no_network")
"""The scores that the paper's tables compare; higher is less certain."""

FloatArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prediction:
    """What the model says of every node; all scores grow with uncertainty."""

    probabilities: FloatArray
    """Expected class probabilities with the network's influence, (N, C)."""
    probabilities_no_network: FloatArray
    """The same from each node's own features alone, (N, C)."""
    alpha_0: FloatArray
    """Total concentration with network: C plus all pseudo-counts, (N,)."""
    alpha_0_no_network: FloatArray
    """Total concentration from own features alone, (N,)."""

    @classmethod
    def from_output(cls, output: GPNOutput) -> "Prediction":
        """Both posteriors, moved to NumPy."""
        with_network, without = output.with_network, output.without_network
        return cls(
            probabilities=with_network.mean_NC.float().cpu().numpy(),
            probabilities_no_network=without.mean_NC.float().cpu().numpy(),
            alpha_0=with_network.total_N.float().cpu().numpy(),
            alpha_0_no_network=without.total_N.float().cpu().numpy(),
        )

    @property
    def predicted_class(self) -> NDArray[np.int64]:
        """Most probable class, (N,)."""
        return np.asarray(self.probabilities.argmax(1))

    @property
    def aleatoric(self) -> FloatArray:
        """-max p: doubt between classes, given what is known; (N,)."""
        return -np.asarray(self.probabilities.max(1))

    @property
    def aleatoric_entropy(self) -> FloatArray:
        """Entropy of p in nats: the same doubt, over all classes; (N,)."""
        log_p = np.log(np.maximum(self.probabilities, np.finfo(np.float32).tiny))
        return -np.asarray((self.probabilities * log_p).sum(1))

    @property
    def aleatoric_no_network(self) -> FloatArray:
        """-max p from own features alone; (N,)."""
        return -np.asarray(self.probabilities_no_network.max(1))

    @property
    def epistemic(self) -> FloatArray:
        """-alpha_0: how little the neighbourhood resembles what was trained on; (N,)."""
        return -self.alpha_0

    @property
    def epistemic_no_network(self) -> FloatArray:
        """-alpha_0 from own features alone: how foreign the node itself looks; (N,)."""
        return -self.alpha_0_no_network
