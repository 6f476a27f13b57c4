"""Prediction of some nodes from their stored rows, with a certified interval for alpha_0.

Shapes: B requested nodes, N support nodes, E stored entries, P clusters, C classes,
M contributors.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpn_scale.data.graph import Features, Graph, NodeIds
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference.cluster_summary import ClusterSummary
from gpn_scale.inference.contributors import Contributors, contributors_of
from gpn_scale.inference.encoder_inputs import required_features
from gpn_scale.inference.opinion_values import OpinionValues
from gpn_scale.inference.trained_model import AbstractTrainedPart, TrainedModel
from gpn_scale.nn.aggregation import ClusterEvidence, TopKAggregation
from gpn_scale.nn.model import GPNOutput
from gpn_scale.nn.posterior import DirichletPosterior
from gpn_scale.nn.sparse import SparseMatrix
from gpn_scale.ppr.batches import BatchSource, PPRBatch, assemble_batch, check_roots
from gpn_scale.ppr.rows import Rows
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.tails import AbstractTail

ROOTS_AT_A_TIME = 1 << 14
"""Number of roots whose joint support is encoded at once; times k C, it bounds the memory."""
_ROUND_OFF = 1e-5
"""Fraction by which intervals are widened, because weights and evidence are float32 sums."""


_Arrays = TypeVar("_Arrays", Prediction, Contributors)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodesPrediction:
    """Prediction of some nodes from their stored rows.

    >>> p, alpha_0 = np.array([[0.75, 0.25]]), np.array([8.0])
    >>> prediction = Prediction(
    ...     probabilities=p, probabilities_no_network=p, alpha_0=alpha_0, alpha_0_no_network=alpha_0
    ... )
    >>> bounds = {"alpha_0_lower": alpha_0 - 1.0, "alpha_0_upper": alpha_0 + 2.0}
    >>> node = np.array([4])
    >>> predicted = NodesPrediction(node=node, prediction=prediction, **bounds, contributors=None)
    >>> predicted.alpha_0_upper - predicted.alpha_0_lower
    array([3.])
    """

    node: NodeIds
    """Ids of the nodes in the requested order, (B,)."""
    prediction: Prediction
    """Prediction of these nodes, in this order."""
    alpha_0_lower: NDArray[np.float64]
    """Lower bound on the exact alpha_0: prior and kept evidence, minus possible movement, (B,)."""
    alpha_0_upper: NDArray[np.float64]
    """Upper bound: adds the cut mass times the largest evidence of each cluster, (B,)."""
    contributors: Contributors | None
    """The nodes that supply most evidence; None unless requested."""


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """Some of the requested nodes with the evidence of their support."""

    batch: PPRBatch
    evidence_NC: Tensor
    aggregated_BC: Tensor
    opinion_BS: Tensor | None = None
    """Diffused logits and label evidence of GPN+; None for a GPN."""

    @property
    def total_N(self) -> NDArray[np.float64]:
        """Evidence of every support node, summed over classes."""
        return np.asarray(self.evidence_NC.double().sum(1).cpu().numpy())

    def prediction(self) -> Prediction:
        """Return the prediction of the block's nodes."""
        root_local_B = torch.from_numpy(self.batch.root_local).to(self.evidence_NC.device)
        output = GPNOutput(
            with_network=DirichletPosterior.from_evidence(self.aggregated_BC),
            without_network=DirichletPosterior.from_evidence(self.evidence_NC[root_local_B]),
        )
        return Prediction.from_output(output)


