"""Conformal p-values: the fraction of known nodes that look at least as strange as a node.

The p-value of a score s(v) against calibration nodes u is

    p(v) = (1 + number of u with s(u) >= s(v)) / (1 + number of u).

If v is exchangeable with the calibration nodes, then P(p(v) <= x) <= x for every x (Vovk et al.,
2005). Several scores are joined by Fisher's sum of -log p, which is a score again and gets a
p-value of its own: no independence is assumed. docs/posterior.md has the proof.

Shapes: N nodes, V calibration nodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import NodeIds

PARTS = ("features", "neighbourhood", "opinion", "labels")
"""The parts of GPN+ that have p-values of their own."""

Values = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PValues:
    """P-values of nodes: one for each part of the model, and one for being known.

    >>> p = PValues(features=np.array([0.5, 0.01]), labels=np.array([0.2, 0.3]), known=np.ones(2))
    >>> [p.parts[index] for index in p.loudest]
    ['labels', 'features']
    """

    features: Values | None = None
    """Fraction of known nodes whose features look at least this foreign, (N,)."""
    neighbourhood: Values | None = None
    """Fraction of known nodes whose neighbourhood looks at least this foreign, (N,)."""
    opinion: Values | None = None
    """Fraction of known nodes for which all classes get at least as little support, (N,)."""
    labels: Values | None = None
    """Fraction of known nodes that at most as much of the training labels reaches, (N,)."""
    known: Values
    """Fraction of known nodes that look at least this strange in all parts together, (N,)."""
    beyond: Values | None = None
    """Distance beyond the strangest calibration node in units of -log p, (N,); 0 for other nodes.

    No p-value is below 1 / (1 + V), so this orders the nodes that have the smallest one."""

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the parts that the model has."""
        return tuple(part for part in PARTS if getattr(self, part) is not None)

    @property
    def loudest(self) -> NDArray[np.int64]:
        """Position in `parts` of each node's smallest p-value, (N,); the first one if several."""
        return np.asarray(np.stack([getattr(self, part) for part in self.parts]).argmin(0))

    @property
    def continued(self) -> NDArray[np.float64]:
        """`known`, extended below its smallest value by exp(-beyond), to order nodes; (N,).

        This is not a p-value: values below 1 / (1 + V) carry no guarantee.
        """
        known_N = self.known.astype(np.float64)
        return known_N if self.beyond is None else known_N * np.exp(-self.beyond.astype(np.float64))

    def rows(self, rows: slice | NodeIds) -> "PValues":
        """Return the p-values of some nodes."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: v[rows] for name, v in values.items() if v is not None})


def conformal_p(sorted_V: NDArray[np.floating], score_N: NDArray[np.floating]) -> Values:
    """Return the p-value of every score against the sorted scores of the calibration nodes, (N,).

    >>> conformal_p(np.array([1.0, 2.0, 3.0]), np.array([0.0, 2.0, 9.0]))
    array([1.  , 0.75, 0.25], dtype=float32)
    """
    count = len(sorted_V)
    at_least_N = count - np.searchsorted(sorted_V, score_N, side="left")
    return np.asarray((1 + at_least_N) / (1 + count), np.float32)


def calibration_p(score_V: NDArray[np.floating]) -> Values:
    """Return the least p-value of each calibration node once another node is added.

    This is R / (1 + V) with R the number of calibration nodes, itself included, that are at least
    as strange. A further node can only raise R, by 1. So Fisher's sums of these p-values are at
    least those of the joint ranking of all 1 + V nodes, under which the nodes are exchangeable, and
    a p-value against them is too large rather than too small.

    >>> calibration_p(np.array([3.0, 1.0, 2.0]))
    array([0.25, 0.75, 0.5 ], dtype=float32)
    """
    ordered_V = np.sort(score_V)
    at_least_V = len(score_V) - np.searchsorted(ordered_V, score_V, side="left")
    return np.asarray(at_least_V / (1 + len(score_V)), np.float32)


def mean_surprise(p_values: Sequence[Values]) -> NDArray[np.float64]:
    """Return the mean of -log p over several scores, (N,), which grows with strangeness.

    >>> mean_surprise([np.array([1.0]), np.array([np.exp(-2.0)])])
    array([1.])
    """
    return np.asarray(np.mean([-np.log(np.asarray(p, np.float64)) for p in p_values], axis=0))
