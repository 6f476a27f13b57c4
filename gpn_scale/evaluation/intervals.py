"""95 % intervals of metrics, which reflect that only some nodes were measured.

Nodes count as independent draws. Accuracy has the exact interval of a proportion. The areas under
curves are proportions too, of pairs or of positive nodes; theirs is the exact interval for as many
independent nodes as have the same variance. Calibration errors are bootstrapped.

Shapes: N nodes, B bins of confidence, R resamples.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, stdtrit
from scipy.stats import rankdata

from gpn_scale.evaluation.metrics import Reliability

LEVEL = 0.95
"""Probability with which an interval should contain the true value."""
RESAMPLES = 1000
"""Number of bootstrap samples."""
_STEPS = 401
"""Number of calibration errors that are tried as ends of an interval."""

Interval = tuple[float, float]
"""Lower and upper end."""


def exact_interval(successes: float, count: float, level: float = LEVEL) -> Interval:
    """Return the Clopper-Pearson interval (1934) of a proportion, which is never too narrow.

    Args:
        successes: Number of successes, in [0, count]; may be fractional.
        count: Number of trials, positive; may be fractional.
        level: Probability of containing the true proportion, at least.

    >>> [round(end, 3) for end in exact_interval(9, 10)]
    [0.555, 0.997]
    """
    tail, failures = (1.0 - level) / 2, count - successes
    lower = float(betaincinv(successes, failures + 1, tail)) if successes > 0 else 0.0
    upper = float(betaincinv(successes + 1, failures, 1 - tail)) if failures > 0 else 1.0
    return lower, upper


def auroc_interval(
    positive_N: NDArray[np.bool_], score_N: NDArray[np.floating], level: float = LEVEL
) -> Interval | None:
    """Return the interval of an AUC-ROC; None if there are no positive or no negative nodes.

    DeLong et al. (1988) give the variance of the AUC-ROC, and with it the number of independent
    nodes whose proportion would vary as much. That number is limited to the one of a score that
    says nothing, because the variance is 0 if the two kinds are separated completely.

    >>> positive, score = np.arange(40) >= 20, np.arange(40.0)
    >>> [round(end, 2) for end in auroc_interval(positive, score)]
    [0.88, 1.0]
    """
    positives, negatives = int(positive_N.sum()), int((~positive_N).sum())
    if not positives or not negatives:
        return None
    rank_N = rankdata(score_N)
    # For each node, the fraction of nodes of the other kind below it; equal ones count half.
    above = (rank_N[positive_N] - rankdata(score_N[positive_N])) / negatives
    below = (rank_N[~positive_N] - rankdata(score_N[~positive_N])) / positives
    value, variance = float(above.mean()), math.inf
    if positives > 1 and negatives > 1:
        variance = float(above.var(ddof=1) / positives + below.var(ddof=1) / negatives)
    most = 3 * positives * negatives / (positives + negatives)
    size = most if variance == 0 else min(value * (1 - value) / variance, most)
    return exact_interval(value * max(size, 1.0), max(size, 1.0), level)


def aupr_interval(value: float, positives: int, level: float = LEVEL) -> Interval:
    """Return the interval of an AUC-PR, as of a proportion of the positive nodes.

    Boyd et al. (2013) compare this and other intervals.

    >>> [round(end, 2) for end in aupr_interval(0.9, 100)]
    [0.82, 0.95]
    """
    return exact_interval(value * positives, positives, level)


def mean_interval(value_N: NDArray[np.floating], level: float = LEVEL) -> Interval | None:
    """Return Student's interval of the mean of values in [0, 1]; None for fewer than two.

    >>> [round(end, 2) for end in mean_interval(np.array([0.2, 0.4, 0.6]))]
    [0.0, 0.9]
    """
    count = len(value_N)
    if count < 2:
        return None
    mean, deviation = float(value_N.mean()), float(value_N.std(ddof=1))
    half = float(stdtrit(count - 1, (1.0 + level) / 2)) * deviation / math.sqrt(count)
    return max(mean - half, 0.0), min(mean + half, 1.0)


def ece_interval(
    binned: Reliability, *, rng_seed: int = 0, level: float = LEVEL
) -> Interval | None:
    """Return the interval of an expected calibration error; None for no nodes.

    A measured error is too large on average, since it is a mean of distances: even a perfect model
    has one above 0. So the interval holds the errors under which the measured one is not unusual,
    and those that would be measured of a perfect model. Gaps like the measured ones, but smaller or
    larger by a factor, get the noise of a bootstrap: the number of nodes in each bin is drawn
    again, and the number of correct ones among them. The cost does not depend on the number of
    nodes.

    >>> perfect = Reliability(np.array([0, 100]), np.array([np.nan, 0.75]), np.array([0.0, 0.7]))
    >>> [round(end, 2) for end in ece_interval(perfect)]
    [0.0, 0.14]

    Args:
        binned: Accuracy and confidence in bins.
        rng_seed: Seed of the bootstrap.
        level: Probability of containing the true error.
    """
    filled = binned.count_B > 0
    count_B, confidence_B = binned.count_B[filled], binned.confidence_B[filled]
    fraction_B = count_B / max(int(count_B.sum()), 1)
    if len(count_B) == 0:
        return None
    gap_B = (binned.accuracy_B[filled] - confidence_B) * fraction_B
    noise_RB = _gap_noise(count_B, binned.accuracy_B[filled], confidence_B, rng_seed)
    error, tail = float(np.abs(gap_B).sum()), (1.0 - level) / 2
    direction_B = gap_B / error if error > 0 else fraction_B
    noise_R = np.abs(noise_RB).sum(1)
    lower, upper = error, max(error, float(np.quantile(noise_R, 1.0 - tail)))
    for value in np.linspace(0.0, min(error + float(noise_R.max()), 1.0), _STEPS):
        measured_R = np.abs(value * direction_B + noise_RB).sum(1)
        if value < lower and (measured_R >= error).mean() >= tail:
            lower = float(value)
        if value > upper and (measured_R <= error).mean() >= tail:
            upper = float(value)
    return lower, upper


def _gap_noise(
    count_B: NDArray[np.int64],
    accuracy_B: NDArray[np.float64],
    confidence_B: NDArray[np.float64],
    rng_seed: int,
) -> NDArray[np.float64]:
    """Return how far resampled gaps are from the expected ones, as fractions of all nodes, (R, B).

    Half a node of each kind is added to every bin, so that a bin with only correct nodes is
    uncertain too.
    """
    rng, count = np.random.default_rng(rng_seed), int(count_B.sum())
    likely_B = (accuracy_B * count_B + 0.5) / (count_B + 1)
    drawn_RB = rng.multinomial(count, count_B / count, size=RESAMPLES)
    correct_RB = rng.binomial(drawn_RB, likely_B)
    expected_B = (likely_B - confidence_B) * count_B
    return np.asarray((correct_RB - drawn_RB * confidence_B - expected_B) / count)
