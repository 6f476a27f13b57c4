"""Split-conformal prediction: sets of classes that contain the true class with high probability.

The calibration nodes show how small the probability of the true class may get. The set of a node
contains every class that is at least that probable.

Sets contain the true class with probability 1 - miss, on average over the draw of calibration and
test nodes and for any model, **if these nodes are exchangeable**: drawn at random from the same
nodes, none of them used for training or early stopping, all of them in the graph during training
(the transductive setting; Huang et al., 2023). Nodes that join later, other classes, or a shift of
features or edges break this assumption, so sets are refused for nodes that were not in the graph.
To cover nodes that joined, predict the graph that includes them and calibrate again; coverage then
holds if they arrived in the same way as the calibration nodes (Zargarbashi & Bojchevski, 2024).

Shapes: N nodes, C classes.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import NodeIds
from gpn_scale.errors import ConfigError

DEFAULT_MISS = 0.1
"""Probability with which the sets of reports and experiments may miss the true class."""


@dataclass(frozen=True, slots=True)
class ConformalSets:
    """A calibrated rule that turns class probabilities into sets of classes.

    >>> rule = ConformalSets(least=0.3, num_nodes=10)
    >>> rule.sets(np.array([[0.6, 0.4], [0.9, 0.1]]), nodes=np.array([3, 7])).tolist()
    [[True, True], [True, False]]
    """

    least: float
    """Smallest probability of a class in a set; 0 puts every class into every set."""
    num_nodes: int
    """Number of nodes of the graph that the rule was calibrated on."""

    def sets(self, probability_NC: NDArray[np.floating], nodes: NodeIds) -> NDArray[np.bool_]:
        """Return whether each class is in the set of each node, (N, C).

        Args:
            probability_NC: Class probabilities of `nodes`.
            nodes: Node ids in the graph that the rule was calibrated on.

        Raises:
            ConfigError: a node was not in that graph.
        """
        new = nodes[(nodes < 0) | (nodes >= self.num_nodes)]
        if len(new):
            raise ConfigError(
                f"nodes contains {new[0]}, which is not in the graph of {self.num_nodes:,} nodes "
                "that the sets were calibrated on: predict a graph that includes the new nodes, "
                "and calibrate again",
                arguments=("nodes",),
            )
        return np.asarray(probability_NC >= self.least)


def calibrated(
    probability_NC: NDArray[np.floating],
    label_N: NDArray[np.integer],
    *,
    miss: float,
    num_nodes: int,
) -> ConformalSets:
    """Return the rule whose sets miss the true class with probability at most `miss`.

    >>> probabilities = np.array([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3], [0.8, 0.2]])
    >>> calibrated(probabilities, np.array([0, 0, 0, 0]), miss=0.4, num_nodes=10)
    ConformalSets(least=0.7, num_nodes=10)

    Args:
        probability_NC: Class probabilities of the calibration nodes.
        label_N: Classes of the calibration nodes.
        miss: Accepted probability that a set misses the true class, in (0, 1).
        num_nodes: Number of nodes of the graph.

    Raises:
        ConfigError: `miss` is not between 0 and 1, or there are no calibration nodes.
    """
    if not 0.0 < miss < 1.0:
        raise ConfigError(f"miss is {miss}, expected a number between 0 and 1", arguments=("miss",))
    count = len(label_N)
    if count == 0:
        raise ConfigError("there are no calibration nodes, expected at least one")
    of_label_N = np.sort(probability_NC[np.arange(count), label_N])
    # Of count + 1 exchangeable nodes, a new one is among the floor((count + 1) miss) nodes of
    # smallest probability with a probability of at most `miss`.
    allowed = math.floor((count + 1) * miss)
    least = float(of_label_N[allowed - 1]) if allowed else 0.0
    return ConformalSets(least=least, num_nodes=num_nodes)


def coverage(sets_NC: NDArray[np.bool_], label_N: NDArray[np.integer]) -> float:
    """Return the fraction of nodes whose set contains their class; NaN for no nodes.

    >>> coverage(np.array([[True, False], [True, True]]), np.array([1, 1]))
    0.5
    """
    covered_N = sets_NC[np.arange(len(label_N)), label_N]
    return float(covered_N.mean()) if len(covered_N) else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformalSummary:
    """Size and coverage of conformal sets, measured on nodes not used to calibrate them.

    >>> summary = ConformalSummary(
    ...     miss=0.1, calibration_nodes=500, measured_nodes=500, coverage=0.92, mean_size=1.4
    ... )
    >>> summary.coverage >= 1 - summary.miss
    True
    """

    miss: float
    """Accepted probability that a set misses the true class."""
    calibration_nodes: int
    measured_nodes: int
    coverage: float
    """Fraction of the measured nodes whose set contains their class."""
    mean_size: float
    """Mean number of classes in a set."""


def conformal_summary(
    probabilities: NDArray[np.floating],
    labels: NDArray[np.integer],
    nodes: NodeIds,
    num_nodes: int,
    rng_seed: int,
    miss: float,
) -> ConformalSummary:
    """Calibrate conformal sets on a random half of `nodes`; return their quality on the other.

    >>> probabilities, labels = np.array([[0.8, 0.2]] * 4), np.array([0, 0, 0, 0])
    >>> summary = conformal_summary(probabilities, labels, np.arange(4), 4, rng_seed=1, miss=0.5)
    >>> summary.coverage, summary.mean_size
    (1.0, 1.0)

    Args:
        probabilities: Class probabilities of `nodes`, in their order, (N, C).
        labels: Classes of `nodes`, in their order, (N,).
        nodes: Node ids of at least two test nodes, which training did not use.
        num_nodes: Number of nodes of the graph.
        rng_seed: Seed of the random halves.
        miss: Accepted probability that a set misses the true class, in (0, 1).

    Raises:
        ConfigError: there are fewer than two nodes, or `miss` is not between 0 and 1.
    """
    order = np.random.default_rng(rng_seed).permutation(len(nodes))
    first, second = order[: len(order) // 2], order[len(order) // 2 :]
    rule = calibrated(probabilities[first], labels[first], miss=miss, num_nodes=num_nodes)
    sets_NC = rule.sets(probabilities[second], nodes[second])
    return ConformalSummary(
        miss=miss,
        calibration_nodes=len(first),
        measured_nodes=len(second),
        coverage=coverage(sets_NC, labels[second]),
        mean_size=float(sets_NC.sum(1).mean()),
    )
