"""Which nodes supply the evidence that makes a model sure, or unsure, of a node.

Shapes: B explained nodes, N nodes, M contributors of each.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpn_scale.data.graph import Graph, NodeIds, as_node_ids
from gpn_scale.diffusion.exact_rows import diffusion_rows
from gpn_scale.errors import ConfigError, GraphError, StoreError
from gpn_scale.inference.contributors import Contributors
from gpn_scale.inference.evidence import EvidenceSummary, summarise_evidence
from gpn_scale.inference.some_nodes import NodesPrediction
from gpn_scale.inference.trained_model import TrainedModel

MAX_EXACT_NODES, MAX_EXACT_EDGES = 2_000_000, 20_000_000
"""Size of a graph up to which complete rows are computed; larger graphs need stored rows."""

RowSource = Literal["exact", "stored"]
"""Where weights come from: complete rows of the diffusion, or stored rows that were cut."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Explanation:
    """The contributors of some nodes and the evidence of these nodes, in pseudo-counts.

    >>> from gpn_scale import GPNClassifier, load_graph
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> graph = load_graph("synthetic:nodes=100,classes=2")
    >>> trained = GPNClassifier(RunConfig(train=TrainConfig(epochs=5))).fit(graph).trained
    >>> explanation = explain_nodes(trained, graph, nodes=[3, 5], count=4)
    >>> explanation.contributors.node.shape, explanation.source
    ((2, 4), 'exact')
    """

    node: NodeIds
    """Ids of the explained nodes, (B,)."""
    contributors: Contributors
    """The nodes that supply most of each node's evidence, by decreasing share."""
    evidence: NDArray[np.float64]
    """Aggregated evidence, summed over classes, (B,)."""
    own_evidence: NDArray[np.float64]
    """Feature evidence of the nodes themselves, summed over classes, (B,)."""
    source: RowSource
    """Where the weights come from; shares of `stored` rows count the estimate of the cut tail."""


def explain_nodes(
    trained: TrainedModel,
    graph: Graph,
    nodes: ArrayLike,
    *,
    count: int,
    evidence: EvidenceSummary | None = None,
    predict_stored: Callable[[NodeIds], NodesPrediction] | None = None,
) -> Explanation:
    """Return an explanation of nodes by complete rows, or by stored rows if the graph is large.

    >>> from gpn_scale import GPNClassifier, load_graph
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> graph = load_graph("synthetic:nodes=100,classes=2")
    >>> trained = GPNClassifier(RunConfig(train=TrainConfig(epochs=5))).fit(graph).trained
    >>> alone = graph.marks["isolated"][:1]  # a node without edges explains itself
    >>> contributors = explain_nodes(trained, graph, alone, count=1).contributors
    >>> contributors.node[0] == alone, contributors.share.round(3)
    (array([ True]), array([[1.]]))

    Args:
        trained: The model, which must diffuse evidence and not its logarithm.
        graph: Graph with features.
        nodes: A node id, or several.
        count: Number M of contributors to name per node.
        evidence: Feature evidence of all nodes of the graph; None to compute it.
        predict_stored: Predicts nodes, with contributors, from stored rows; None without rows.

    Raises:
        GraphError: an id is not a node of the graph.
        ConfigError: `count` is below 1.
        StoreError: the graph is too large for complete rows, and there are no stored ones.
    """
    if count < 1:
        raise ConfigError(f"count is {count}, expected at least 1", arguments=("count",))
    ids = _checked_ids(graph, nodes)
    if graph.num_nodes <= MAX_EXACT_NODES and graph.num_edges <= MAX_EXACT_EDGES:
        summary = evidence or summarise_evidence(trained, graph)
        return explain_exactly(trained, graph, ids, summary, count)
    if predict_stored is None:
        raise StoreError(
            f"the graph has {graph.num_nodes:,} nodes and {graph.num_edges:,} edges; above "
            f"{MAX_EXACT_NODES:,} or {MAX_EXACT_EDGES:,} an explanation needs stored rows, and "
            "none were given",
            arguments=("rows",),
        )
    return explain_stored(predict_stored(ids))


def explain_exactly(
    trained: TrainedModel, graph: Graph, nodes: NodeIds, evidence: EvidenceSummary, count: int
) -> Explanation:
    """Return an explanation of `nodes` by their complete rows of the diffusion.

    >>> from gpn_scale import GPNClassifier, load_graph
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> graph = load_graph("synthetic:nodes=100,classes=2")
    >>> trained = GPNClassifier(RunConfig(train=TrainConfig(epochs=5))).fit(graph).trained
    >>> evidence = summarise_evidence(trained, graph)
    >>> explanation = explain_exactly(trained, graph, np.array([3, 5]), evidence, count=100)
    >>> explanation.contributors.share.sum(1).round(6)
    array([1., 1.])

    Args:
        trained: The model, which must diffuse evidence and not its logarithm.
        graph: The graph of the nodes.
        nodes: Node ids, (B,).
        evidence: Feature evidence of all nodes of the graph.
        count: Number M of contributors to name per node.
    """
    weight_BN = diffusion_rows(graph, trained.diffusion, nodes)
    supplied_BN = weight_BN * evidence.total
    evidence_B = supplied_BN.sum(1)
    top_BM = np.argsort(-supplied_BN, axis=1, kind="stable")[:, :count].astype(np.int64)
    supplied_BM = np.take_along_axis(supplied_BN, top_BM, axis=1)
    return Explanation(
        node=nodes,
        contributors=Contributors(
            node=np.where(supplied_BM > 0.0, top_BM, -1),
            share=supplied_BM / evidence_B[:, None],
            weight=np.take_along_axis(weight_BN, top_BM, axis=1),
            leading_class=evidence.leading_class[top_BM],
            tail_share=np.zeros(len(nodes)),
        ),
        evidence=evidence_B,
        own_evidence=evidence.total[nodes],
        source="exact",
    )


def explain_stored(predicted: NodesPrediction) -> Explanation:
    """Return the explanation in a prediction from stored rows, which must have contributors.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale import GPNClassifier, load_graph
    >>> from gpn_scale.config import PPRConfig, RunConfig, TrainConfig
    >>> from precompute.build import build_store
    >>> graph = load_graph("synthetic:nodes=100,classes=2")
    >>> classifier = GPNClassifier(RunConfig(train=TrainConfig(epochs=5))).fit(graph)
    >>> config = PPRConfig(diffusion=classifier.trained.diffusion, k=8, clusters=2)
    >>> with TemporaryDirectory() as folder:
    ...     plan = build_store(graph, config, folder)
    ...     predicted = classifier.predict_nodes(graph, [3, 5], folder, explain=4)
    >>> explanation = explain_stored(predicted)
    >>> explanation.contributors.node.shape, explanation.source
    ((2, 4), 'stored')
    """
    assert predicted.contributors is not None
    prior = predicted.prediction.probabilities.shape[1]
    return Explanation(
        node=predicted.node,
        contributors=predicted.contributors,
        evidence=predicted.prediction.alpha_0.astype(np.float64) - prior,
        own_evidence=predicted.prediction.alpha_0_no_network.astype(np.float64) - prior,
        source="stored",
    )


def _checked_ids(graph: Graph, nodes: ArrayLike) -> NodeIds:
    ids = as_node_ids(np.atleast_1d(np.asarray(nodes)), "nodes").astype(np.int64)
    wrong = ids[(ids < 0) | (ids >= graph.num_nodes)]
    if len(wrong):
        raise GraphError(
            f"nodes holds {wrong[0]}, expected ids in [0, {graph.num_nodes})", arguments=("nodes",)
        )
    return ids
