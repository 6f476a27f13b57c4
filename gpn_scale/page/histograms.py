"""Histograms of groups of values over common bins.

Shapes: B bins.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.evaluation.sample_sizes import LEAST_HISTOGRAM_NODES

BINS = 40
_WIDEST = 1e300

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Histogram:
    """Densities of groups of values over the same bins."""

    edges: FloatArray
    """Edges of the bins, (B + 1,)."""
    densities: Mapping[str, FloatArray]
    """Density of each group, (B,). It integrates to 1, or is 0 for a group without values."""
    counts: Mapping[str, int]
    """Number of values in each group."""


def histogram_of(groups: Mapping[str, NDArray[np.floating]], bins: int = BINS) -> Histogram:
    """Return the densities of the finite values of each group, over bins that cover them all."""
    finite = {name: np.asarray(v, np.float64)[np.isfinite(v)] for name, v in groups.items()}
    low, high = data_range(np.concatenate([np.empty(0), *finite.values()]))
    edges = np.linspace(low, high, bins + 1)
    counted = {name: np.histogram(values, edges)[0] for name, values in finite.items()}
    scale = {name: max(len(values), 1) * (edges[1] - edges[0]) for name, values in finite.items()}
    return Histogram(
        edges=edges,
        densities={name: counts / scale[name] for name, counts in counted.items()},
        counts={name: len(values) for name, values in finite.items()},
    )


def histogram_of_enough(
    groups: Mapping[str, NDArray[np.floating]], bins: int = BINS
) -> Histogram | None:
    """Return the histogram of the groups that have enough nodes; None if there is no such group."""
    enough = {name: v for name, v in groups.items() if len(v) >= LEAST_HISTOGRAM_NODES}
    return histogram_of(enough, bins) if enough else None


def data_range(values: NDArray[np.floating]) -> tuple[float, float]:
    """Return the smallest and the largest finite value.

    Equal values get some space around them, so that the range is never empty. Without any finite
    value the range is (0, 1).
    """
    finite = np.asarray(values, np.float64)[np.isfinite(values)]
    if len(finite) == 0:
        return 0.0, 1.0
    low, high = (float(np.clip(v, -_WIDEST, _WIDEST)) for v in (finite.min(), finite.max()))
    if high - low > max(1e-9 * max(abs(low), abs(high)), 1 / _WIDEST):
        return low, high
    pad = 0.1 * abs(low) or 0.5
    return low - pad, high + pad
