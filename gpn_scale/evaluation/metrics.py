"""Metrics of accuracy, calibration and detection, on arrays.

Shapes: N nodes, C classes, B bins of confidence.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

CALIBRATION_BINS = 10
"""Number of bins of confidence in calibration errors and reliability diagrams."""


def accuracy(probability_NC: NDArray[np.floating], label_N: NDArray[np.integer]) -> float:
    """Return the fraction of nodes whose most probable class is their label; NaN for no nodes.

    >>> accuracy(np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([0, 0]))
    0.5
    """
    return _mean(probability_NC.argmax(1) == label_N)


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """Accuracy by confidence, in equally wide bins (lower, upper], as in Guo et al. (2017).

    Bins without nodes have NaN for accuracy and confidence.

    >>> binned = Reliability(np.array([4, 6]), np.array([0.25, 1.0]), np.array([0.5, 0.75]))
    >>> binned.gap_B.tolist()
    [0.25, 0.25]
    """

    count_B: NDArray[np.int64]
    """Number of nodes in each bin."""
    accuracy_B: NDArray[np.float64]
    confidence_B: NDArray[np.float64]
    """Mean confidence."""

    @property
    def gap_B(self) -> NDArray[np.float64]:
        """Distance between accuracy and confidence, 0 for bins without nodes."""
        return np.nan_to_num(np.abs(self.accuracy_B - self.confidence_B))


def reliability(
    probability_NC: NDArray[np.floating],
    label_N: NDArray[np.integer],
    bins: int = CALIBRATION_BINS,
) -> Reliability:
    """Return accuracy and mean confidence of the nodes in each bin of confidence.

    >>> binned = reliability(np.array([[0.75, 0.25], [0.75, 0.25]]), np.array([0, 1]), bins=2)
    >>> binned.count_B.tolist(), binned.accuracy_B.tolist(), binned.confidence_B.tolist()
    ([0, 2], [nan, 0.5], [nan, 0.75])
    """
    confidence_N = probability_NC.max(1).astype(np.float64)
    correct_N = (probability_NC.argmax(1) == label_N).astype(np.float64)
    bin_N = np.clip(np.ceil(confidence_N * bins).astype(np.int64) - 1, 0, bins - 1)
    count_B = np.bincount(bin_N, minlength=bins)
    with np.errstate(invalid="ignore"):
        return Reliability(
            count_B=count_B,
            accuracy_B=np.bincount(bin_N, correct_N, minlength=bins) / count_B,
            confidence_B=np.bincount(bin_N, confidence_N, minlength=bins) / count_B,
        )


def expected_calibration_error(
    probability_NC: NDArray[np.floating],
    label_N: NDArray[np.integer],
    bins: int = CALIBRATION_BINS,
) -> float:
    """Return the gap between confidence and accuracy, averaged over nodes; NaN for no nodes.

    >>> expected_calibration_error(np.array([[0.75, 0.25], [0.75, 0.25]]), np.array([0, 1]))
    0.25
    """
    if len(label_N) == 0:
        return math.nan
    binned = reliability(probability_NC, label_N, bins)
    return float((binned.count_B * binned.gap_B).sum() / len(label_N))


def maximum_calibration_error(
    probability_NC: NDArray[np.floating],
    label_N: NDArray[np.integer],
    bins: int = CALIBRATION_BINS,
) -> float:
    """Return the largest gap between confidence and accuracy of a bin; NaN for no nodes.

    >>> maximum_calibration_error(np.array([[1.0, 0.0], [0.75, 0.25]]), np.array([0, 0]))
    0.25
    """
    if len(label_N) == 0:
        return math.nan
    return float(reliability(probability_NC, label_N, bins).gap_B.max())


def negative_log_likelihood(
    probability_NC: NDArray[np.floating], label_N: NDArray[np.integer]
) -> float:
    """Return the mean of -log p of the label; NaN for no nodes.

    >>> round(negative_log_likelihood(np.array([[0.5, 0.5]]), np.array([0])), 3)  # log 2
    0.693
    """
    of_label_N = probability_NC[np.arange(len(label_N)), label_N].astype(np.float64)
    return _mean(-np.log(np.maximum(of_label_N, np.finfo(np.float32).tiny)))


def brier_score(probability_NC: NDArray[np.floating], label_N: NDArray[np.integer]) -> float:
    """Return half the mean squared distance to the one-hot label, in [0, 1] (Brier, 1950).

    Brier's score without the half lies in [0, 2]. The result is NaN for no nodes.

    >>> brier_score(np.array([[1.0, 0.0]]), np.array([1])), brier_score(np.eye(2), np.array([0, 1]))
    (1.0, 0.0)
    """
    return _mean(squared_errors(probability_NC, label_N))


def squared_errors(
    probability_NC: NDArray[np.floating], label_N: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return half the squared distance of each node to its one-hot label, in [0, 1], (N,).

    >>> squared_errors(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([1, 0])).tolist()
    [1.0, 0.25]
    """
    # einsum sums in float64 without a float64 copy of the whole array.
    squares_N = np.einsum("nc,nc->n", probability_NC, probability_NC, dtype=np.float64)
    of_label_N = probability_NC[np.arange(len(label_N)), label_N].astype(np.float64)
    return np.asarray(0.5 * (squares_N - 2.0 * of_label_N + 1.0))


def auroc(positive_N: NDArray[np.bool_], score_N: NDArray[np.floating]) -> float:
    """Return the probability that a positive node scores above a negative one.

    NaN if there are no positive or no negative nodes.

    >>> auroc(np.array([True, False, False]), np.array([0.5, 0.1, 0.9]))
    0.5
    """
    return math.nan if _one_kind(positive_N) else float(roc_auc_score(positive_N, score_N))


def aupr(positive_N: NDArray[np.bool_], score_N: NDArray[np.floating]) -> float:
    """Return the average precision of detecting the positive nodes by their score.

    NaN if there are no positive or no negative nodes.

    >>> aupr(np.array([True, False, False]), np.array([0.5, 0.1, 0.9]))
    0.5
    """
    if _one_kind(positive_N):
        return math.nan
    return float(average_precision_score(positive_N, score_N))


def false_positive_rate(
    positive_N: NDArray[np.bool_],
    score_N: NDArray[np.floating],
    true_positive_rate: float = 0.95,
) -> float:
    """Return the false-positive rate at a given true-positive rate.

    The threshold is the largest that at least `true_positive_rate` of the positive nodes reach.
    NaN if there are no positive or no negative nodes.

    >>> false_positive_rate(np.array([True, False, False]), np.array([0.5, 0.1, 0.9]))
    0.5
    """
    if _one_kind(positive_N):
        return math.nan
    descending_P = np.sort(score_N[positive_N])[::-1]
    # The product may exceed a whole number by a rounding error.
    reached = max(math.ceil(true_positive_rate * len(descending_P) - 1e-9), 1)
    return _mean(score_N[~positive_N] >= descending_P[reached - 1])


def _one_kind(positive_N: NDArray[np.bool_]) -> bool:
    return bool(positive_N.all() or not positive_N.any())


def _mean(values: NDArray[np.floating] | NDArray[np.bool_]) -> float:
    return float(values.mean()) if len(values) else math.nan
