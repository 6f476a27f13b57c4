"""Prediction of some nodes from their stored rows, with a certified interval for alpha_0.

Shapes: B requested nodes, N support nodes, E stored entries, P clusters, C classes,
M contributors.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpn_scale.data.graph import Features, Graph, NodeIds
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference.encoder_inputs import required_features
from gpn_scale.inference.trained_model import TrainedModel
from gpn_scale.nn.aggregation import ClusterEvidence, TopKAggregation
from gpn_scale.nn.model import GPNOutput
from gpn_scale.nn.posterior import DirichletPosterior
from gpn_scale.nn.sparse import SparseMatrix
from gpn_scale.ppr.batches import BatchSource, PPRBatch, assemble_batch, check_roots
from gpn_scale.ppr.rows import Rows
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.tails import AbstractTail

ROOTS_AT_A_TIME = 1 << 14
"""Roots whose joint support is encoded once; memory is bounded by this times k times C numbers."""
_ROUND_OFF = 1e-5
"""Intervals are widened by this fraction, because weights and evidence are float32 sums."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contributors:
    """The nodes that supply most of each node's evidence, by decreasing share."""

    node: NodeIds
    """Node ids, (B, M); -1 where a row has fewer."""
    share: NDArray[np.float64]
    """Fraction of the node's aggregated evidence, the estimated tail included; (B, M)."""
    weight: NDArray[np.float64]
    """Diffusion weight of the contributor in the row, (B, M)."""
    leading_class: NDArray[np.int64]
    """Class for which the contributor's features give most evidence, (B, M); -1 if missing."""
    tail_share: NDArray[np.float64]
    """Fraction that comes from the estimate of the cut tail, not from kept neighbours; (B,)."""


_Arrays = TypeVar("_Arrays", Prediction, Contributors)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodesPrediction:
    """Prediction of some nodes from their stored rows."""

    node: NodeIds
    """Ids of the nodes in the requested order, (B,)."""
    prediction: Prediction
    """Prediction of these nodes, in this order."""
    alpha_0_lower: NDArray[np.float64]
    """Lower bound on the exact alpha_0: prior plus kept evidence, (B,)."""
    alpha_0_upper: NDArray[np.float64]
    """Upper bound: adds the cut mass times the largest evidence of each cluster, (B,)."""
    contributors: Contributors | None
    """The nodes that supply most evidence, if they were requested."""


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """Some of the requested nodes with the evidence of their support."""

    batch: PPRBatch
    evidence_NC: Tensor
    aggregated_BC: Tensor

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
    batch: PPRBatch, cluster_evidence: Callable[[Tensor], Tensor], trained: TrainedModel
) -> TopKAggregation:
    """Return the aggregation of a batch; `cluster_evidence` as in `TopKAggregation`."""
    device, dtype = trained.device, trained.dtype
    rows = SparseMatrix(
        torch.from_numpy(batch.rows.row_ptr).to(device),
        torch.from_numpy(batch.rows.ids).to(device),
        torch.from_numpy(batch.rows.weights).to(device, dtype),
        len(batch.support_global),
    )
    cluster_weight_BP = torch.from_numpy(batch.cluster_weight).to(device, dtype)
    return TopKAggregation(rows, cluster_weight_BP, cluster_evidence)


def row_posteriors(
    trained: TrainedModel,
    features: Features,
    nodes: NodeIds,
    *,
    store: PPRStore,
    tail: AbstractTail,
    cluster_PC: Tensor,
) -> DirichletPosterior:
    """Return the posteriors of `nodes` with the network's influence, from their rows.

    Args:
        trained: The model.
        features: Feature rows of all nodes.
        nodes: Nodes with rows in the store, (B,).
        store: The rows.
        tail: Estimate of what the rows have cut.
        cluster_PC: Mean evidence of the tail's clusters.
    """
    blocks = _blocks(trained, features, nodes, store, tail, cluster_PC)
    return DirichletPosterior.from_evidence(torch.cat([block.aggregated_BC for block in blocks]))


