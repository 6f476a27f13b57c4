"""Movements of p-values: of being known, and of each part of the model.

Shapes: G points of a distribution function.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.drift.reference import ComparedNodes
from gpn_scale.drift.scored_table import P_VALUES, ScoredTable
from gpn_scale.drift.two_samples import (
    Movement,
    Share,
    distribution_movement,
    share_movement,
)
from gpn_scale.evaluation.sample_sizes import LEAST_HISTOGRAM_NODES

LEVELS = (0.05, 0.01)
"""P-values at or below which nodes look strange; the share of such nodes is compared."""
GRID = np.round(np.linspace(0.0, 1.0, 101), 2)
"""Points of the distribution functions."""
PART_NAMES: Mapping[str, str] = {
    "known": "all parts together",
    "features": "features",
    "neighbourhood": "neighbourhood",
    "opinion": "opinion",
    "labels": "labels",
}
"""Description of each p-value."""
_ROUND_OFF = 1e-6
"""P-values are stored as float32."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartDrift:
    """Movement of the p-values of one part.

    >>> few, many = Share(5, 100), Share(30, 100)
    >>> part = PartDrift(
    ...     name="features",
    ...     column="p_features",
    ...     shares={0.05: (few, many)},
    ...     distribution=Movement(0.25, 1e-4, -1),
    ...     moved=True,
    ...     share_moved=True,
    ...     cumulative=(GRID, GRID),
    ... )
    >>> part.looks_stranger, part.sentence
    (True, 'p_features moved by 25.0 %, more than chance explains: B looks stranger.')
    """

    name: str
    """One of `P_VALUES`."""
    column: str
    """Name of its column in tables."""
    shares: Mapping[float, tuple[Share, Share]]
    """Shares of nodes of A and of B at or below each of `LEVELS` that any node reaches."""
    distribution: Movement
    """Kolmogorov-Smirnov distance of the p-values."""
    moved: bool
    """Whether the distribution moved, corrected for comparing all p-values at once."""
    share_moved: bool
    """Whether the share of nodes at or below 5 % moved."""
    cumulative: tuple[NDArray[np.float64], NDArray[np.float64]]
    """Share of nodes of A and of B at or below each point of `GRID`, (G,) each."""

    @property
    def looks_stranger(self) -> bool:
        """Whether the p-values of B are smaller where the distributions differ most."""
        return self.distribution.direction < 0

    @property
    def sentence(self) -> str:
        """One sentence on how far the p-values moved."""
        distance = f"{100 * self.distribution.distance:.1f} %"
        if self.moved:
            end = "stranger" if self.looks_stranger else "less strange"
            return f"{self.column} moved by {distance}, more than chance explains: B looks {end}."
        if self.distribution.exceeds_chance:
            return (
                f"{self.column} moved by {distance}: this may be more than chance, but it is "
                "small, or only one of several comparisons."
            )
        return f"{self.column} moved by {distance}, which chance explains."

    def to_dict(self) -> dict[str, Any]:
        """Return the drift as JSON values."""
        shares = {
            f"{level:g}": {"a": a.to_dict(), "b": b.to_dict()}
            for level, (a, b) in self.shares.items()
        }
        return {
            "part": self.name,
            "column": self.column,
            "at_or_below": shares,
            "distance": self.distribution.distance,
            "p_value": self.distribution.p_value,
            "moved": self.moved,
            "share_moved": self.share_moved,
            "looks_stranger": self.looks_stranger,
            "cumulative": {
                "at": GRID.tolist(),
                "a": self.cumulative[0].tolist(),
                "b": self.cumulative[1].tolist(),
            },
        }


def part_drifts(
    a: ScoredTable, b: ScoredTable, nodes: ComparedNodes
) -> tuple[tuple[PartDrift, ...], tuple[str, ...]]:
    """Return how each p-value moved, and what is left out; both tables have the same parts.

    >>> import pyarrow as pa
    >>> columns = {"predicted_class": [0] * 50, "aleatoric": [-0.9] * 50}
    >>> p = np.arange(1, 51) / 50
    >>> a = ScoredTable.of(pa.table(columns | {"node": range(50), "p_known": p}))
    >>> b = ScoredTable.of(pa.table(columns | {"node": range(50), "p_known": p / 10}))
    >>> parts, left_out = part_drifts(a, b, ComparedNodes.of(a, b))
    >>> [(part.name, part.moved, part.looks_stranger) for part in parts], left_out
    ([('known', True, True)], ())
    """
    for table in (a, b):
        if not table.p:
            sentence = (
                f"P-values are not compared: {table.name} has none, since a GPN has none, or there "
                "were too few validation nodes."
            )
            return (), (sentence,)
    few = min(len(nodes.a), len(nodes.b))
    if few < LEAST_HISTOGRAM_NODES:
        sentence = (
            f"P-values are not compared: this needs {LEAST_HISTOGRAM_NODES} nodes of A and of B, "
            f"and there are {len(nodes.a)} and {len(nodes.b)}."
        )
        return (), (sentence,)
    present = [name for name in P_VALUES if name in a.p]
    values = {name: (a.p[name][nodes.a], b.p[name][nodes.b]) for name in present}
    parts = tuple(
        _part_drift(name, a.joint if name == "known" else f"p_{name}", *each, len(values))
        for name, each in values.items()
    )
    return parts, tuple(_levels_out_of_reach(parts, values))


def _part_drift(
    name: str, column: str, p_a: NDArray[np.float64], p_b: NDArray[np.float64], comparisons: int
) -> PartDrift:
    smallest = min(p_a.min(), p_b.min())
    shares = {
        level: (_share_below(p_a, level), _share_below(p_b, level))
        for level in LEVELS
        if smallest <= level + _ROUND_OFF
    }
    movement = distribution_movement(p_a, p_b)
    share_moved = LEVELS[0] in shares and share_movement(*shares[LEVELS[0]]).is_notable(comparisons)
    return PartDrift(
        name=name,
        column=column,
        shares=shares,
        distribution=movement,
        moved=movement.is_notable(comparisons),
        share_moved=share_moved,
        cumulative=(_cumulative(p_a), _cumulative(p_b)),
    )


def _share_below(p: NDArray[np.float64], level: float) -> Share:
    return Share(int((p <= level + _ROUND_OFF).sum()), len(p))


def _cumulative(p: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.searchsorted(np.sort(p), GRID + _ROUND_OFF, side="right") / len(p))


def _levels_out_of_reach(
    parts: tuple[PartDrift, ...], values: Mapping[str, tuple[NDArray[np.float64], ...]]
) -> list[str]:
    """Return which levels no p-value reaches, as when there are few validation nodes."""
    sentences = []
    for level in LEVELS:
        if parts and not any(level in part.shares for part in parts):
            smallest = min(p.min() for pair in values.values() for p in pair)
            sentences.append(
                f"Shares at or below {100 * level:g} % are not given: no p-value is that small. "
                f"The smallest is {100 * smallest:.1f} %; few validation nodes make them coarse."
            )
    return sentences
