"""Predictions for nodes that joined after training: the model is frozen, the graph not rebuilt.

Shapes: M new nodes, B new nodes of a block, T nodes that a block's rows touch, C classes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.diffusion.growth import GrownTransition, NewNodes, SparseRows
from gpn_scale.diffusion.power_iteration import config_steps
from gpn_scale.diffusion.push import push_rows
from gpn_scale.errors import ConfigError, GraphError
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference.encoder_inputs import required_features
from gpn_scale.inference.opinion_values import OpinionValues, with_labels
from gpn_scale.inference.trained_model import TrainedModel, TrainedOpinion
from gpn_scale.nn.model import GPN, GPNOutput
from gpn_scale.nn.posterior import DirichletPosterior
from gpn_scale.nn.sparse import SparseMatrix

EvidenceOf = Callable[[NodeIds], Tensor]
"""Maps sorted node ids to their feature evidence, one row of C classes each."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewNodesPrediction:
    """Prediction of new nodes, and how far alpha_0 may be from the exact one.

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

    New nodes are not exchangeable with the validation nodes, so a small p-value says that a node
    looks strange beside them, and no rate of false alarms is promised."""
    alpha_0_lower: NDArray[np.float64]
    """Lower bound on the exact alpha_0, up to the round-off of the dtype, (M,)."""
    alpha_0_upper: NDArray[np.float64]
    """Upper bound on the exact alpha_0, (M,)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphFacts:
    """Facts about the graph that the caller has already, so that they need not be computed.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.diffusion.growth import in_weights
    >>> GraphFacts(in_weights=in_weights(build_graph([0, 1], [1, 2]))).in_weights
    array([1., 2., 1.])
    """

    evidence: EvidenceOf | None = None
    """Feature evidence of existing nodes; None to compute that of the touched nodes."""
    largest_evidence: float | None = None
    """Bound on any existing node's evidence, summed over classes, for `alpha_0_upper`.

    None for the bound that the model's clamp sets, which is far too large unless the tolerance is
    0."""
    surprise: NDArray[np.float32] | None = None
    """Surprise of existing nodes, `Prediction.surprise` of the whole graph; None to leave the
    surroundings out of p-values."""
    in_weights: NDArray[np.float64] | None = None
    """Result of `growth.in_weights(graph)`; None to compute it where it is needed."""


@torch.no_grad()
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

    Work grows with the nodes that the rows touch, not with the graph: only `sym` reads all edges
    of a weighted or directed graph once, unless `facts.in_weights` is given. Memory grows with
    `block_size` times the touched nodes; GPN+ keeps the rows of all new nodes, and a few bytes for
    every node of the graph.

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
        facts: What the caller knows of `graph` already.
        block_size: Number of new nodes whose rows are computed together.

    Raises:
        GraphError: the nodes or their features do not fit the graph or the model.
        ConfigError: `tolerance`, `facts.largest_evidence` or `block_size` is out of range.
    """
    facts = facts or GraphFacts()
    _check(trained, graph, new, facts, block_size)
    diffusion, network = trained.diffusion, trained.network
    transition = GrownTransition(
        graph, new, diffusion.normalisation, diffusion.self_loops, facts.in_weights
    )
    own_MC = trained.evidence(new.features, np.arange(new.num_new))
    existing_evidence = facts.evidence or partial(trained.evidence, required_features(graph))
    aggregated_MC, dropped_M = torch.empty_like(own_MC), np.zeros(new.num_new)
    opinion = None if trained.opinion is None else _NewOpinion(trained.opinion, graph, new)
    for start in range(0, new.num_new, block_size):
        block = slice(start, start + block_size)
        pushed = push_rows(
            transition,
            new.ids[block],
            teleport=diffusion.teleport,
            steps=config_steps(diffusion),
            tolerance=tolerance,
        )
        dropped_M[block] = pushed.dropped
        aggregated_MC[block] = _aggregated(pushed.weight, existing_evidence, own_MC, new)
        if opinion is not None:
            opinion.diffuse(pushed.weight)
    output = GPNOutput(
        with_network=DirichletPosterior.from_evidence(aggregated_MC),
        without_network=DirichletPosterior.from_evidence(own_MC),
    )
    lower_M = output.with_network.alpha_0_N.double().cpu().numpy()
    bound = _evidence_bound(network, own_MC, facts.largest_evidence)
    # Avoid 0 times a bound that may be infinite.
    lost_M = np.multiply(dropped_M, bound, out=np.zeros(new.num_new), where=dropped_M > 0)
    prediction = Prediction.from_output(output)
    if opinion is not None:
        prediction = opinion.finished(prediction, trained, facts.surprise)
    return NewNodesPrediction(
        prediction=prediction,
        alpha_0_lower=lower_M,
        alpha_0_upper=lower_M + lost_M,
    )