def batch_aggregation(
    batch: PPRBatch, cluster_evidence: Callable[[Tensor], Tensor], trained: AbstractTrainedPart
) -> TopKAggregation:
    """Return the aggregation of a batch; `cluster_evidence` as in `TopKAggregation`.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale import GPNClassifier, load_graph
    >>> from gpn_scale.config import PPRConfig, RunConfig, TrainConfig
    >>> from gpn_scale.ppr.tails import TruncatedTail
    >>> from precompute.build import build_store
    >>> graph = load_graph("synthetic:nodes=100,classes=2")
    >>> trained = GPNClassifier(RunConfig(train=TrainConfig(epochs=5))).fit(graph).trained
    >>> tail = TruncatedTail(graph, trained.diffusion)
    >>> with TemporaryDirectory() as folder:
    ...     config = PPRConfig(diffusion=trained.diffusion, k=8, clusters=0)
    ...     plan = build_store(graph, config, folder)
    ...     source = BatchSource(store=PPRStore.open(folder), tail=tail)
    ...     batch = assemble_batch(np.array([3, 5]), source)
    >>> aggregate = batch_aggregation(batch, lambda evidence_NC: evidence_NC[:0], trained)
    >>> aggregate(torch.ones(len(batch.support_global), 2)).shape
    torch.Size([2, 2])
    """
    device, dtype = trained.device, trained.dtype
    rows = SparseMatrix(
        torch.from_numpy(batch.rows.row_ptr).to(device),
        torch.from_numpy(batch.rows.ids).to(device),
        torch.from_numpy(batch.rows.weights).to(device, dtype),
        len(batch.support_global),
    )
    cluster_weight_BP = torch.from_numpy(batch.cluster_weight).to(device, dtype)
    return TopKAggregation(rows, cluster_weight_BP, cluster_evidence)


def row_values(
    part: AbstractTrainedPart,
    features: Features,
    nodes: NodeIds,
    *,
    store: PPRStore,
    tail: AbstractTail,
    cluster_PC: Tensor,
) -> Tensor:
    """Return the diffused values (evidence or logits) of `nodes` from their rows, (B, C).

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale import GPNClassifier
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> from gpn_scale.ppr.example import EXAMPLE_DIFFUSION, example_graph, example_store
    >>> from gpn_scale.ppr.tails import TruncatedTail
    >>> graph, nodes = example_graph(), np.array([0, 2])
    >>> config = RunConfig(diffusion=EXAMPLE_DIFFUSION, train=TrainConfig(epochs=1))
    >>> trained = GPNClassifier(config, device="cpu").fit(graph).trained
    >>> with TemporaryDirectory() as folder:
    ...     rows = {"store": example_store(folder), "cluster_PC": torch.empty(0, 2)}
    ...     rows["tail"] = TruncatedTail(graph, EXAMPLE_DIFFUSION)
    ...     evidence_BC = row_values(trained, graph.features, nodes, **rows)
    ...     logits_BC = row_values(trained.opinion, graph.features, nodes, **rows)
    >>> evidence_BC.shape, logits_BC.shape
    (torch.Size([2, 2]), torch.Size([2, 2]))

    Args:
        part: The model, for its feature evidence, or its opinion.
        features: Feature rows of all nodes.
        nodes: Nodes with rows in the store, (B,).
        store: The rows.
        tail: Estimate of what the rows have cut.
        cluster_PC: Mean values of the tail's clusters.
    """
    values = []
    for batch in _batches(nodes, BatchSource(store=store, tail=tail)):
        aggregate = batch_aggregation(batch, lambda _: cluster_PC, part)
        values.append(aggregate(part.values_of(features, batch.support_global)))
    return torch.cat(values)


