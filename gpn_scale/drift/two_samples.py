"""Distances between two samples of nodes, A and B, and tests whether chance explains them.

All distances are fractions of nodes: a distance of d means that at least the fraction d of the
nodes of B would have to change for B to look like A. The tests treat nodes as independent draws,
which `CONDITION` qualifies.

Shapes: A nodes of the first sample, B nodes of the second, K categories, W words or features.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc, kolmogorov
from scipy.stats import chi2_contingency

from gpn_scale.evaluation.intervals import Interval, exact_interval

LEAST_MOVE = 0.01
"""Smallest distance, 1 % of the nodes, that counts as a movement if chance does not explain it."""
CHANCE = 0.01
"""Probability below which chance does not explain a distance, over all simultaneous comparisons."""
CONDITION = (
    "The tests treat nodes as independent draws, which nodes of a graph are not: neighbours share "
    "evidence, so chance may explain more than a test says, and nodes in both A and B vary "
    "together, so it may explain less."
)
"""The condition under which the tests are valid."""
_LEAST_EXPECTED = 5.0

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Share:
    """A number of nodes out of all nodes of a sample.

    >>> share = Share(5, 100)
    >>> share.value, [round(end, 3) for end in share.interval]
    (0.05, [0.016, 0.113])
    """

    count: int
    nodes: int

    @property
    def value(self) -> float:
        """The share as a fraction; NaN without nodes."""
        return self.count / self.nodes if self.nodes else math.nan

    @property
    def interval(self) -> Interval:
        """Exact 95 % interval of the share; (0, 1) without nodes."""
        return exact_interval(self.count, self.nodes) if self.nodes else (0.0, 1.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the share as JSON values."""
        value = self.value if self.nodes else None
        return {"count": self.count, "nodes": self.nodes, "share": value, "interval": self.interval}


class Movement(NamedTuple):
    """A distance between two samples, and the probability of one as large by chance.

    >>> Movement(0.3, 1e-6).is_notable(), Movement(0.3, 0.4).is_notable()
    (True, False)
    >>> Movement(0.3, 0.004).is_notable(comparisons=5)
    False
    """

    distance: float
    """Distance between the samples, in [0, 1]."""
    p_value: float
    """Probability of such a distance if both samples were drawn from the same nodes."""
    direction: int = 0
    """1 if values of B are larger where the samples differ most, -1 if smaller, 0 if neither."""

    @property
    def exceeds_chance(self) -> bool:
        """Whether chance does not explain the distance, if nothing else is compared."""
        return self.p_value <= CHANCE

    def is_notable(self, comparisons: int = 1) -> bool:
        """Return whether something has moved.

        Args:
            comparisons: Number of distances that are compared at once (Bonferroni's correction).
        """
        return self.distance >= LEAST_MOVE and self.p_value * comparisons <= CHANCE


def distribution_movement(value_A: NDArray[np.floating], value_B: NDArray[np.floating]) -> Movement:
    """Return the Kolmogorov-Smirnov distance of two samples of finite numbers, none of them empty.

    The p-value is that of many nodes. For few of them, and for equal numbers, it is too large
    rather than too small.

    >>> movement = distribution_movement(np.arange(50.0), np.arange(25.0, 75.0))
    >>> movement.distance, movement.direction, movement.exceeds_chance
    (0.5, 1, True)
    """
    both = np.concatenate([value_A, value_B])
    below_A, below_B = (
        np.searchsorted(np.sort(values), both, side="right") / len(values)
        for values in (value_A, value_B)
    )
    gap = below_A - below_B  # positive where more of A lies below, so that B is larger
    farthest = float(gap[np.abs(gap).argmax()])
    size = len(value_A) * len(value_B) / len(both)
    p_value = float(kolmogorov(math.sqrt(size) * abs(farthest)))
    return Movement(abs(farthest), p_value, int(np.sign(farthest)))


def share_p_values(count_A: Counts, nodes_A: int, count_B: Counts, nodes_B: int) -> NDArray[Any]:
    """Return the probabilities of differences of shares by chance, (W,).

    The test is that of two proportions with Yates's correction, which makes it cautious for few
    nodes.

    >>> share_p_values(np.array([5, 50]), 100, np.array([6, 80]), 100).round(3).tolist()
    [1.0, 0.0]
    """
    low = 1 / max(nodes_A, 1) + 1 / max(nodes_B, 1)
    pooled = (count_A + count_B) / max(nodes_A + nodes_B, 1)
    difference = np.abs(count_A / max(nodes_A, 1) - count_B / max(nodes_B, 1))
    deviation = np.sqrt(pooled * (1 - pooled) * low)
    corrected = np.maximum(difference - low / 2, 0)
    ratio = np.divide(corrected, deviation, out=np.zeros_like(corrected), where=deviation > 0)
    return np.asarray(erfc(ratio / math.sqrt(2)))


def share_movement(a: Share, b: Share) -> Movement:
    """Return the difference of two shares.

    >>> share_movement(Share(5, 100), Share(30, 100)).distance
    0.25
    """
    counts = np.array([a.count], np.int64), np.array([b.count], np.int64)
    p_value = float(share_p_values(counts[0], a.nodes, counts[1], b.nodes)[0])
    change = b.value - a.value if a.nodes and b.nodes else 0.0
    return Movement(abs(change), p_value, int(np.sign(change)))


def category_movement(count_A: Counts, count_B: Counts) -> Movement:
    """Return the total variation distance of two counts of categories, with a chi-square test.

    Categories of which fewer than five nodes are expected in a sample are tested as one.

    >>> category_movement(np.array([50, 50, 0]), np.array([50, 30, 20])).distance
    0.2

    Args:
        count_A: Number of nodes per category in the first sample, (K,), not all 0.
        count_B: The same in the second sample, (K,).
    """
    shares = count_A / count_A.sum(), count_B / count_B.sum()
    distance = float(np.abs(shares[0] - shares[1]).sum() / 2)
    table = np.stack([count_A, count_B]).astype(np.float64)
    expected = table.sum(0) * min(table.sum(1)) / table.sum()
    rare = expected < _LEAST_EXPECTED
    pooled = np.column_stack([table[:, ~rare], table[:, rare].sum(1)])
    pooled = pooled[:, pooled.sum(0) > 0]
    p_value = 1.0 if pooled.shape[1] < 2 else float(chi2_contingency(pooled).pvalue)
    return Movement(min(distance, 1.0), p_value)
