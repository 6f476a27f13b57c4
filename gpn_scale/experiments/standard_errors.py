"""Means and standard errors over crossed seeds: every split with every initialisation.

Runs with the same split are correlated, and so are runs with the same initial weights. Two
initialisations on five splits are ten runs, but fewer than ten independent ones.
"""

import math
from collections.abc import Hashable, Iterable, Mapping

import numpy as np

Seeds = tuple[int, int]
"""Seeds of the split and of the initial weights."""
_ROUNDING = 1e-12
"""Standard errors below this fraction of the mean are rounding errors of equal values."""


def mean_and_error(values: Mapping[Seeds, float]) -> tuple[float, float]:
    """Return the mean of all values but NaN, and its standard error, NaN for a single value.

    The error is 0 if all values are equal up to rounding.

    >>> mean_and_error({(split, 1): 1.9458 for split in range(5)})[1]
    0.0

    The value of a run is modelled as a sum of three random effects: split, initialisation and
    residual. The variance of the mean is estimated from the means of splits, plus that from the
    means of initialisations, minus the residual variance, which both contain. It is at least the
    variance for independent runs.
    """
    numbers = {seeds: value for seeds, value in values.items() if not math.isnan(value)}
    if not numbers:
        return math.nan, math.nan
    mean = math.fsum(numbers.values()) / len(numbers)
    if len(numbers) == 1:
        return mean, math.nan
    deviation = {seeds: value - mean for seeds, value in numbers.items()}
    independent = _variance(deviation.items(), len(deviation))
    by_split = ((split, value) for (split, _), value in deviation.items())
    by_init = ((init, value) for (_, init), value in deviation.items())
    variance = _variance(by_split, len(deviation)) + _variance(by_init, len(deviation))
    residual = _residual_variance(deviation) / len(deviation)
    error = math.sqrt(max(variance - residual, independent))
    return mean, error if error > _ROUNDING * abs(mean) else 0.0


def _variance(deviations: Iterable[tuple[Hashable, float]], count: int) -> float:
    """Return the variance of the mean of `count` runs, from sums of groups; 0 for one group."""
    sums: dict[Hashable, float] = {}
    for group, value in deviations:
        sums[group] = sums.get(group, 0.0) + value
    if len(sums) == 1:
        return 0.0
    squares = math.fsum(value**2 for value in sums.values())
    return squares / count**2 * len(sums) / (len(sums) - 1)


def _residual_variance(deviation: Mapping[Seeds, float]) -> float:
    """Return the variance of a run that neither its split nor its initialisation explains.

    It is 0 for too few runs to estimate it; the standard error then tends to be too large.
    """
    seeds, value_R = np.array(list(deviation)), np.array(list(deviation.values()))
    design = np.hstack([seeds[:, [kind]] == np.unique(seeds[:, kind]) for kind in (0, 1)])
    fitted, _, rank, _ = np.linalg.lstsq(design.astype(float), value_R)
    freedom = len(deviation) - rank
    if freedom == 0:
        return 0.0
    return float(np.square(value_R - design @ fitted).sum() / freedom)
