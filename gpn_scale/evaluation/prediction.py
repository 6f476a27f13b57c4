"""`Prediction`: per node, the class and the four uncertainty scores.

The (N, C) arrays may be memory maps larger than memory, so they are worked through in row blocks.

Shapes: N nodes, C classes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import NodeIds
from gpn_scale.nn.model import GPNOutput

SCORES = ("aleatoric", "epistemic", "epistemic_no_network")
"""The scores that the paper's tables compare; higher is less certain."""

ROW_BLOCK = 1 << 17
"""Nodes whose rows are in memory at a time."""

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

    def rows(self, rows: slice | NodeIds) -> "Prediction":
        """That of some nodes: a view for a slice, a copy of their rows for ids."""
        return Prediction(
            probabilities=self.probabilities[rows],
            probabilities_no_network=self.probabilities_no_network[rows],
            alpha_0=self.alpha_0[rows],
            alpha_0_no_network=self.alpha_0_no_network[rows],
        )

    def scores(self, nodes: NodeIds) -> dict[str, FloatArray]:
        """Each of `SCORES` for `nodes`; reads no other rows."""
        parts: dict[str, list[FloatArray]] = {name: [] for name in SCORES}
        for block in row_blocks(len(nodes)):
            prediction = self.rows(nodes[block])
            for name in SCORES:
                parts[name].append(getattr(prediction, name))
        return {name: np.concatenate(arrays) for name, arrays in parts.items()}

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
        blocks = row_blocks(len(self.probabilities))
        return np.concatenate([_entropy(self.probabilities[block]) for block in blocks])

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

    @property
    def vacuity(self) -> FloatArray:
        """C / alpha_0 in (0, 1]: the share of belief that no evidence supports; (N,)."""
        return np.asarray(self.probabilities.shape[1] / self.alpha_0)

    @property
    def dissonance(self) -> FloatArray:
        """How evenly what evidence there is speaks for different classes, in [0, 1]; (N,).

        That of subjective logic (Josang et al., 2018): every class's belief (alpha_c - 1) / alpha_0
        times the mean balance with the others, weighted by their beliefs.
        """
        blocks = row_blocks(len(self.probabilities))
        return np.concatenate(
            [_dissonance(self.probabilities[block], self.alpha_0[block]) for block in blocks]
        )


def row_blocks(num_rows: int) -> Iterator[slice]:
    """Slices of `ROW_BLOCK` rows that cover all; one empty slice where there are none."""
    return (slice(start, start + ROW_BLOCK) for start in range(0, max(num_rows, 1), ROW_BLOCK))


def _entropy(probability_NC: FloatArray) -> FloatArray:
    log_NC = np.log(np.maximum(probability_NC, np.finfo(np.float32).tiny))
    return -np.asarray((probability_NC * log_NC).sum(1))


def _dissonance(probability_NC: FloatArray, alpha_0_N: FloatArray) -> FloatArray:
    belief_NC = np.maximum(probability_NC - 1.0 / alpha_0_N[:, None], 0.0)
    dissonance_N = np.zeros(len(belief_NC), np.float32)
    for label in range(belief_NC.shape[1]):
        own_N1 = belief_NC[:, label : label + 1]
        others_NC = np.delete(belief_NC, label, axis=1)
        # Balance is 1 - |a - b| / (a + b), which is 2 min(a, b) / (a + b).
        both_NC = np.maximum(own_N1 + others_NC, np.finfo(np.float32).tiny)
        balance_NC = 2.0 * np.minimum(own_N1, others_NC) / both_NC
        total_N = np.maximum(others_NC.sum(1), np.finfo(np.float32).tiny)
        dissonance_N += own_N1[:, 0] * (others_NC * balance_NC).sum(1) / total_N
    return dissonance_N