class _NewOpinion:
    """The opinion and label evidence of new nodes, block by block; new nodes have no labels."""

    def __init__(self, opinion: TrainedOpinion, graph: Graph, new: NewNodes) -> None:
        self.values, self.new = OpinionValues.of_graph(opinion, graph), new
        own_MC = opinion.values_of(new.features, np.arange(new.num_new))
        self.own_MS = with_labels(own_MC, np.zeros(new.num_new))
        self.diffused: list[Tensor] = [self.own_MS[:0]]
        self.rows: list[SparseRows] = []

    def diffuse(self, rows: SparseRows) -> None:
        """Add the diffused values of the next block's nodes."""
        self.rows.append(rows)
        self.diffused.append(_aggregated(rows, self.values.of, self.own_MS, self.new))

    def finished(
        self,
        prediction: Prediction,
        trained: TrainedModel,
        surprise: NDArray[np.float32] | None,
    ) -> Prediction:
        """Return the prediction by feature evidence with opinion, label evidence and p-values.

        Args:
            prediction: Prediction of the new nodes by feature evidence.
            trained: The model.
            surprise: Surprise of the existing nodes, (N,); None to leave surroundings out.
        """
        explained = self.values.explained(prediction, torch.cat(self.diffused))
        average = None if surprise is None else partial(self._averaged, surprise)
        return trained.finished(explained, average)

    def _averaged(
        self, existing: NDArray[np.float32], own_M1: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Return the mean surprise over the new nodes' rows, (M, 1)."""
        everyone = np.append(existing, own_M1[:, 0])
        sums = [(rows @ everyone) / rows.sum(1) for rows in self.rows]
        return np.concatenate([np.empty(0), *sums])[:, None].astype(np.float32)


def _aggregated(
    rows: SparseRows, existing_evidence: EvidenceOf, own_MC: Tensor, new: NewNodes
) -> Tensor:
    """Return rows (B, N + M) times the evidence of the nodes they touch, (B, C)."""
    touched_T, column = np.unique(rows.indices, return_inverse=True)
    existing, joined = np.split(touched_T, [np.searchsorted(touched_T, new.num_existing)])
    existing_TC = existing_evidence(existing.astype(np.int64)).to(own_MC)
    joined_TC = own_MC[
        torch.from_numpy(joined.astype(np.int64) - new.num_existing).to(own_MC.device)
    ]
    matrix = SparseMatrix(
        torch.from_numpy(rows.indptr).to(own_MC.device),
        torch.from_numpy(column).to(own_MC.device),
        torch.from_numpy(rows.data).to(own_MC),
        len(touched_T),
    )
    return matrix.multiply(torch.cat([existing_TC, joined_TC]))


def _evidence_bound(network: GPN, own_MC: Tensor, largest_existing: float | None) -> float:
    """Return a bound on every node's total evidence; new nodes may exceed all existing ones."""
    if largest_existing is None:
        with np.errstate(over="ignore"):
            return float(network.flow.num_classes * np.exp(network.evidence.log_limit))
    return float(max([largest_existing, *own_MC.double().sum(1).tolist()]))


def _check(
    trained: TrainedModel, graph: Graph, new: NewNodes, facts: GraphFacts, block_size: int
) -> None:
    if new.features.shape[1] != trained.num_features:
        raise GraphError(
            f"the new nodes of graph {graph.name!r} have {new.features.shape[1]} feature columns, "
            f"the model was trained on {trained.num_features}",
            arguments=("features",),
        )
    if facts.largest_evidence is not None and not facts.largest_evidence >= 0.0:
        raise ConfigError(
            f"largest_evidence is {facts.largest_evidence!r}, expected at least 0: pass the "
            "largest sum of evidence over classes, or None",
            arguments=("largest_evidence",),
        )
    if block_size < 1:
        raise ConfigError(
            f"block_size is {block_size!r}, expected at least 1", arguments=("block_size",)
        )
