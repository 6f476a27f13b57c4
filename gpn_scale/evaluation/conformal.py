"""Sets of classes that hold the true one with a chosen probability: split-conformal prediction.

Calibration nodes tell how small a probability the true class may get; the set of a node is all
classes above it. The coverage of 1 - miss holds on average over the draw of calibration and test
nodes, whatever the model, **if these are exchangeable**: both drawn at random from the same nodes,
which were used neither to train nor to stop early, with all of them in the graph when it was
trained, as in the transductive setting (Huang et al., 2023). Nodes that join later, other classes
or a shift of features or edges break this: sets are for nodes that the graph had, and others are
refused. The inductive rule for joined nodes is to calibrate again on predictions of the graph with
them in it; coverage then holds if they came as the calibration nodes did, and not as a new kind
(Zargarbashi & Bojchevski, 2024).

Shapes: N nodes, C classes.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import NodeIds
from gpn_scale.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ConformalSets:
    """The rule that was calibrated.

    Args:
        least: Classes with at least this probability are in the set; 0 takes all.
        num_nodes: Of the graph that it was calibrated on.
    """

    least: float
    num_nodes: int

    def sets(self, probability_NC: NDArray[np.floating], nodes: NodeIds) -> NDArray[np.bool_]:
        """Whether each class is in a node's set, (N, C).

        Args:
            probability_NC: Of the nodes.
            nodes: Their ids in the graph of the calibration.

        Raises:
            ConfigError: a node that the graph did not have.
        """
        new = nodes[(nodes < 0) | (nodes >= self.num_nodes)]
        if len(new):
            raise ConfigError(
                f"node {new[0]} joined after calibration on {self.num_nodes:,} nodes: coverage "
                "holds for nodes that were in the graph, calibrate again with the new ones in it"
            )
        return np.asarray(probability_NC >= self.least)


def calibrated(
    probability_NC: NDArray[np.floating],
    label_N: NDArray[np.integer],
    *,
    miss: float,
    num_nodes: int,
) -> ConformalSets:
    """Sets that miss the true class with probability at most `miss`, from calibration nodes.

    Raises:
        ConfigError: `miss` is not between 0 and 1, or there are no calibration nodes.
    """
    if not 0.0 < miss < 1.0:
        raise ConfigError(f"conformal miss rate got {miss}, expected a number between 0 and 1")
    count = len(label_N)
    if count == 0:
        raise ConfigError("conformal sets got no calibration nodes, expected at least one")
    of_label_N = np.sort(probability_NC[np.arange(count), label_N])
    # Of count + 1 exchangeable nodes, the new one is among the floor((count + 1) miss) smallest
    # with at most that probability.
    allowed = math.floor((count + 1) * miss)
    least = float(of_label_N[allowed - 1]) if allowed else 0.0
    return ConformalSets(least=least, num_nodes=num_nodes)


def coverage(sets_NC: NDArray[np.bool_], label_N: NDArray[np.integer]) -> float:
    """Share of nodes whose set holds their class; NaN for none."""
    held_N = sets_NC[np.arange(len(label_N)), label_N]
    return float(held_N.mean()) if len(held_N) else math.nan
