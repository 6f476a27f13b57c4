"""Reasons why a node is on a list, as text with the underlying figures.

Shapes: N nodes of the graph, B listed nodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.reasons import LITTLE_SUPPORT, NOTHING_UNUSUAL, SURE, USUAL_P, reasons

ISOLATED = "isolated"
NO_LABEL = "no label within reach"
STRANGE_SURROUNDINGS = "strange surroundings"
FOREIGN_FEATURES = "foreign features"


@dataclass(frozen=True, slots=True)
class NodeReason:
    """Reason why a node is listed.

    >>> NodeReason("torn between sea and land", "sea 48 %, land 43 %").text
    'torn between sea and land'
    """

    text: str
    detail: str
    """Text with the figures behind the reason; may be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsualValues:
    """Medians of the validation nodes, to compare a node with.

    >>> UsualValues(alpha_0=12.0, label_evidence=0.1).alpha_0
    12.0
    """

    alpha_0: float | None
    label_evidence: float | None

    @classmethod
    def of(cls, graph: Graph, prediction: Prediction) -> "UsualValues":
        """Return the medians over the validation nodes; None for what is missing."""
        val = np.empty(0, np.int64) if graph.split is None else graph.split.val
        labels_N = prediction.label_evidence
        return cls(
            alpha_0=float(np.median(prediction.alpha_0[val])) if len(val) else None,
            label_evidence=(
                float(np.median(labels_N[val])) if len(val) and labels_N is not None else None
            ),
        )


def is_isolated(graph: Graph, nodes: NodeIds) -> NDArray[np.bool_]:
    """Return whether each node has no edge in any direction, (B,).

    >>> from gpn_scale import build_graph
    >>> graph = build_graph([0], [1], num_nodes=3, directed=True)
    >>> is_isolated(graph, np.array([0, 1, 2]))
    array([False, False,  True])
    """
    alone = graph.indptr[nodes + 1] == graph.indptr[nodes]
    if graph.directed:
        alone &= ~np.isin(nodes, graph.indices)
    return np.asarray(alone)


def node_reasons(
    graph: Graph,
    nodes: NodeIds,
    prediction: Prediction,
    usual: UsualValues,
    class_names: Sequence[str],
) -> list[NodeReason]:
    """Return the reason why each node is listed: what lowers the trust in its prediction most.

    >>> from gpn_scale import build_graph
    >>> half = np.full((3, 2), 0.5, np.float32)
    >>> ones = np.ones(3, np.float32)
    >>> prediction = Prediction(
    ...     probabilities=half,
    ...     probabilities_no_network=half,
    ...     alpha_0=ones,
    ...     alpha_0_no_network=ones,
    ... )
    >>> graph, usual = build_graph([0], [1], num_nodes=3), UsualValues(alpha_0=9, label_evidence=1)
    >>> all_nodes = np.arange(3)
    >>> [r.text for r in node_reasons(graph, all_nodes, prediction, usual, ["sea", "land"])]
    ['torn between sea and land', 'torn between sea and land', 'isolated']

    Args:
        graph: The graph.
        nodes: Node ids, (B,).
        prediction: Prediction of these nodes in their order.
        usual: Values of the validation nodes.
        class_names: Names of the classes.
    """
    by_part = reasons(prediction, class_names)
    alone = is_isolated(graph, nodes)
    return [
        _reason(
            prediction.rows(slice(i, i + 1)),
            None if by_part is None else str(by_part[i]),
            bool(alone[i]),
            usual,
            class_names,
        )
        for i in range(len(nodes))
    ]


def _reason(
    one: Prediction, by_part: str | None, alone: bool, usual: UsualValues, names: Sequence[str]
) -> NodeReason:
    """Return the reason of a single node."""
    if alone:
        return NodeReason(ISOLATED, "it has no edges, so that only its own features count")
    labels = None if one.label_evidence is None else float(one.label_evidence[0])
    if labels is not None and labels <= 0.0:
        return NodeReason(NO_LABEL, "no training node is near enough to count")
    probability = float(one.probabilities[0].max())
    torn = _torn(one.probabilities[0], names)
    known, continued = 1.0, 1.0
    if one.p is not None:
        known, continued = float(one.p.known[0]), float(one.p.continued[0])
    if by_part is None or by_part == NOTHING_UNUSUAL:
        if known <= USUAL_P:
            return NodeReason(STRANGE_SURROUNDINGS, _evidence_text(one, usual))
        return torn if probability < SURE else NodeReason(NOTHING_UNUSUAL, torn.detail)
    by_opinion = by_part == LITTLE_SUPPORT or by_part.startswith("torn between")
    if by_opinion or probability < np.sqrt(continued):
        return torn if probability < SURE else NodeReason(LITTLE_SUPPORT, torn.detail)
    if by_part == "no label near":
        median = usual.label_evidence
        return NodeReason(by_part, _compared("label evidence", labels or 0.0, median))
    return NodeReason(by_part, _evidence_text(one, usual))


def _torn(probability_C: NDArray[np.float32], names: Sequence[str]) -> NodeReason:
    first, second = np.argsort(-probability_C, kind="stable")[:2]
    return NodeReason(
        f"torn between {names[first]} and {names[second]}",
        f"{names[first]} {probability_C[first]:.0%}, {names[second]} {probability_C[second]:.0%}",
    )


def _evidence_text(one: Prediction, usual: UsualValues) -> str:
    return _compared("alpha_0", float(one.alpha_0[0]), usual.alpha_0)


def _compared(name: str, value: float, median: float | None) -> str:
    text = f"{name} {value:.3g}"
    return text if median is None else f"{text}, usually {median:.3g}"
