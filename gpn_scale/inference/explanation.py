"""Explanations: the nodes that supply the evidence which makes a model sure or unsure of a node.

Shapes: B explained nodes, N nodes, M contributors of each.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.data.node_positions import node_positions
from gpn_scale.diffusion.exact_rows import diffusion_rows
from gpn_scale.errors import ConfigError, StoreError
from gpn_scale.inference.contributors import Contributors
from gpn_scale.inference.evidence import EvidenceSummary, summarise_evidence
from gpn_scale.inference.some_nodes import NodesPrediction
from gpn_scale.inference.trained_model import TrainedModel

MAX_EXACT_NODES, MAX_EXACT_EDGES = 2_000_000, 20_000_000
"""Largest size of a graph for which complete rows are computed; others need stored rows."""

_SHOWN_NODES = 10
"""Number of nodes that the text of an explanation shows."""

RowSource = Literal["exact", "stored"]
"""Source of the weights: complete rows of the diffusion, or stored rows, which are cut."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Explanation:
    """The contributors of some nodes and the evidence of these nodes, in pseudo-counts.

    >>> from gpn_scale import GPNClassifier, load_graph
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> graph = load_graph("synthetic:nodes=100,classes=2")
    >>> trained = GPNClassifier(RunConfig(train=TrainConfig(epochs=5))).fit(graph).trained
    >>> explanation = explain_nodes(trained, graph, nodes=[3, 5], count=4)
    >>> explanation.contributors.node.shape, explanation.source
    ((2, 4), 'exact')
    >>> list(explanation.to_frame())
    ['node', 'contributor', 'share', 'weight', 'leading_class']
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
    """Source of the weights; shares of `stored` rows include the estimate of the cut tail."""
    node_names: NDArray[np.str_] | None = None
    """The user's own ids of all nodes of the graph, (N,); None if they are 0..N-1."""
    class_names: NDArray[np.str_] | None = None
    """Names of the classes, (C,); None if they have none."""

    def __repr__(self) -> str:
        shown = [self._sentence(row) for row in range(min(len(self.node), _SHOWN_NODES))]
        more = len(self.node) - len(shown)
        return "\n".join([*shown, f"and {more} more nodes"] if more else shown) or "no nodes"

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row per contributor, by node and decreasing share."""
        contributors = self.contributors
        present = contributors.node >= 0
        columns: dict[str, Any] = {"node": np.repeat(self.node, present.sum(1))}
        if self.node_names is not None:
            columns["node_name"] = self.node_names[columns["node"]]
        columns["contributor"] = contributors.node[present]
        if self.node_names is not None:
            columns["contributor_name"] = self.node_names[columns["contributor"]]
        columns["share"] = contributors.share[present]
        columns["weight"] = contributors.weight[present]
        columns["leading_class"] = contributors.leading_class[present]
        if self.class_names is not None:
            columns["leading_class_name"] = self.class_names[columns["leading_class"]]
        return pa.table(columns).to_pandas()

    def _sentence(self, row: int) -> str:
        """Return a sentence that names the suppliers of one node's evidence."""
        node, contributors = int(self.node[row]), self.contributors
        parts = []
        for near, share, label in zip(
            contributors.node[row],
            contributors.share[row],
            contributors.leading_class[row],
            strict=True,
        ):
            if near >= 0:
                source = "itself" if near == node else self._name(near)
                parts.append(f"{share:.1%} from {source} ({self._class(label)})")
        if contributors.tail_share[row] > 0:
            parts.append(f"{contributors.tail_share[row]:.1%} from nodes that the row has cut")
        return (
            f"{self._name(node)} has {self.evidence[row]:.4g} pseudo-counts, "
            f"{self.own_evidence[row]:.4g} by its own features: {', '.join(parts)}"
        )

    def _name(self, node: int) -> str:
        return f"node {node}" if self.node_names is None else f"node {str(self.node_names[node])!r}"

    def _class(self, label: int) -> str:
        return f"class {label}" if self.class_names is None else str(self.class_names[label])


def is_small_enough(graph: Graph) -> bool:
    """Return whether complete rows of a graph are computed; larger graphs need stored rows.

    >>> from gpn_scale import load_graph
    >>> is_small_enough(load_graph("synthetic:nodes=100,classes=2"))
    True
    """
    return graph.num_nodes <= MAX_EXACT_NODES and graph.num_edges <= MAX_EXACT_EDGES


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
        nodes: A node, or several, by position or by name; see `node_positions`.
        count: Number M of contributors to name per node.
        evidence: Feature evidence of all nodes of the graph; None to compute it.
        predict_stored: Predicts nodes, with contributors, from stored rows; None without rows.

    Raises:
        GraphError: an id is not a node of the graph.
        ConfigError: `count` is below 1.
        StoreError: the graph is too large for complete rows, and no stored rows are given.
    """
    if count < 1:
        raise ConfigError(f"count is {count}, expected at least 1", arguments=("count",))
    ids = node_positions(graph, nodes)
    names: dict[str, Any] = {"node_names": graph.node_names, "class_names": graph.class_names}
    if is_small_enough(graph):
        summary = evidence or summarise_evidence(trained, graph)
        return replace(explain_exactly(trained, graph, ids, summary, count), **names)
    if predict_stored is None:
        raise StoreError(
            f"the graph has {graph.num_nodes:,} nodes and {graph.num_edges:,} edges; above "
            f"{MAX_EXACT_NODES:,} or {MAX_EXACT_EDGES:,} an explanation needs stored rows, and "
            "none were given",
            arguments=("rows",),
        )
    return replace(explain_stored(predict_stored(ids)), **names)


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
