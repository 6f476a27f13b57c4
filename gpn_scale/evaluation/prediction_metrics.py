"""The metrics of a report: a prediction compared with the graph's labels, split and marks."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.evaluation.detection import detect_unknown, detection_metrics, known_test_nodes
from gpn_scale.evaluation.metrics import (
    accuracy,
    brier_score,
    expected_calibration_error,
    maximum_calibration_error,
    negative_log_likelihood,
)
from gpn_scale.evaluation.prediction import AbstractPrediction

Metrics = dict[str, float]
"""Numbers by name."""


def classification_metrics(prediction: AbstractPrediction, graph: Graph, nodes: NodeIds) -> Metrics:
    """Return accuracy and calibration on `nodes`, and how well scores detect the errors there.

    >>> import numpy as np
    >>> from gpn_scale.data.building import build_graph
    >>> from gpn_scale.evaluation.scored_prediction import ScoredPrediction
    >>> graph = build_graph([], [], labels=[0, 1])
    >>> prediction = ScoredPrediction(model="GCN", probabilities=np.array([[0.9, 0.1], [0.6, 0.4]]))
    >>> metrics = classification_metrics(prediction, graph, nodes=np.array([0, 1]))
    >>> metrics["accuracy"], metrics["misclassification_auroc_aleatoric"]
    (0.5, 1.0)
    """
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


def is_largest_class(graph: Graph, nodes: NodeIds) -> NDArray[np.bool_]:
    """Return whether the label of each of `nodes` is the most frequent one of the training nodes.

    The mean is the accuracy of a model that always predicts that class.

    >>> from gpn_scale.data.building import build_graph
    >>> from gpn_scale.data.graph import Split
    >>> split = Split(train=[0, 1, 2], val=[], test=[3, 4])
    >>> graph = build_graph([], [], labels=[0, 1, 1, 1, 0], split=split)
    >>> is_largest_class(graph, split.test).tolist()
    [True, False]
    """
    assert graph.split is not None
    largest = np.bincount(graph.labels[graph.split.train]).argmax()
    return np.asarray(graph.labels[nodes] == largest)


def out_of_distribution_metrics(prediction: AbstractPrediction, graph: Graph) -> dict[str, Any]:
    """Return how well each score separates unknown nodes from the known test nodes.

    Metrics are those of all unknown nodes together; `marks` holds the same for each mark alone.
    The result is {} for a graph without a split or without marks.

    >>> import numpy as np
    >>> from gpn_scale.data.building import build_graph
    >>> from gpn_scale.data.graph import Split
    >>> from gpn_scale.evaluation.scored_prediction import ScoredPrediction
    >>> split = Split(train=[0], val=[], test=[1])
    >>> graph = build_graph([], [], labels=[0, 0, -1], split=split, marks={"odd": [2]})
    >>> prediction = ScoredPrediction(
    ...     model="GCN", probabilities=np.array([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4]])
    ... )
    >>> metrics = out_of_distribution_metrics(prediction, graph)
    >>> metrics["id_nodes"], metrics["ood_nodes"], metrics["auroc_aleatoric"]
    (1, 1, 1.0)
    """
    detection = detect_unknown(prediction, graph)
    if detection is None:
        return {}
    known = known_test_nodes(graph)
    return {
        "id_accuracy": accuracy(prediction.probabilities[known], graph.labels[known]),
        "id_nodes": detection.known_nodes,
        **detection.together,
        "marks": {mark: dict(metrics) for mark, metrics in detection.marks.items()},
    }
