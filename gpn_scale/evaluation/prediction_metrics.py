"""A prediction and the graph's labels, split and marks -> the numbers of a report."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.evaluation.metrics import (
    accuracy,
    aupr,
    auroc,
    brier_score,
    expected_calibration_error,
    maximum_calibration_error,
    negative_log_likelihood,
)
from gpn_scale.evaluation.prediction import FloatArray
from gpn_scale.evaluation.scored_prediction import AnyPrediction

Metrics = dict[str, float]


def classification_metrics(prediction: AnyPrediction, graph: Graph, nodes: NodeIds) -> Metrics:
    """Accuracy, calibration, and how well each score finds the misclassified among `nodes`."""
    probability = prediction.probabilities[nodes]
    label = graph.labels[nodes]
    metrics = {
        "accuracy": accuracy(probability, label),
        "ece": expected_calibration_error(probability, label),
        "mce": maximum_calibration_error(probability, label),
        "brier": brier_score(probability, label),
        "nll": negative_log_likelihood(probability, label),
    }
    wrong = probability.argmax(1) != label
    return metrics | detection_metrics(prediction.scores(nodes), wrong, prefix="misclassification_")


def out_of_distribution_metrics(prediction: AnyPrediction, graph: Graph) -> dict[str, Any]:
    """How well each score tells marked nodes from the unmarked test nodes; {} without marks.

    Positives are all marked nodes; `marks` has the same for every mark alone.
    """
    if not graph.marks or graph.split is None:
        return {}
    ordinary = np.setdiff1d(graph.split.test, graph.marked)
    metrics: dict[str, Any] = {
        "id_accuracy": accuracy(prediction.probabilities[ordinary], graph.labels[ordinary]),
        "id_nodes": len(ordinary),
        **_detect_marked(prediction, ordinary, graph.marked),
    }
    metrics["marks"] = {
        name: _detect_marked(prediction, ordinary, np.asarray(nodes))
        for name, nodes in graph.marks.items()
    }
    return metrics


def _detect_marked(prediction: AnyPrediction, ordinary: NodeIds, marked: NodeIds) -> dict[str, Any]:
    nodes = np.concatenate([ordinary, marked])
    positive = np.arange(len(nodes)) >= len(ordinary)
    return {"ood_nodes": len(marked), **detection_metrics(prediction.scores(nodes), positive)}


def detection_metrics(
    scores: Mapping[str, FloatArray | None], positive: NDArray[np.bool_], prefix: str = ""
) -> Metrics:
    """AUC-ROC and AUC-PR of every score at finding the positive nodes; NaN where it is None."""
    metrics = {}
    for name, score in scores.items():
        metrics[f"{prefix}auroc_{name}"] = math.nan if score is None else auroc(positive, score)
        metrics[f"{prefix}aupr_{name}"] = math.nan if score is None else aupr(positive, score)
    return metrics
