"""`ColumnDrift`: movement of one column, with the data for its chart.

Shapes: B bins, K categories.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gpn_scale.drift.two_samples import Movement, Share, share_movement

DriftKind = Literal[
    "number", "date", "boolean", "category", "text", "feature", "sparse feature", "network"
]
"""Kinds of raw columns; features without raw columns; and the network itself."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bins:
    """Histograms of a column of numbers over the same bins.

    >>> Bins.of(np.array([0.0, 1.0]), np.array([1.0, 1.0]), num_bins=2).b.tolist()
    [0.0, 1.0]
    """

    edges: NDArray[np.float64]
    """Edges of the bins, (B + 1,); the first and the last bin include all values beyond."""
    a: NDArray[np.float64]
    """Share of nodes of A in each bin, (B,)."""
    b: NDArray[np.float64]
    """The same of B."""
    nodes: tuple[int, int]
    """Number of nodes of A and of B that have a value."""

    @classmethod
    def of(
        cls, a: NDArray[np.floating], b: NDArray[np.floating], num_bins: int = 30
    ) -> "Bins | None":
        """Return the histograms between the 0.5 % and 99.5 % quantiles; None for one value."""
        both = np.concatenate([a, b])
        low, high = np.quantile(both, [0.005, 0.995])
        low, high = (low, high) if low < high else (both.min(), both.max())
        if not low < high:
            return None
        edges = np.linspace(low, high, num_bins + 1)
        shares = [np.histogram(np.clip(v, low, high), edges)[0] / len(v) for v in (a, b)]
        return cls(edges=edges, a=shares[0], b=shares[1], nodes=(len(a), len(b)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Shares of the values of a column that moved most.

    >>> Bars(names=("DE", "XK"), a=(0.9, 0.0), b=(0.8, 0.1)).names
    ('DE', 'XK')
    """

    names: tuple[str, ...]
    a: tuple[float, ...]
    b: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnDrift:
    """Movement of the values of one column.

    >>> drift = ColumnDrift(
    ...     name="age",
    ...     kind="number",
    ...     values=Movement(0.1, 1e-9, 1),
    ...     missing=(Share(0, 90), Share(30, 90)),
    ... )
    >>> drift.movement.distance > 0.3, drift.measure
    (True, 'share of missing values')
    """

    name: str
    """Name of the raw column or of the feature."""
    kind: DriftKind
    values: Movement
    """Movement of the given values; its distance is 0 if there are too few."""
    missing: tuple[Share, Share] | None = None
    """Missing values in A and in B; None if there cannot be any."""
    detail: str = ""
    """Description of what moved."""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    """The figures behind it as JSON values, by name."""
    picture: Bins | Bars | None = None
    moved: bool = False
    """Whether the column moved, corrected for comparing all columns at once."""

    @property
    def missing_movement(self) -> Movement:
        """Movement of the share of missing values."""
        return Movement(0.0, 1.0) if self.missing is None else share_movement(*self.missing)

    @property
    def movement(self) -> Movement:
        """Movement of the column: of its values or of its missing share, whichever is larger."""
        both = (self.values, self.missing_movement)
        return max(both, key=lambda each: (each.is_notable(), each.distance))

    @property
    def measure(self) -> str:
        """Name of the quantity that the distance measures."""
        if self.movement is not self.values and self.movement.distance > 0:
            return "share of missing values"
        return _MEASURES[self.kind]

    def to_dict(self) -> dict[str, Any]:
        """Return the drift as JSON values."""
        missing = None
        if self.missing is not None:
            missing = {"a": self.missing[0].to_dict(), "b": self.missing[1].to_dict()}
        return {
            "column": self.name,
            "kind": self.kind,
            "distance": self.movement.distance,
            "p_value": self.movement.p_value,
            "measure": self.measure,
            "moved": self.moved,
            "detail": self.detail,
            "missing": missing,
            **self.numbers,
        }


_MEASURES: Mapping[DriftKind, str] = {
    "number": "Kolmogorov-Smirnov distance",
    "date": "Kolmogorov-Smirnov distance",
    "network": "Kolmogorov-Smirnov distance",
    "feature": "Kolmogorov-Smirnov distance",
    "sparse feature": "share of nodes with the feature",
    "boolean": "difference of shares",
    "category": "total variation distance",
    "text": "share of texts with a word",
}