def predict_nodes(
    trained: TrainedModel,
    graph: Graph,
    nodes: NodeIds,
    *,
    store: PPRStore,
    tail: AbstractTail,
    clusters: ClusterEvidence,
    opinion_clusters: Tensor | None = None,
    surprise: NDArray[np.float32] | None = None,
    explain: int = 0,
) -> NodesPrediction:
    """Return the prediction of `nodes`, the interval of alpha_0, and their contributors.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale import GPNClassifier, load_graph
    >>> from gpn_scale.config import PPRConfig, RunConfig, TrainConfig
    >>> from gpn_scale.inference.all_nodes import predict_all
    >>> from gpn_scale.inference.cluster_summary import summarise_model
    >>> from gpn_scale.ppr.tails import TruncatedTail
    >>> from precompute.build import build_store
    >>> graph, nodes = load_graph("synthetic:nodes=100,classes=2"), np.array([3, 5])
    >>> trained = GPNClassifier(RunConfig(train=TrainConfig(epochs=5))).fit(graph).trained
    >>> tail = TruncatedTail(graph, trained.diffusion)
    >>> summarise_model(trained, graph, tail)
    >>> parts = {"tail": tail, "clusters": trained.network.clusters}
    >>> parts["opinion_clusters"] = trained.opinion.network.cluster_PS
    >>> with TemporaryDirectory() as folder:
    ...     config = PPRConfig(diffusion=trained.diffusion, k=8, clusters=0)
    ...     plan = build_store(graph, config, folder)
    ...     store = PPRStore.open(folder)
    ...     predicted = predict_nodes(trained, graph, nodes, store=store, **parts)
    >>> exact = predict_all(trained, graph).alpha_0[nodes]
    >>> (predicted.alpha_0_lower <= exact) & (exact <= predicted.alpha_0_upper)
    array([ True,  True])

    Args:
        trained: The model.
        graph: Graph with features.
        nodes: Nodes with rows in the store, in any order, (B,).
        store: The rows.
        tail: Estimate of what the rows have cut.
        clusters: Exact means and largest evidences of the tail's clusters.
        opinion_clusters: Exact means of the clusters' logits and training nodes, (P, S), of GPN+;
            None to leave out the opinion, so that probabilities are those of feature evidence.
        surprise: `Prediction.surprise` of all nodes, of GPN+; None to leave the surroundings out
            of p-values.
        explain: Number M of contributors to name per node; 0 for none.

    Raises:
        StoreError: a node has no row.
    """
    check_roots(nodes, store)
    predictions, lower, upper, contributors = [], [], [], []
    largest_P = clusters.largest_total_P.double().cpu().numpy()
    features, num_classes = required_features(graph), trained.num_classes
    opinion = None
    if trained.opinion is not None and opinion_clusters is not None:
        opinion = _OpinionSource(OpinionValues.of_graph(trained.opinion, graph), opinion_clusters)
    for block in _blocks(trained, features, nodes, store, tail, clusters.mean_PC, opinion):
        prediction = block.prediction()
        if opinion is not None and block.opinion_BS is not None:
            prediction = opinion.values.explained(prediction, block.opinion_BS)
        predictions.append(prediction)
        # The tail may have changed weights, but the certificate applies to the rows as stored.
        rows = store.rows(block.batch.root_global)
        entry_local_E = np.searchsorted(block.batch.support_global, rows.ids)
        supplied_E = rows.weights * block.total_N[entry_local_E]
        kept_B = np.bincount(rows.row_of_entry(), supplied_E, minlength=rows.num_rows)
        moved_B = store.moved(block.batch.root_global).astype(np.float64)
        lost_B = np.minimum(moved_B * _largest_in_rows(rows, block.total_N[entry_local_E]), kept_B)
        lower.append((num_classes + kept_B - lost_B) * (1.0 - _ROUND_OFF))
        bound_B = _tail_bound(rows, largest_P) + moved_B * largest_P.max()
        upper.append((num_classes + kept_B + bound_B) * (1.0 + _ROUND_OFF))
        if explain:
            total_B = block.aggregated_BC.double().sum(1).cpu().numpy()
            leading_E = block.evidence_NC.argmax(1).cpu().numpy()[entry_local_E]
            contributors.append(contributors_of(rows, supplied_E, total_B, leading_E, explain))
    average = None
    if surprise is not None:
        average = partial(_surrounding_surprise, trained, nodes, store, tail, surprise)
    return NodesPrediction(
        node=nodes,
        prediction=trained.finished(_joined(predictions), average),
        alpha_0_lower=np.concatenate(lower),
        alpha_0_upper=np.concatenate(upper),
        contributors=_joined(contributors) if explain else None,
    )


