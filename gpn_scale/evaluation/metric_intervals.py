"""Intervals of the metrics of a report; a metric based on too few nodes has none."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.evaluation.detection import known_and_unknown, known_test_nodes
from gpn_scale.evaluation.intervals import (
    Interval,
    aupr_interval,
    auroc_interval,
    ece_interval,
    exact_interval,
    mean_interval,
)
from gpn_scale.evaluation.metrics import aupr, reliability, squared_errors
from gpn_scale.evaluation.prediction import AbstractPrediction, FloatArray
from gpn_scale.evaluation.prediction_metrics import is_largest_class
from gpn_scale.evaluation.sample_sizes import (
    LEAST_BINNED_NODES,
    LEAST_MEAN_NODES,
    enough_of_both,
)
from gpn_scale.evaluation.scores import DETECTION_SCORES

Intervals = dict[str, Any]
"""[lower, upper] by the name of the metric, as lists, which survive JSON unchanged."""


def classification_intervals(
    prediction: AbstractPrediction, graph: Graph, nodes: NodeIds
) -> Intervals:
    """Return intervals of the metrics of `nodes`: those of `classification_metrics` and more.

    >>> from gpn_scale.data.building import build_graph
    >>> from gpn_scale.data.graph import Split
    >>> from gpn_scale.evaluation.scored_prediction import ScoredPrediction
    >>> split = Split(train=[0, 1], val=[], test=[2])
    >>> graph = build_graph([], [], labels=[0, 1, 0], split=split)
    >>> prediction = ScoredPrediction(model="GCN", probabilities=np.array([[0.9, 0.1]] * 3))
    >>> intervals = classification_intervals(prediction, graph, nodes=split.test)
    >>> [round(end, 3) for end in intervals["accuracy"]]
    [0.025, 1.0]
    """
    count = len(nodes)
    if count == 0:
        return {}
    probability, label = prediction.probabilities[nodes], graph.labels[nodes]
    wrong = probability.argmax(1) != label
    intervals: dict[str, Interval | None] = {
        "accuracy": exact_interval(count - int(wrong.sum()), count),
        "accuracy_largest_class": exact_interval(int(is_largest_class(graph, nodes).sum()), count),
    }
    if count >= LEAST_BINNED_NODES:
        intervals["ece"] = ece_interval(reliability(probability, label))
    if count >= LEAST_MEAN_NODES:
        intervals["brier"] = mean_interval(squared_errors(probability, label))
    return _listed(intervals) | detection_intervals(
        prediction.scores(nodes), wrong, prefix="misclassification_"
    )


def out_of_distribution_intervals(
    prediction: AbstractPrediction, graph: Graph, scores: Iterable[str] = tuple(DETECTION_SCORES)
) -> Intervals:
    """Return intervals of the detection of unknown nodes; `marks` holds those of each mark.

    The result is {} for a graph without a split or without marks.

    >>> from gpn_scale.data.building import build_graph
    >>> from gpn_scale.data.graph import Split
    >>> from gpn_scale.evaluation.scored_prediction import ScoredPrediction
    >>> split = Split(train=[0], val=[], test=range(1, 20))
    >>> marks = {"odd": range(20, 40)}
    >>> graph = build_graph([], [], labels=[0] * 20 + [-1] * 20, split=split, marks=marks)
    >>> probabilities = np.repeat([[0.9, 0.1], [0.6, 0.4]], 20, axis=0)
    >>> prediction = ScoredPrediction(model="GCN", probabilities=probabilities)
    >>> intervals = out_of_distribution_intervals(prediction, graph, ["aleatoric"])
    >>> [round(end, 2) for end in intervals["auroc_aleatoric"]]
    [0.88, 1.0]
    """
    if graph.split is None or not graph.marks:
        return {}
    names = tuple(scores)

    def detected(unknown: NodeIds) -> Intervals:
        nodes, is_unknown = known_and_unknown(graph, unknown)
        return detection_intervals(prediction.scores(nodes, names), is_unknown)

    known = known_test_nodes(graph)
    correct = prediction.probabilities[known].argmax(1) == graph.labels[known]
    accuracy = exact_interval(int(correct.sum()), len(known)) if len(known) else None
    return {
        **_listed({"id_accuracy": accuracy}),
        **detected(graph.marked),
        "marks": {mark: detected(np.asarray(nodes)) for mark, nodes in graph.marks.items()},
    }


def detection_intervals(
    scores: Mapping[str, FloatArray | None], positive_N: NDArray[np.bool_], prefix: str = ""
) -> Intervals:
    """Return intervals of AUC-ROC and AUC-PR; {} for too few nodes of one kind.

    >>> detection_intervals({"epistemic": np.array([0.1, 0.9])}, np.array([False, True]))
    {}
    """
    positives = int(positive_N.sum())
    if not enough_of_both(positives, len(positive_N) - positives):
        return {}
    intervals: dict[str, Interval | None] = {}
    for name, score in scores.items():
        if score is not None:
            intervals[f"{prefix}auroc_{name}"] = auroc_interval(positive_N, score)
            value = aupr(positive_N, score)
            intervals[f"{prefix}aupr_{name}"] = aupr_interval(value, positives)
    return _listed(intervals)


def _listed(intervals: Mapping[str, Interval | None]) -> Intervals:
    return {name: list(ends) for name, ends in intervals.items() if ends is not None}