def predict_nodes(
    trained: TrainedModel,
    graph: Graph,
    nodes: NodeIds,
    *,
    store: PPRStore,
    tail: AbstractTail,
    clusters: ClusterEvidence,
    explain: int = 0,
) -> NodesPrediction:
    """Return the prediction of `nodes`, the interval of alpha_0, and their contributors.

    Args:
        trained: The model.
        graph: Graph with features.
        nodes: Nodes with rows in the store, in any order, (B,).
        store: The rows.
        tail: Estimate of what the rows have cut.
        clusters: Exact means and largest evidences of the tail's clusters.
        explain: Number M of contributors to name per node; 0 for none.

    Raises:
        StoreError: a node has no row.
    """
    check_roots(nodes, store)
    predictions, lower, upper, contributors = [], [], [], []
    largest_P = clusters.largest_total_P.double().cpu().numpy()
    features, num_classes = required_features(graph), trained.num_classes
    for block in _blocks(trained, features, nodes, store, tail, clusters.mean_PC):
        predictions.append(block.prediction())
        # The tail may have changed weights; what is certified are the rows as they were stored.
        rows = store.rows(block.batch.root_global)
        entry_local_E = np.searchsorted(block.batch.support_global, rows.ids)
        supplied_E = rows.weights * block.total_N[entry_local_E]
        kept_B = np.bincount(rows.row_of_entry(), supplied_E, minlength=rows.num_rows)
        lower.append((num_classes + kept_B) * (1.0 - _ROUND_OFF))
        bound_B = _tail_bound(rows, largest_P)
        upper.append((num_classes + kept_B + bound_B) * (1.0 + _ROUND_OFF))
        if explain:
            total_B = block.aggregated_BC.double().sum(1).cpu().numpy()
            leading_E = block.evidence_NC.argmax(1).cpu().numpy()[entry_local_E]
            contributors.append(_contributors(rows, supplied_E, total_B, leading_E, explain))
    return NodesPrediction(
        node=nodes,
        prediction=_joined(predictions),
        alpha_0_lower=np.concatenate(lower),
        alpha_0_upper=np.concatenate(upper),
        contributors=_joined(contributors) if explain else None,
    )


def _blocks(
    trained: TrainedModel,
    features: Features,
    nodes: NodeIds,
    store: PPRStore,
    tail: AbstractTail,
    cluster_PC: Tensor,
) -> Iterator[_Block]:
    source = BatchSource(store=store, tail=tail)
    for start in range(0, max(len(nodes), 1), ROOTS_AT_A_TIME):  # one empty block for no nodes
        roots = nodes[start : start + ROOTS_AT_A_TIME]
        batch = assemble_batch(roots, source)
        evidence_NC = trained.evidence(features, batch.support_global)
        aggregate = batch_aggregation(batch, lambda _: cluster_PC, trained)
        yield _Block(batch, evidence_NC, aggregate(evidence_NC))


def _tail_bound(rows: Rows, largest_P: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return an upper bound on the evidence that each row has cut, (B,)."""
    by_cluster = rows.cut_mass.shape[1] == len(largest_P)
    cut_BP = rows.cut_mass if by_cluster else rows.missing_mass[:, None]
    bound_B: NDArray[np.float64] = cut_BP.astype(np.float64) @ (
        largest_P if by_cluster else largest_P.max()[None]
    )
    return bound_B


def _contributors(
    rows: Rows,
    supplied_E: NDArray[np.float64],
    total_B: NDArray[np.float64],
    leading_E: NDArray[np.int64],
    count: int,
) -> Contributors:
    """Return the `count` entries of each row that supply most evidence."""
    row_E = rows.row_of_entry()
    order = np.lexsort((-supplied_E, row_E))
    rank_E = np.arange(len(order)) - rows.row_ptr[row_E[order]]
    first = rank_E < count
    entry, place = order[first], (row_E[order][first], rank_E[first])

    def table(values: NDArray[Any], empty: float) -> NDArray[Any]:
        filled = np.full((len(total_B), count), empty, values.dtype)
        filled[place] = values[entry]
        return filled

    kept_B = np.bincount(row_E, supplied_E, minlength=len(total_B))
    return Contributors(
        node=table(rows.ids.astype(np.int64), -1),
        share=table(supplied_E / total_B[row_E], 0.0),
        weight=table(rows.weights.astype(np.float64), 0.0),
        leading_class=table(leading_E, -1),
        tail_share=np.maximum(1.0 - kept_B / total_B, 0.0),
    )


def _joined(parts: list[_Arrays]) -> _Arrays:
    """Return a value object whose arrays are those of the parts, concatenated."""
    names = [f.name for f in fields(parts[0]) if getattr(parts[0], f.name) is not None]
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in names
    }
    return type(parts[0])(**joined)
