"""Comparison of a model with the earlier model whose weights its training started from.

Both are measured on the same nodes: those that are in the same subset of both splits.

Shapes: N nodes.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from gpn_scale.data.graph import Graph, NodeIds, Split
from gpn_scale.evaluation.detection import detect_unknown, known_test_nodes
from gpn_scale.evaluation.metrics import accuracy, auroc, expected_calibration_error
from gpn_scale.evaluation.prediction import AbstractPrediction
from gpn_scale.evaluation.sample_sizes import LEAST_BINNED_NODES, enough_of_both

Quality = dict[str, dict[str, float]]
"""Metrics of the subsets `test`, `val` and `unknown` by name; too few nodes have none."""
_DETECTION = ("epistemic", "p_known")


def compared_graph(graph: Graph, earlier: Split, marked: NodeIds) -> Graph:
    """Return a later graph whose split and marks keep only nodes that were there before as well.

    >>> from gpn_scale import build_graph
    >>> split = Split(train=[0, 1], val=[], test=[2, 3])
    >>> graph = build_graph([], [], labels=[0, 1, 0, 1], split=split)
    >>> earlier = Split(train=[0], val=[1], test=[2])
    >>> compared_graph(graph, earlier, marked=np.array([], np.int64)).split.test.tolist()
    [2]

    Args:
        graph: The later graph, with its split.
        earlier: The split of the earlier one.
        marked: Nodes with a mark in the earlier one.
    """
    assert graph.split is not None
    marks = {name: np.intersect1d(ids, marked) for name, ids in graph.marks.items()}
    test = np.intersect1d(graph.split.test, earlier.test)
    split = Split(
        train=np.intersect1d(graph.split.train, earlier.train),
        val=np.intersect1d(graph.split.val, earlier.val),
        test=np.setdiff1d(test, np.union1d(graph.marked, marked)),
    )
    kept = {name: ids for name, ids in marks.items() if len(ids)}
    return replace(graph, split=split, marks=kept)


def quality(prediction: AbstractPrediction, graph: Graph) -> Quality:
    """Return accuracy, calibration error and areas under curves of a prediction.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.evaluation.scored_prediction import ScoredPrediction
    >>> split = Split(train=[0, 1], val=[], test=[2])
    >>> graph = build_graph([], [], labels=[0, 1, 0], split=split)
    >>> prediction = ScoredPrediction(model="GCN", probabilities=np.array([[0.9, 0.1]] * 3))
    >>> quality(prediction, graph)
    {'test': {'accuracy': 1.0}}

    Args:
        prediction: Prediction of the nodes of split and marks, at least.
        graph: Graph with labels and a split.
    """
    assert graph.split is not None
    measured: Quality = {}
    for name, nodes in {"test": known_test_nodes(graph), "val": graph.split.val}.items():
        if not len(nodes):
            continue
        chosen, label = prediction.rows(nodes), graph.labels[nodes]
        wrong = chosen.predicted_class != label
        metrics = {"accuracy": accuracy(chosen.probabilities, label)}
        if len(nodes) >= LEAST_BINNED_NODES:
            metrics["ece"] = expected_calibration_error(chosen.probabilities, label)
        if enough_of_both(int(wrong.sum()), int((~wrong).sum())):
            metrics["misclassification_auroc_aleatoric"] = auroc(wrong, chosen.aleatoric)
        measured[name] = metrics
    unknown = _unknown(prediction, graph)
    return measured | ({"unknown": unknown} if unknown else {})


def _unknown(prediction: AbstractPrediction, graph: Graph) -> dict[str, float]:
    detection = detect_unknown(prediction, graph, _DETECTION)
    if detection is None or not enough_of_both(len(graph.marked), detection.known_nodes):
        return {}
    metrics = {name: detection.together[name] for name in map("auroc_{}".format, _DETECTION)}
    return {name: value for name, value in metrics.items() if not math.isnan(value)}


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityChange:
    """Quality before and after, on the same nodes.

    >>> change = QualityChange(
    ...     run="runs/october",
    ...     model="4f",
    ...     nodes={"test": 40},
    ...     before={"test": {"accuracy": 0.8}},
    ...     after={"test": {"accuracy": 0.85}},
    ... )
    >>> change.rows()
    [('test', 'accuracy', 0.8, 0.85)]
    """

    run: str
    """The run that training started from."""
    model: str
    """Fingerprint of its model."""
    nodes: Mapping[str, int]
    """Number of compared nodes of each subset."""
    before: Quality
    """Metrics of the earlier run."""
    after: Quality
    """Metrics of the new run."""

    @property
    def sentence(self) -> str:
        """One sentence that explains the comparison."""
        if not self.nodes:
            return f"Training started from the weights of {self.run}, on another graph."
        counted = ", ".join(f"{count:,} {name}" for name, count in self.nodes.items() if count)
        return (
            f"Training started from the weights of {self.run}. The comparison covers nodes with "
            f"the same role in both graphs ({counted or 'none'}): before, that run on its graph; "
            "after, this run."
        )

    def rows(self) -> list[tuple[str, str, float, float]]:
        """Return subset, metric, and values before and after, of all metrics that both have."""
        return [
            (subset, name, value, self.after[subset][name])
            for subset, metrics in self.before.items()
            for name, value in metrics.items()
            if name in self.after.get(subset, {})
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, for JSON."""
        return asdict(self)


def compared_nodes(graph: Graph) -> dict[str, int]:
    """Return the number of nodes of each subset that `quality` measures.

    >>> from gpn_scale import build_graph
    >>> split = Split(train=[0], val=[], test=[1])
    >>> compared_nodes(build_graph([], [], labels=[0, 0], split=split))
    {'test': 1, 'val': 0, 'unknown': 0}
    """
    assert graph.split is not None
    return {
        "test": len(known_test_nodes(graph)),
        "val": len(graph.split.val),
        "unknown": len(graph.marked),
    }
