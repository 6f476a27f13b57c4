"""Means over crossed seeds: every split with every initialisation.

Runs of one split have its luck in common, and runs that start from the same weights have theirs,
whatever the split. Two initialisations on five splits are ten runs, but far from ten independent
ones.
"""

import math
from collections.abc import Iterable, Mapping

Seeds = tuple[int, int]
"""Of the split and of the initial weights."""


def mean_and_error(values: Mapping[Seeds, float]) -> tuple[float, float]:
    """Of the values that are numbers; the error is NaN for a single one.

    The variance is that of Cameron, Gelbach and Miller (2011) for two ways of clustering: by
    splits, plus by initialisations, less that of independent runs, which is the least it can be.
    """
    found = {seeds: value for seeds, value in values.items() if not math.isnan(value)}
    if not found:
        return math.nan, math.nan
    mean = math.fsum(found.values()) / len(found)
    if len(found) == 1:
        return mean, math.nan
    off = {seeds: value - mean for seeds, value in found.items()}
    alone = _variance(off.items(), len(off))
    by_split = _variance(((split, value) for (split, _), value in off.items()), len(off))
    by_init = _variance(((init, value) for (_, init), value in off.items()), len(off))
    return mean, math.sqrt(max(by_split + by_init - alone, alone))


def _variance(deviations: Iterable[tuple[object, float]], count: int) -> float:
    """Of the mean of `count` runs, when those of a group move together; 0 for a single group."""
    sums: dict[object, float] = {}
    for group, value in deviations:
        sums[group] = sums.get(group, 0.0) + value
    if len(sums) == 1:
        return 0.0
    squares = math.fsum(value**2 for value in sums.values())
    return squares / count**2 * len(sums) / (len(sums) - 1)
