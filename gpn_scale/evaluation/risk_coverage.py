"""How wrong is the model on the nodes that it is surest of? Curves over coverage.

Shapes: N nodes.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class RiskCoverage:
    """The share of errors among the i surest nodes, for i = 1 to N (El-Yaniv & Wiener, 2010).

    Nodes of equal score have no order: the risk is its mean over all orders of them.
    """

    coverage_N: NDArray[np.float64]
    """i / N."""
    risk_N: NDArray[np.float64]

    @property
    def area(self) -> float:
        """AURC, the mean risk (Geifman & El-Yaniv, 2017); smaller is better, NaN for no nodes."""
        return float(self.risk_N.mean()) if len(self.risk_N) else math.nan

    @property
    def excess_area(self) -> float:
        """AURC beyond that of a score that puts every error last (Geifman et al., 2019)."""
        count = len(self.risk_N)
        if count == 0:
            return math.nan
        wrong = round(float(self.risk_N[-1]) * count)
        ideal = risk_coverage(np.arange(count), np.arange(count) >= count - wrong)
        return self.area - ideal.area

    @property
    def accuracy_N(self) -> NDArray[np.float64]:
        """Accuracy after rejecting all but the i surest: the accuracy-rejection curve."""
        return 1.0 - self.risk_N

    def thinned(self, points: int) -> "RiskCoverage":
        """At most so many points of the curve, the last among them; for plots."""
        count = len(self.risk_N)
        keep = np.unique(np.linspace(0, count - 1, min(points, count)).round().astype(np.int64))
        return RiskCoverage(self.coverage_N[keep], self.risk_N[keep])


def risk_coverage(score_N: NDArray[np.generic], wrong_N: NDArray[np.bool_]) -> RiskCoverage:
    """The curve of an uncertainty score; higher is less certain."""
    order = np.argsort(score_N, kind="stable")
    rank_N = np.arange(1, len(order) + 1)
    errors_N = np.cumsum(wrong_N[order], dtype=np.float64)
    last_N = np.append(score_N[order][1:] != score_N[order][:-1], True)[: len(order)]
    # Between the ends of a run of equal scores, the expected number of errors is linear.
    ends = np.append(0, rank_N[last_N])
    expected_N = np.interp(rank_N, ends, np.append(0.0, errors_N[last_N]))
    return RiskCoverage(rank_N / max(len(order), 1), expected_N / rank_N)
