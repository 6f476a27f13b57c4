"""Predictions of nodes that joined after training, without changing the model or the graph.

Shapes: M own nodes, B own nodes of a block, N existing nodes, C classes, W diffused columns.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpn_scale.data.graph import Features, Graph, NodeIds
from gpn_scale.diffusion.edge_patch import grown
from gpn_scale.diffusion.growth import NewNodes
from gpn_scale.diffusion.patched_transition import GraphTransition, PatchedTransition
from gpn_scale.diffusion.power_iteration import config_steps
from gpn_scale.diffusion.push import PushedRow, push_row
from gpn_scale.errors import ConfigError, GraphError
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference.node_values import (
    AbstractNodeValues,
    EncodedValues,
    OwnValues,
    prediction_of,
)
from gpn_scale.inference.trained_model import TrainedModel


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewNodesPrediction:
    """Prediction of new nodes, with bounds on their exact alpha_0.

    >>> from gpn_scale import GPNClassifier, load_graph
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> from gpn_scale.diffusion.growth import new_nodes
    >>> graph = load_graph("synthetic:nodes=100,classes=2")
    >>> trained = GPNClassifier(RunConfig(train=TrainConfig(epochs=5))).fit(graph).trained
    >>> new = new_nodes(graph, graph.features[:1], [[0, 1]])  # one node, tied to nodes 0 and 1
    >>> predicted = predict_new(trained, graph, new, tolerance=0.0)
    >>> predicted.alpha_0_lower == predicted.alpha_0_upper  # nothing was left out
    array([ True])
    """

    prediction: Prediction
    """Prediction from the kept part of the rows.

    New nodes are not exchangeable with the validation nodes, so a small p-value only means that a
    node looks strange compared with them; it does not bound the rate of false alarms."""
    alpha_0_lower: NDArray[np.float64]
    """Lower bound on the exact alpha_0, up to the round-off of the dtype, (M,)."""
    alpha_0_upper: NDArray[np.float64]
    """Upper bound on the exact alpha_0, (M,)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphFacts:
    """Facts about the graph that the caller already knows, so that they are not recomputed.

    >>> from gpn_scale import build_graph
    >>> path = build_graph([0, 1], [1, 2])
    >>> GraphFacts(transition=GraphTransition(path, "rw", True)).transition.degree_N.tolist()
    [1, 2, 1]
    """

    values: AbstractNodeValues | None = None
    """Diffused columns of existing nodes; None to compute those of the touched nodes."""
    largest_evidence: float | None = None
    """Bound on any existing node's evidence, summed over classes, for `alpha_0_upper`.

    None to take it from `values`, or else the bound set by the model's clamp, which is far too
    large unless the tolerance is 0."""
    surprise: NDArray[np.float32] | None = None
    """Surprise of existing nodes, `Prediction.surprise` of the whole graph; None to leave the
    surroundings out of p-values."""
    transition: GraphTransition | None = None
    """The transition matrix of the graph; None to compute it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OwnNodes:
    """Nodes to predict whose features are given: new nodes, or changed existing ones.

    >>> OwnNodes(ids=np.array([7]), features=np.ones((1, 2))).is_training is None
    True
    """

    ids: NodeIds
    """Sorted ids: of new nodes, N to N + M - 1, or of existing ones, (M,)."""
    features: Features
    """Their feature rows, (M, F)."""
    is_training: NDArray[np.bool_] | None = None
    """Whether each of them is a training node, (M,); None if none is."""


def predict_new(
    trained: TrainedModel,
    graph: Graph,
    new: NewNodes,
    *,
    tolerance: float = 1e-6,
    facts: GraphFacts | None = None,
    block_size: int = 64,
) -> NewNodesPrediction:
    """Return the prediction of new nodes by diffusion on the grown graph.

    If all `facts` are given, work grows with the nodes that the rows touch, not with the graph.
    Otherwise the weights of all nodes are computed first, and the touched nodes are encoded.

    >>> from gpn_scale.config import DiffusionConfig, RunConfig
    >>> from gpn_scale.data.building import build_graph
    >>> from gpn_scale.diffusion.growth import new_nodes
    >>> from gpn_scale.nn.model import GPN
    >>> path = build_graph([0, 1], [1, 2], features=[[0.0], [1.0], [2.0]])
    >>> prior, source = torch.tensor([0.5, 0.5]), torch.Generator().manual_seed(1)
    >>> network = GPN(RunConfig(), num_features=1, class_prior_C=prior, generator=source)
    >>> cpu = torch.device("cpu")
    >>> trained = TrainedModel(network, "none", DiffusionConfig(), cpu, torch.float32)
    >>> joined = new_nodes(path, [[1.0], [3.0]], [[0, 2], [3]])
    >>> predict_new(trained, path, joined).prediction.probabilities.shape
    (2, 2)

    Args:
        trained: The model.
        graph: Graph of the existing nodes.
        new: Nodes from `new_nodes(graph, ...)`.
        tolerance: Amounts of mass below this are not pushed on; 0 is exact.
        facts: What the caller already knows about `graph`.
        block_size: Number of new nodes whose rows are in memory together.

    Raises:
        GraphError: the nodes or their features do not fit the graph or the model.
        ConfigError: `tolerance`, `facts.largest_evidence` or `block_size` is out of range.
    """
    facts = facts or GraphFacts()
    if new.num_existing != graph.num_nodes:
        raise GraphError(
            f"graph {graph.name!r} has {graph.num_nodes} nodes, but the new nodes were created for "
            f"a graph of {new.num_existing}: create them with new_nodes(graph, ...)"
        )
    if new.features.shape[1] != trained.num_features:
        raise GraphError(
            f"the new nodes of graph {graph.name!r} have {new.features.shape[1]} feature columns, "
            f"but the model was trained on {trained.num_features}",
            arguments=("features",),
        )
    diffusion = trained.diffusion
    base = facts.transition
    if base is None:
        base = GraphTransition(graph, diffusion.normalisation, diffusion.self_loops)
    return predict_own(
        facts.values or EncodedValues(trained, graph),
        PatchedTransition(base, grown(new)),
        OwnNodes(ids=new.ids, features=new.features),
        tolerance=tolerance,
        largest_evidence=facts.largest_evidence,
        surprise=facts.surprise,
        block_size=block_size,
    )


@torch.no_grad()
def predict_own(
    values: AbstractNodeValues,
    transition: PatchedTransition,
    own: OwnNodes,
    *,
    tolerance: float,
    largest_evidence: float | None = None,
    surprise: NDArray[np.float32] | None = None,
    block_size: int = 64,
) -> NewNodesPrediction:
    """Return the prediction of nodes whose features are given, on a graph with a patch.

    >>> from gpn_scale import GPNClassifier
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> from gpn_scale.diffusion.edge_patch import rewired
    >>> from gpn_scale.ppr.example import example_graph
    >>> graph, config = example_graph(), RunConfig(train=TrainConfig(epochs=1))
    >>> trained = GPNClassifier(config, device="cpu").fit(graph).trained
    >>> same = PatchedTransition(GraphTransition(graph, "sym", True), rewired(graph, 2))
    >>> own = OwnNodes(ids=np.array([2]), features=graph.features[2:])
    >>> predicted = predict_own(EncodedValues(trained, graph), same, own, tolerance=0.0)
    >>> predicted.alpha_0_lower.shape
    (1,)

    Args:
        values: Diffused columns of existing nodes.
        transition: The patched graph.
        own: Nodes to predict.
        tolerance: Amounts of mass below this are not pushed on; 0 is exact.
        largest_evidence: Bound on any existing node's evidence; None for that of `values`.
        surprise: Surprise of existing nodes, (N,); None to leave the surroundings out of p-values.
        block_size: Number of nodes whose rows are in memory together.

    Raises:
        ConfigError: `tolerance`, `largest_evidence` or `block_size` is out of range.
    """
    _check(largest_evidence, block_size)
    trained, num_own = values.trained, len(own.ids)
    own_values = OwnValues.of(trained, own.features, np.arange(num_own), own.is_training)
    sums = _RowSums(values, own, own_values, surprise)
    for start in range(0, num_own, block_size):
        rows = [
            push_row(
                transition,
                int(root),
                teleport=trained.diffusion.teleport,
                steps=config_steps(trained.diffusion),
                tolerance=tolerance,
            )
            for root in own.ids[start : start + block_size]
        ]
        sums.add(rows)
    diffused_MW, dropped_M = torch.cat(sums.diffused), np.array(sums.dropped)
    prediction = prediction_of(trained, own_values, diffused_MW, has_labels=values.has_labels)
    lower_M = _alpha_0(trained, diffused_MW)
    largest = values.largest_evidence if largest_evidence is None else largest_evidence
    bound = _evidence_bound(trained, own_values.evidence_BC, largest)
    # Avoid 0 times a bound that may be infinite.
    lost_M = np.multiply(dropped_M, bound, out=np.zeros(num_own), where=dropped_M > 0)
    return NewNodesPrediction(
        prediction=trained.finished(prediction, None if surprise is None else sums.averaged),
        alpha_0_lower=lower_M,
        alpha_0_upper=lower_M + lost_M,
    )


class _RowSums:
    """Sums over the rows of own nodes, block by block, so that no row is kept."""

    def __init__(
        self,
        values: AbstractNodeValues,
        own: OwnNodes,
        own_values: OwnValues,
        surprise: NDArray[np.float32] | None,
    ) -> None:
        self.values, self.own_ids, self.own_MW = values, own.ids, own_values.columns_BW
        self.surprise, self._num_existing = surprise, int(values.features.shape[0])
        self.diffused: list[Tensor] = [self.own_MW[:0]]
        self.dropped: list[float] = []
        self._own_weights: list[NDArray[np.float64]] = []
        """Weights of the own nodes in each row."""
        self._others: list[float] = []
        """Weighted surprise of the other nodes of each row."""
        self._weight: list[float] = []
        """Sum of each row."""

    def add(self, rows: list[PushedRow]) -> None:
        """Add the sums of the next rows."""
        own_BM = np.stack([row.of(self.own_ids) for row in rows])
        others = [row.without(self.own_ids, self._num_existing) for row in rows]
        from_own_BW = torch.from_numpy(own_BM).to(self.own_MW) @ self.own_MW
        self.diffused.append(self.values.product(others) + from_own_BW)
        self.dropped += [row.dropped for row in rows]
        if self.surprise is not None:
            self._own_weights += list(own_BM)
            self._others += [row.sum_of(self.surprise) for row in others]
            self._weight += [float(row.weight.sum()) for row in rows]

    def averaged(self, own_M1: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the mean surprise over the rows, (M, 1), from that of the own nodes."""
        from_own = [weights @ own_M1[:, 0] for weights in self._own_weights]
        total_M = np.array(self._others) + np.array(from_own)
        mean_M = total_M / np.array(self._weight)
        return np.asarray(mean_M[:, None].astype(np.float32))


