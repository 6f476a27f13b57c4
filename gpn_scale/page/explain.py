"""The most and the least certain nodes of a prediction, and whose evidence made them so."""

import numpy as np

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.errors import StoreError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference.evidence import EvidenceSummary
from gpn_scale.inference.explanation import Explanation
from gpn_scale.page.facts import ContributorFacts, Explained, ExplainedNode
from gpn_scale.ppr.store import PPRStore

NODES = 4
"""Explained at each end."""
CONTRIBUTORS = 6
_SENTENCES = {
    "exact": "Weights are those of the exact diffusion.",
    "stored": "Weights are those of stored rows; shares count the estimate of what these cut.",
}


def explain_extremes(
    classifier: GPNClassifier,
    graph: Graph,
    prediction: Prediction,
    candidates: NodeIds,
    known: NodeIds,
    store: PPRStore | None,
    evidence: EvidenceSummary | None = None,
) -> Explained:
    """The nodes of largest and of smallest alpha_0 among `candidates`, and whose evidence it is.

    Of nodes without neighbours at most one is shown at each end: there is little to see.

    Args:
        classifier: Trained.
        graph: That of the prediction.
        prediction: Of all nodes.
        candidates: Test and marked nodes.
        known: Test nodes without a mark.
        store: Rows, for graphs that are too large to compute them anew.
        evidence: Feature evidence of all nodes; None to compute it.
    """
    if classifier.predicts_with.of != "evidence":
        return Explained(
            absent="Where evidence comes from is not shown: this model averages logarithms, which "
            "have no shares."
        )
    ordered = candidates[np.argsort(-prediction.alpha_0[candidates], kind="stable")]
    half = len(ordered) // 2
    certain = _shown(ordered[: len(ordered) - half], graph)
    uncertain = _shown(ordered[::-1][:half], graph)
    nodes = np.concatenate([certain, uncertain])
    try:
        explanation = classifier.explain(
            graph, nodes, rows=store, count=CONTRIBUTORS, evidence=evidence
        )
    except StoreError as error:
        return Explained(absent=f"Where evidence comes from is not shown: {error}.")
    rows = prediction.rows(nodes)
    facts = tuple(
        _explained(graph, rows, explanation, place, node) for place, node in enumerate(nodes)
    )
    typical = prediction.alpha_0[known] - np.float32(prediction.probabilities.shape[1])
    return Explained(
        certain=facts[: len(certain)],
        uncertain=facts[len(certain) :],
        typical_evidence=float(np.median(typical)) if len(known) else 0.0,
        source=_SENTENCES[explanation.source],
    )


def _shown(ordered: NodeIds, graph: Graph) -> NodeIds:
    """The first nodes, with at most one of those without neighbours."""
    lonely = graph.indptr[ordered + 1] == graph.indptr[ordered]
    return np.asarray(ordered[~lonely | (np.cumsum(lonely) == 1)][:NODES])


def _explained(
    graph: Graph, rows: Prediction, explanation: Explanation, place: int, node: int
) -> ExplainedNode:
    predicted = int(rows.probabilities[place].argmax())
    neighbours = graph.indices[graph.indptr[node] : graph.indptr[node + 1]]
    by = explanation.contributors
    return ExplainedNode(
        name=node_name(graph, node),
        marks=tuple(name for name, ids in graph.marks.items() if node in ids),
        label=int(graph.labels[node]),
        predicted=predicted,
        probability=float(rows.probabilities[place, predicted]),
        evidence=float(explanation.evidence[place]),
        own_evidence=float(explanation.own_evidence[place]),
        contributors=tuple(
            ContributorFacts(
                name=node_name(graph, int(by.node[place, rank])),
                itself=bool(by.node[place, rank] == node),
                adjacent=bool((neighbours == by.node[place, rank]).any()),
                speaks_for=int(by.leading_class[place, rank]),
                weight=float(by.weight[place, rank]),
                share=float(by.share[place, rank]),
            )
            for rank in range(by.node.shape[1])
            if by.node[place, rank] >= 0
        ),
    )


def node_name(graph: Graph, node: int) -> str:
    """The user's own name of a node, or its number."""
    return str(node) if graph.node_names is None else str(graph.node_names[node])
