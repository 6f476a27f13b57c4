"""Means over crossed seeds: every split with every initialisation.

Runs of one split have its luck in common, and runs that start from the same weights have theirs,
whatever the split. Two initialisations on five splits are ten runs, but far from ten independent
ones.
"""

import math
from collections.abc import Hashable, Iterable, Mapping

import numpy as np

Seeds = tuple[int, int]
"""Of the split and of the initial weights."""


def mean_and_error(values: Mapping[Seeds, float]) -> tuple[float, float]:
    """Of the values that are numbers; the error is NaN for a single one.

    A run is taken as a sum of what its split, its initialisation and chance do, each drawn anew.
    The variance of the mean is what the means of splits show, plus what those of initialisations
    show, less what is in both: that of chance. It is at least that of independent runs.
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
    by_chance = _chance(off) / len(off)
    return mean, math.sqrt(max(by_split + by_init - by_chance, alone))


def _variance(deviations: Iterable[tuple[Hashable, float]], count: int) -> float:
    """Of the mean of `count` runs, from the sums of groups of them; 0 for a single group."""
    sums: dict[Hashable, float] = {}
    for group, value in deviations:
        sums[group] = sums.get(group, 0.0) + value
    if len(sums) == 1:
        return 0.0
    squares = math.fsum(value**2 for value in sums.values())
    return squares / count**2 * len(sums) / (len(sums) - 1)


def _chance(off: Mapping[Seeds, float]) -> float:
    """Variance of a run that neither its split nor its initialisation explains.

    0 where runs are too few to tell it from these: the error is then rather too large.
    """
    seeds, value_R = np.array(list(off)), np.array(list(off.values()))
    design = np.hstack([seeds[:, [way]] == np.unique(seeds[:, way]) for way in (0, 1)])
    fitted, _, rank, _ = np.linalg.lstsq(design.astype(float), value_R)
    freedom = len(off) - rank
    if freedom == 0:
        return 0.0
    return float(np.square(value_R - design @ fitted).sum() / freedom)
