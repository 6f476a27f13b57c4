"""Metrics of how well uncertainty scores detect unknown nodes or wrong predictions.

Unknown nodes are those that a mark of the graph names: nodes of hidden classes, or nodes that a
dataset marks as unlike the rest. They are compared with the known test nodes.

Shapes: N nodes.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.evaluation.metrics import aupr, auroc
from gpn_scale.evaluation.prediction import AbstractPrediction, FloatArray
from gpn_scale.evaluation.scores import DETECTION_SCORES


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownDetection:
    """Metrics of how well scores separate the unknown nodes from the known test nodes.

    Each mapping holds `ood_nodes`, the number of unknown nodes, and `auroc_{score}` and
    `aupr_{score}` of every score.

    >>> metrics = {"ood_nodes": 4, "auroc_epistemic": 0.9, "aupr_epistemic": 0.8}
    >>> UnknownDetection(known_nodes=20, together=metrics, marks={"isolated": metrics}).known_nodes
    20
    """

    known_nodes: int
    """Number of test nodes without a mark."""
    together: Mapping[str, float]
    """Metrics with the nodes of all marks as positives."""
    marks: Mapping[str, Mapping[str, float]]
    """Metrics with the nodes of one mark as positives, by the mark's name."""


def detect_unknown(
    prediction: AbstractPrediction, graph: Graph, scores: Iterable[str] = tuple(DETECTION_SCORES)
) -> UnknownDetection | None:
    """Return how well each of `scores` separates unknown nodes from the known test nodes.

    The result is None for a graph without a split or without marks.

    >>> from gpn_scale.data.building import build_graph
    >>> from gpn_scale.data.graph import Split
    >>> from gpn_scale.evaluation.scored_prediction import ScoredPrediction
    >>> split = Split(train=[0, 1], val=[], test=[2, 3])
    >>> graph = build_graph([], [], labels=[0, 1, 0, 1], split=split, marks={"odd": [3]})
    >>> prediction = ScoredPrediction(
    ...     model="GCN",
    ...     probabilities=np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.5, 0.5]]),
    ... )
    >>> detect_unknown(prediction, graph, ["aleatoric"]).together
    {'ood_nodes': 1, 'auroc_aleatoric': 1.0, 'aupr_aleatoric': 1.0}
    """
    if graph.split is None or not graph.marks:
        return None
    names = tuple(scores)

    def detected(unknown: NodeIds) -> dict[str, float]:
        nodes, is_unknown = known_and_unknown(graph, unknown)
        values = prediction.scores(nodes, names)
        return {"ood_nodes": len(unknown), **detection_metrics(values, is_unknown)}

    return UnknownDetection(
        known_nodes=len(known_test_nodes(graph)),
        together=detected(graph.marked),
        marks={mark: detected(np.asarray(nodes)) for mark, nodes in graph.marks.items()},
    )


def known_test_nodes(graph: Graph) -> NodeIds:
    """Return the test nodes without a mark.

    >>> from gpn_scale.data.building import build_graph
    >>> from gpn_scale.data.graph import Split
    >>> split = Split(train=[0, 1], val=[], test=[2, 3])
    >>> graph = build_graph([], [], labels=[0, 1, 0, 1], split=split, marks={"odd": [3]})
    >>> known_test_nodes(graph).tolist()
    [2]
    """
    assert graph.split is not None
    return np.setdiff1d(graph.split.test, graph.marked)


def known_and_unknown(
    graph: Graph, unknown: NodeIds | None = None
) -> tuple[NodeIds, NDArray[np.bool_]]:
    """Return the known test nodes followed by the unknown nodes, and a mask of the latter, (N,).

    >>> from gpn_scale.data.building import build_graph
    >>> from gpn_scale.data.graph import Split
    >>> split = Split(train=[0, 1], val=[], test=[2, 3])
    >>> graph = build_graph([], [], labels=[0, 1, 0, 1], split=split, marks={"odd": [3]})
    >>> nodes, is_unknown = known_and_unknown(graph)
    >>> nodes.tolist(), is_unknown.tolist()
    ([2, 3], [False, True])

    Args:
        graph: A graph with a split.
        unknown: The unknown nodes; all nodes with a mark by default.
    """
    known = known_test_nodes(graph)
    nodes = np.concatenate([known, graph.marked if unknown is None else unknown])
    return nodes, np.arange(len(nodes)) >= len(known)


def detection_metrics(
    scores: Mapping[str, FloatArray | None], positive_N: NDArray[np.bool_], prefix: str = ""
) -> dict[str, float]:
    """Return AUC-ROC and AUC-PR of every score at detecting the positive nodes.

    A score that is None, because the model does not have it, gets NaN.

    >>> detection_metrics({"epistemic": np.array([0.1, 0.9])}, np.array([False, True]))
    {'auroc_epistemic': 1.0, 'aupr_epistemic': 1.0}
    """
    metrics = {}
    for name, score in scores.items():
        metrics[f"{prefix}auroc_{name}"] = math.nan if score is None else auroc(positive_N, score)
        metrics[f"{prefix}aupr_{name}"] = math.nan if score is None else aupr(positive_N, score)
    return metrics
