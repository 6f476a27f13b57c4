"""Accuracy, calibration and detection, on arrays.

Shapes: N nodes, C classes.
"""

import math

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

CALIBRATION_BINS = 10


def accuracy(probability_NC: NDArray[np.floating], label_N: NDArray[np.integer]) -> float:
    """Share of nodes whose most probable class is theirs; NaN for no nodes."""
    return _mean(probability_NC.argmax(1) == label_N)


def expected_calibration_error(
    probability_NC: NDArray[np.floating],
    label_N: NDArray[np.integer],
    bins: int = CALIBRATION_BINS,
) -> float:
    """Gap between confidence and accuracy over equally wide confidence bins, weighted by count."""
    if len(label_N) == 0:
        return math.nan
    confidence_N = probability_NC.max(1).astype(np.float64)
    correct_N = (probability_NC.argmax(1) == label_N).astype(np.float64)
    # Bins are (lower, upper], as in Guo et al. (2017).
    bin_N = np.clip(np.ceil(confidence_N * bins).astype(np.int64) - 1, 0, bins - 1)
    gap = np.bincount(bin_N, weights=correct_N - confidence_N, minlength=bins)
    return float(np.abs(gap).sum() / len(label_N))


def brier_score(probability_NC: NDArray[np.floating], label_N: NDArray[np.integer]) -> float:
    """Mean of half the squared distance to the one-hot label, in [0, 1] (Brier, 1950, halved)."""
    # Sums in float64 without a copy of the whole in it.
    squares_N = np.einsum("nc,nc->n", probability_NC, probability_NC, dtype=np.float64)
    of_label_N = probability_NC[np.arange(len(label_N)), label_N].astype(np.float64)
    return _mean(0.5 * (squares_N - 2.0 * of_label_N + 1.0))


def auroc(positive_N: NDArray[np.bool_], score_N: NDArray[np.floating]) -> float:
    """Probability that a positive node scores above a negative one; NaN if either kind lacks."""
    return math.nan if _one_kind(positive_N) else float(roc_auc_score(positive_N, score_N))


def aupr(positive_N: NDArray[np.bool_], score_N: NDArray[np.floating]) -> float:
    """Average precision of finding the positive nodes by score; NaN if either kind lacks."""
    if _one_kind(positive_N):
        return math.nan
    return float(average_precision_score(positive_N, score_N))


def _one_kind(positive_N: NDArray[np.bool_]) -> bool:
    return bool(positive_N.all() or not positive_N.any())


def _mean(values: NDArray[np.floating] | NDArray[np.bool_]) -> float:
    return float(values.mean()) if len(values) else math.nan
