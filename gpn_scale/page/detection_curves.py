"""ROC and precision-recall curves of scores that should detect nodes.

Shapes: N nodes, S points of a curve.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph
from gpn_scale.evaluation.detection import known_and_unknown
from gpn_scale.evaluation.metrics import aupr, auroc
from gpn_scale.evaluation.prediction import FloatArray as Scores
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.sample_sizes import LEAST_CURVE_NODES, enough_of_both
from gpn_scale.evaluation.scores import P_KNOWN, PAGE_SCORES
from gpn_scale.page.histograms import FloatArray

_POINTS = 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DetectionCurve:
    """Detection of nodes by one score, from the highest threshold to the lowest."""

    score: str
    """Name of the score."""
    false_alarms: FloatArray
    """Fraction of the other nodes above the threshold, (S,)."""
    recall: FloatArray
    """Fraction of the nodes to detect above the threshold, (S,)."""
    precision: FloatArray
    """Fraction of the nodes above the threshold that are to be detected, (S,)."""
    auroc: float
    aupr: float


def error_curves(prediction: Prediction, graph: Graph) -> tuple[DetectionCurve, ...]:
    """Return how each score detects the errors among the test nodes; () for too few."""
    assert graph.split is not None
    test = graph.split.test
    if len(test) < LEAST_CURVE_NODES:
        return ()
    wrong = prediction.probabilities[test].argmax(1) != graph.labels[test]
    return _curves(prediction.scores(test, (*PAGE_SCORES, P_KNOWN.name)), wrong)


def unknown_curves(prediction: Prediction, graph: Graph) -> tuple[DetectionCurve, ...]:
    """Return how each score detects unknown nodes; () for too few of them, or of known ones."""
    nodes, is_unknown = known_and_unknown(graph)
    return _curves(prediction.scores(nodes, (*PAGE_SCORES, P_KNOWN.name)), is_unknown)


def _curves(
    scores: Mapping[str, Scores | None], positive_N: NDArray[np.bool_]
) -> tuple[DetectionCurve, ...]:
    positives = int(positive_N.sum())
    if not enough_of_both(positives, len(positive_N) - positives):
        return ()
    return tuple(
        detection_curve(name, score, positive_N)
        for name, score in scores.items()
        if score is not None
    )


def detection_curve(name: str, score_N: Scores, positive_N: NDArray[np.bool_]) -> DetectionCurve:
    """Return the curve of a score, thinned to some hundred points; there must be both kinds."""
    order = np.argsort(-score_N, kind="stable")
    ordered, hits = score_N[order], np.cumsum(positive_N[order])
    # Nodes of equal score pass a threshold together.
    ends = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)
    above, hits = ends + 1.0, hits[ends].astype(np.float64)
    keep = np.unique(np.linspace(0, len(ends) - 1, min(len(ends), _POINTS)).astype(np.int64))
    positives = float(positive_N.sum())
    return DetectionCurve(
        score=name,
        false_alarms=np.append(0.0, ((above - hits) / (len(score_N) - positives))[keep]),
        recall=np.append(0.0, (hits / positives)[keep]),
        precision=np.append((hits / above)[0], (hits / above)[keep]),
        auroc=auroc(positive_N, score_N),
        aupr=aupr(positive_N, score_N),
    )