def _surrounding_surprise(
    trained: TrainedModel,
    nodes: NodeIds,
    store: PPRStore,
    tail: AbstractTail,
    surprise: NDArray[np.float32],
    own_B1: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Return the mean surprise over the nodes' rows and estimated tails, (B, 1)."""
    del own_B1  # the rows contain the nodes themselves
    value_N2 = torch.from_numpy(np.stack([surprise, np.ones_like(surprise)], 1)).to(trained.device)
    means = ClusterSummary(tail, 2, trained.device)
    means.observe(0, len(surprise), value_N2)
    mean_P2 = means.result(trained.dtype).mean_PC
    averages = []
    for batch in _batches(nodes, BatchSource(store=store, tail=tail)):
        aggregate = batch_aggregation(batch, lambda _: mean_P2, trained)
        support = torch.from_numpy(batch.support_global).to(trained.device)
        sum_B2 = aggregate(value_N2[support].to(trained.dtype))
        averages.append((sum_B2[:, :1] / sum_B2[:, 1:]).float().cpu().numpy())
    return np.concatenate(averages)


@dataclass(frozen=True, slots=True, eq=False)
class _OpinionSource:
    """Inputs of the sums that give the opinion and label evidence of nodes."""

    values: OpinionValues
    cluster_PS: Tensor
    """Mean values of the tail's clusters."""

    def diffused(self, batch: PPRBatch, aggregate: TopKAggregation) -> Tensor:
        """Return diffused logits and label evidence of the batch's roots, (B, S)."""
        rows = TopKAggregation(
            aggregate.rows, aggregate.cluster_weight_BP, lambda _: self.cluster_PS
        )
        return rows(self.values.of(batch.support_global))


def _batches(nodes: NodeIds, source: BatchSource) -> Iterator[PPRBatch]:
    for start in range(0, max(len(nodes), 1), ROOTS_AT_A_TIME):  # one empty batch for no nodes
        yield assemble_batch(nodes[start : start + ROOTS_AT_A_TIME], source)


def _blocks(
    trained: TrainedModel,
    features: Features,
    nodes: NodeIds,
    store: PPRStore,
    tail: AbstractTail,
    cluster_PC: Tensor,
    opinion: _OpinionSource | None = None,
) -> Iterator[_Block]:
    for batch in _batches(nodes, BatchSource(store=store, tail=tail)):
        evidence_NC = trained.evidence(features, batch.support_global)
        aggregate = batch_aggregation(batch, lambda _: cluster_PC, trained)
        opinion_BS = None if opinion is None else opinion.diffused(batch, aggregate)
        yield _Block(batch, evidence_NC, aggregate(evidence_NC), opinion_BS)


def _tail_bound(rows: Rows, largest_P: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return an upper bound on the evidence that each row has cut, (B,)."""
    by_cluster = rows.cut_mass.shape[1] == len(largest_P)
    cut_BP = rows.cut_mass if by_cluster else rows.missing_mass[:, None]
    bound_B: NDArray[np.float64] = cut_BP.astype(np.float64) @ (
        largest_P if by_cluster else largest_P.max()[None]
    )
    return bound_B


def _largest_in_rows(rows: Rows, total_E: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the largest evidence of a kept node of each row, (B,); 0 for empty rows."""
    largest_B = np.zeros(rows.num_rows)
    np.maximum.at(largest_B, rows.row_of_entry(), total_E)
    return largest_B


def _joined(blocks: list[_Arrays]) -> _Arrays:
    """Return a value object whose arrays are those of the blocks, concatenated."""
    names = [f.name for f in fields(blocks[0]) if getattr(blocks[0], f.name) is not None]
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(block, name) for block in blocks]) for name in names
    }
    return type(blocks[0])(**joined)
