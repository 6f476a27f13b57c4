"""Risk-coverage curves: the error rate on the nodes of which the model is most certain.

Shapes: N nodes.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class RiskCoverage:
    """Fraction of errors among the i most certain nodes, i = 1 to N (El-Yaniv & Wiener, 2010).

    Nodes with equal scores have no order, so the risk is averaged over all their orders.

    >>> curve = RiskCoverage(coverage_N=np.array([0.5, 1.0]), risk_N=np.array([0.0, 0.5]))
    >>> curve.area, curve.accuracy_N.tolist()
    (0.25, [1.0, 0.5])
    """

    coverage_N: NDArray[np.float64]
    """i / N, the fraction of nodes that are predicted."""
    risk_N: NDArray[np.float64]
    """Fraction of errors among these nodes."""

    @property
    def area(self) -> float:
        """AURC, the mean risk (Geifman & El-Yaniv, 2017): 0 is best, NaN for no nodes."""
        return float(self.risk_N.mean()) if len(self.risk_N) else math.nan

    @property
    def accuracy_N(self) -> NDArray[np.float64]:
        """Accuracy on the i most certain nodes: the accuracy-rejection curve."""
        return 1.0 - self.risk_N

    def thinned(self, points: int) -> "RiskCoverage":
        """Return at most `points` points of the curve, the last one included, for plots."""
        count = len(self.risk_N)
        keep = np.unique(np.linspace(0, count - 1, min(points, count)).round().astype(np.int64))
        return RiskCoverage(self.coverage_N[keep], self.risk_N[keep])


def risk_coverage(score_N: NDArray[np.generic], wrong_N: NDArray[np.bool_]) -> RiskCoverage:
    """Return the curve of a score that grows with uncertainty; `wrong_N` are the errors.

    >>> scores, wrong = np.array([0.9, 0.1, 0.2, 0.3]), np.array([True, False, False, False])
    >>> risk_coverage(scores, wrong).risk_N.tolist()
    [0.0, 0.0, 0.0, 0.25]
    """
    order = np.argsort(score_N, kind="stable")
    answered_N = np.arange(1, len(order) + 1)
    errors_N = np.cumsum(wrong_N[order], dtype=np.float64)
    last_N = np.append(score_N[order][1:] != score_N[order][:-1], True)[: len(order)]
    # Within a run of equal scores, the expected number of errors grows linearly.
    ends = np.append(0, answered_N[last_N])
    expected_N = np.interp(answered_N, ends, np.append(0.0, errors_N[last_N]))
    return RiskCoverage(answered_N / max(len(order), 1), expected_N / answered_N)
