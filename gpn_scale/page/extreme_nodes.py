"""The nodes that the model is most and least certain about, and the sources of their evidence."""

import numpy as np

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.errors import StoreError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.detection import known_test_nodes
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference.evidence import EvidenceSummary
from gpn_scale.inference.explanation import Explanation
from gpn_scale.page.facts import ContributorFacts, ExplainedNode, ExtremeNodes
from gpn_scale.ppr.store import PPRStore

NODES = 4
"""Number of nodes shown at each end."""
CONTRIBUTORS = 6
"""Number of contributors shown for each node."""
_SOURCES = {
    "exact": "Weights are those of the exact diffusion.",
    "stored": "Weights are those of the stored rows; shares include the estimate of what the rows "
    "cut.",
}
_NOT_SHOWN = "The sources of evidence are not shown"


def explain_extremes(
    classifier: GPNClassifier,
    graph: Graph,
    prediction: Prediction,
    candidates: NodeIds,
    store: PPRStore | None,
    evidence: EvidenceSummary | None = None,
) -> ExtremeNodes:
    """Explain the nodes with the largest and the smallest alpha_0 among `candidates`.

    Args:
        classifier: The trained model.
        graph: The graph, with a split.
        prediction: Prediction of all nodes.
        candidates: Test and unknown nodes.
        store: Stored rows, for graphs that are too large to compute them.
        evidence: Feature evidence of all nodes; computed if it is not given.
    """
    if classifier.predicts_with.of != "evidence":
        return ExtremeNodes(
            absent=f"{_NOT_SHOWN}: this model averages logarithms of evidence, so that "
            "contributions do not add up to the evidence of a node."
        )
    certain, uncertain = extremes(graph, prediction, candidates)
    nodes = np.concatenate([certain, uncertain])
    try:
        explanation = classifier.explain(
            graph, nodes, rows=store, count=CONTRIBUTORS, evidence=evidence
        )
    except StoreError as error:
        return ExtremeNodes(absent=f"{_NOT_SHOWN}: {error}.")
    explained = explained_nodes(graph, prediction, explanation)
    return ExtremeNodes(
        certain=explained[: len(certain)],
        uncertain=explained[len(certain) :],
        median_evidence=_median_evidence(prediction, known_test_nodes(graph)),
        source=_SOURCES[explanation.source],
    )


def extremes(graph: Graph, prediction: Prediction, candidates: NodeIds) -> tuple[NodeIds, NodeIds]:
    """Return the candidates with the largest and with the smallest alpha_0, the extreme ones first.

    No node is at both ends. At most one node without neighbours is chosen at each end, since such a
    node has little to show.
    """
    ordered = candidates[np.argsort(-prediction.alpha_0[candidates], kind="stable")]
    half = len(ordered) // 2
    certain = _chosen(ordered[: len(ordered) - half], graph)
    return certain, _chosen(ordered[::-1][:half], graph)


def _chosen(ordered: NodeIds, graph: Graph) -> NodeIds:
    is_isolated = graph.indptr[ordered + 1] == graph.indptr[ordered]
    return np.asarray(ordered[~is_isolated | (np.cumsum(is_isolated) == 1)][:NODES])


def _median_evidence(prediction: Prediction, known: NodeIds) -> float:
    evidence = prediction.alpha_0[known] - np.float32(prediction.probabilities.shape[1])
    return float(np.median(evidence)) if len(known) else 0.0


def explained_nodes(
    graph: Graph, prediction: Prediction, explanation: Explanation
) -> tuple[ExplainedNode, ...]:
    """Return the facts of every node of the explanation, in its order."""
    return tuple(
        _explained_node(graph, prediction, explanation, position)
        for position in range(len(explanation.node))
    )


def _explained_node(
    graph: Graph, prediction: Prediction, explanation: Explanation, position: int
) -> ExplainedNode:
    node = int(explanation.node[position])
    predicted = int(prediction.probabilities[node].argmax())
    return ExplainedNode(
        name=node_name(graph, node),
        marks=tuple(name for name, ids in graph.marks.items() if node in ids),
        label=int(graph.labels[node]),
        predicted=predicted,
        probability=float(prediction.probabilities[node, predicted]),
        evidence=float(explanation.evidence[position]),
        own_evidence=float(explanation.own_evidence[position]),
        contributors=_contributors(graph, explanation, position),
    )


def _contributors(
    graph: Graph, explanation: Explanation, position: int
) -> tuple[ContributorFacts, ...]:
    node, contributors = int(explanation.node[position]), explanation.contributors
    neighbours = graph.indices[graph.indptr[node] : graph.indptr[node + 1]]
    return tuple(
        ContributorFacts(
            name=node_name(graph, int(contributor)),
            itself=bool(contributor == node),
            adjacent=bool((neighbours == contributor).any()),
            leading_class=int(contributors.leading_class[position, place]),
            weight=float(contributors.weight[position, place]),
            share=float(contributors.share[position, place]),
        )
        for place, contributor in enumerate(contributors.node[position])
        if contributor >= 0
    )


def node_name(graph: Graph, node: int) -> str:
    """Return the name of a node in the user's data, or its id if nodes have no names."""
    return str(node) if graph.node_names is None else str(graph.node_names[node])