def _alpha_0(trained: TrainedModel, diffused_MW: Tensor) -> NDArray[np.float64]:
    """Return alpha_0 of nodes, (M,), from their diffused columns."""
    if trained.opinion is None:
        alpha_0_M = (1.0 + diffused_MW).sum(1)
    else:
        alpha_0_M = trained.num_classes + diffused_MW[:, -1]
    return np.asarray(alpha_0_M.double().cpu().numpy())


def _evidence_bound(trained: TrainedModel, own_MC: Tensor, largest_existing: float | None) -> float:
    """Return a bound on every node's total evidence; own nodes may exceed all existing ones."""
    network = trained.network
    if largest_existing is None:
        with np.errstate(over="ignore"):
            return float(network.flow.num_classes * np.exp(network.evidence.log_limit))
    return float(max([largest_existing, *own_MC.double().sum(1).tolist()]))


def _check(largest_evidence: float | None, block_size: int) -> None:
    if largest_evidence is not None and not largest_evidence >= 0.0:
        raise ConfigError(
            f"largest_evidence is {largest_evidence!r}, expected at least 0: pass the largest sum "
            "of evidence over classes, or None",
            arguments=("largest_evidence",),
        )
    if block_size < 1:
        raise ConfigError(
            f"block_size is {block_size!r}, expected at least 1", arguments=("block_size",)
        )
