"""Sources of the evidence of nodes: which other nodes supplied it.

Shapes: B explained nodes, N nodes, M contributors of each.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from gpn_scale.config import DiffusionConfig
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.diffusion.exact import exact_diffusion
from gpn_scale.errors import StoreError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.inference.all_nodes import node_evidence
from gpn_scale.inference.evidence import CHUNK_ROWS
from gpn_scale.inference.some_nodes import Contributors
from gpn_scale.ppr.store import PPRStore

MOST_NODES, MOST_EDGES = 2_000_000, 20_000_000
"""Size of a graph up to which rows are computed; above it they are read from a store."""


@dataclass(frozen=True, slots=True, eq=False)
class EvidenceSummary:
    """Feature evidence of all nodes, reduced."""

    total: NDArray[np.float64]
    """Sum over classes, (N,)."""
    leading_class: NDArray[np.int64]
    """Class with the most evidence, (N,)."""


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """Contributors to the evidence of some nodes; evidence is in pseudo-counts."""

    node: NodeIds
    """Explained nodes, (B,)."""
    contributors: Contributors
    """The nodes that supplied most."""
    evidence: NDArray[np.float64]
    """Total evidence with network, (B,)."""
    own_evidence: NDArray[np.float64]
    """Total evidence from own features alone, (B,)."""
    source: Literal["exact", "stored"]
    """Whether the weights are those of the exact diffusion or of stored rows."""


def explain(
    classifier: GPNClassifier,
    graph: Graph,
    nodes: NodeIds,
    *,
    rows: PPRStore | None = None,
    count: int = 6,
    evidence: EvidenceSummary | None = None,
) -> Explanation:
    """Return the `count` nodes that supplied most of the evidence of each of `nodes`.

    Args:
        classifier: The trained model.
        graph: The graph of `nodes`.
        nodes: Ids of the nodes to explain.
        rows: Stored rows, for graphs that are too large to compute them.
        count: Number of contributors.
        evidence: Feature evidence of all nodes; computed here if it is not given.

    Raises:
        StoreError: the graph is too large and no rows were given, or a node has no row.
    """
    if graph.num_nodes <= MOST_NODES and graph.num_edges <= MOST_EDGES:
        return _exact(classifier, graph, nodes, count, evidence)
    if rows is None:
        raise StoreError(
            f"the graph has {graph.num_nodes:,} nodes and {graph.num_edges:,} edges; above "
            f"{MOST_NODES:,} nodes or {MOST_EDGES:,} edges, explanations are read from stored "
            "rows, and none were given: pass rows=",
            arguments=("store",),
        )
    return _stored(classifier, graph, nodes, rows, count)


def diffusion_rows(graph: Graph, diffusion: DiffusionConfig, nodes: NodeIds) -> NDArray[np.float64]:
    """Return the rows of `nodes` of the diffusion matrix, (B, N).

    A row is a column of the transposed matrix: the transposed iteration computes it from an
    indicator vector. Memory is 24 bytes x N x B, and about 70 bytes per edge for both matrices.
    """
    power = exact_diffusion(graph, diffusion, torch.device("cpu"), torch.float64)
    start_NB = torch.zeros(graph.num_nodes, len(nodes), dtype=torch.float64)
    start_NB[torch.from_numpy(nodes), torch.arange(len(nodes))] = 1.0
    row_NB = power.iterate(start_NB, power.transition.transposed())
    return np.asarray(row_NB.numpy().T)


def evidence_summary(classifier: GPNClassifier, graph: Graph) -> EvidenceSummary:
    """Return the feature evidence of all nodes; alpha_0 - C would lose small values."""
    total_N, leading_N = np.empty(graph.num_nodes), np.empty(graph.num_nodes, np.int64)
    for start, stop, evidence_NC in node_evidence(
        classifier.model,
        graph,
        classifier.config.data.feature_scaling,
        device=classifier.device,
        dtype=classifier.dtype,
        chunk=CHUNK_ROWS,
    ):
        total_N[start:stop] = evidence_NC.double().sum(1).cpu().numpy()
        leading_N[start:stop] = evidence_NC.argmax(1).cpu().numpy()
    return EvidenceSummary(total_N, leading_N)


def _exact(
    classifier: GPNClassifier,
    graph: Graph,
    nodes: NodeIds,
    count: int,
    evidence: EvidenceSummary | None,
) -> Explanation:
    evidence = evidence or evidence_summary(classifier, graph)
    weight_BN = diffusion_rows(graph, classifier.config.diffusion, nodes)
    given_BN = weight_BN * evidence.total
    evidence_B = given_BN.sum(1)
    top_BM = np.argsort(-given_BN, axis=1, kind="stable")[:, :count].astype(np.int64)
    given_BM = np.take_along_axis(given_BN, top_BM, axis=1)
    contributors = Contributors(
        node=np.where(given_BM > 0.0, top_BM, -1),
        share=given_BM / evidence_B[:, None],
        weight=np.take_along_axis(weight_BN, top_BM, axis=1),
        leading_class=evidence.leading_class[top_BM],
        tail_share=np.zeros(len(nodes)),
    )
    return Explanation(nodes, contributors, evidence_B, evidence.total[nodes], "exact")


def _stored(
    classifier: GPNClassifier, graph: Graph, nodes: NodeIds, rows: PPRStore, count: int
) -> Explanation:
    predicted = classifier.predict(graph, nodes=nodes, store=rows, explain=count)
    assert predicted.contributors is not None
    prior = predicted.prediction.probabilities.shape[1]
    return Explanation(
        nodes,
        predicted.contributors,
        predicted.prediction.alpha_0.astype(np.float64) - prior,
        predicted.prediction.alpha_0_no_network.astype(np.float64) - prior,
        "stored",
    )
