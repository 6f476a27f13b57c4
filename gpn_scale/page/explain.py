"""Whose evidence made the model sure, or unsure, of a node.

Shapes: B explained nodes, N nodes, M contributors of each.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from gpn_scale.config import DiffusionConfig
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.diffusion.exact import exact_diffusion
from gpn_scale.errors import StoreError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference.all_nodes import node_evidence
from gpn_scale.inference.encoder_inputs import required_features
from gpn_scale.inference.evidence import CHUNK_ROWS, FeatureEvidence, evaluating
from gpn_scale.inference.some_nodes import Contributors
from gpn_scale.page.facts import ContributorFacts, Explained, ExplainedNode
from gpn_scale.ppr.store import PPRStore

NODES = 4
"""Explained at each end."""
CONTRIBUTORS = 6
MOST_NODES, MOST_EDGES = 2_000_000, 20_000_000
"""Of a graph whose rows are computed anew; of larger ones they are read from the store."""


@dataclass(frozen=True, slots=True, eq=False)
class Sources:
    """Contributors of some nodes, and their evidence in pseudo-counts."""

    contributors: Contributors
    evidence_B: NDArray[np.float64]
    own_evidence_B: NDArray[np.float64]


def explain_extremes(
    classifier: GPNClassifier,
    graph: Graph,
    prediction: Prediction,
    candidates: NodeIds,
    known: NodeIds,
    store: PPRStore | None,
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
    """
    if classifier.config.diffusion.of != "evidence":
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
        found, source = _sources(classifier, graph, nodes, store)
    except StoreError as error:
        return Explained(absent=f"Where evidence comes from is not shown: {error}.")
    rows = prediction.rows(nodes)
    told = tuple(_explained(graph, rows, found, place, node) for place, node in enumerate(nodes))
    typical = prediction.alpha_0[known] - np.float32(prediction.probabilities.shape[1])
    return Explained(
        certain=told[: len(certain)],
        uncertain=told[len(certain) :],
        typical_evidence=float(np.median(typical)) if len(known) else 0.0,
        source=source,
    )


def _shown(ordered: NodeIds, graph: Graph) -> NodeIds:
    """The first nodes, with at most one of those without neighbours."""
    lonely = graph.indptr[ordered + 1] == graph.indptr[ordered]
    return np.asarray(ordered[~lonely | (np.cumsum(lonely) == 1)][:NODES])


def _sources(
    classifier: GPNClassifier, graph: Graph, nodes: NodeIds, store: PPRStore | None
) -> tuple[Sources, str]:
    """By the way that the graph's size allows, and a sentence about it.

    Raises:
        StoreError: that takes rows which there are not.
    """
    if graph.num_nodes <= MOST_NODES and graph.num_edges <= MOST_EDGES:
        found = exact_sources(classifier, graph, nodes, CONTRIBUTORS)
        return found, "Weights are those of the exact diffusion."
    if store is None:
        raise StoreError(
            f"the graph has {graph.num_nodes:,} nodes and {graph.num_edges:,} edges, above "
            f"{MOST_NODES:,} or {MOST_EDGES:,} weights are read from stored rows, and there are "
            "none"
        )
    found = stored_sources(classifier, graph, nodes, store, CONTRIBUTORS)
    return found, "Weights are those of stored rows; shares count the estimate of what these cut."


def diffusion_rows(graph: Graph, diffusion: DiffusionConfig, nodes: NodeIds) -> NDArray[np.float64]:
    """Rows of `nodes` of the diffusion matrix, (B, N): how much of every node's evidence they get.

    A row is a column of the transposed matrix, and the transposed iteration makes it from an
    indicator; memory is 24 bytes x N x B, and about 70 bytes an edge for both matrices.
    """
    power = exact_diffusion(graph, diffusion, torch.device("cpu"), torch.float64)
    start_NB = torch.zeros(graph.num_nodes, len(nodes), dtype=torch.float64)
    start_NB[torch.from_numpy(nodes), torch.arange(len(nodes))] = 1.0
    row_NB = power.iterate(start_NB, power.transition.transposed())
    return np.asarray(row_NB.numpy().T)


def exact_sources(classifier: GPNClassifier, graph: Graph, nodes: NodeIds, count: int) -> Sources:
    """The `count` nodes that supply most to each of `nodes`, by their exact rows."""
    weight_BN = diffusion_rows(graph, classifier.config.diffusion, nodes)
    total_N = _total_evidence(classifier, graph)
    given_BN = weight_BN * total_N
    evidence_B = given_BN.sum(1)
    top_BM = np.argsort(-given_BN, axis=1, kind="stable")[:, :count].astype(np.int64)
    given_BM = np.take_along_axis(given_BN, top_BM, axis=1)
    return Sources(
        contributors=Contributors(
            node=np.where(given_BM > 0.0, top_BM, -1),
            share=given_BM / evidence_B[:, None],
            weight=np.take_along_axis(weight_BN, top_BM, axis=1),
            leading_class=_leading_class(classifier, graph, top_BM.ravel()).reshape(top_BM.shape),
            tail_share=np.zeros(len(nodes)),
        ),
        evidence_B=evidence_B,
        own_evidence_B=total_N[nodes],
    )


def stored_sources(
    classifier: GPNClassifier, graph: Graph, nodes: NodeIds, store: PPRStore, count: int
) -> Sources:
    """The same from stored rows.

    Raises:
        StoreError: a node has no row.
    """
    found = classifier.predict(graph, nodes=nodes, store=store, explain=count)
    assert found.contributors is not None
    prior = found.prediction.probabilities.shape[1]
    return Sources(
        contributors=found.contributors,
        evidence_B=found.prediction.alpha_0.astype(np.float64) - prior,
        own_evidence_B=found.prediction.alpha_0_no_network.astype(np.float64) - prior,
    )


def _total_evidence(classifier: GPNClassifier, graph: Graph) -> NDArray[np.float64]:
    """Feature evidence of every node, summed over classes; alpha_0 - C would lose small ones."""
    total_N = np.empty(graph.num_nodes)
    for start, stop, evidence_NC in node_evidence(
        classifier.model,
        graph,
        classifier.config.data.feature_scaling,
        device=classifier.device,
        dtype=classifier.dtype,
        chunk=CHUNK_ROWS,
    ):
        total_N[start:stop] = evidence_NC.double().sum(1).cpu().numpy()
    return total_N


def _leading_class(classifier: GPNClassifier, graph: Graph, nodes: NodeIds) -> NDArray[np.int64]:
    """The class that each node's own features have most evidence for."""
    evidence_of = FeatureEvidence(
        classifier.model,
        required_features(graph),
        classifier.config.data.feature_scaling,
        classifier.device,
        classifier.dtype,
    )
    with torch.no_grad(), evaluating(classifier.model):
        return np.asarray(evidence_of(nodes).argmax(1).cpu().numpy())


def _explained(
    graph: Graph, rows: Prediction, found: Sources, place: int, node: int
) -> ExplainedNode:
    predicted = int(rows.probabilities[place].argmax())
    neighbours = graph.indices[graph.indptr[node] : graph.indptr[node + 1]]
    by = found.contributors
    return ExplainedNode(
        name=node_name(graph, node),
        marks=tuple(name for name, ids in graph.marks.items() if node in ids),
        label=int(graph.labels[node]),
        predicted=predicted,
        probability=float(rows.probabilities[place, predicted]),
        evidence=float(found.evidence_B[place]),
        own_evidence=float(found.own_evidence_B[place]),
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
