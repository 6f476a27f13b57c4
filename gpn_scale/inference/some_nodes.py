"""Prediction of some nodes from their stored rows, with a certified interval for alpha_0.

Shapes: B nodes asked for, N support nodes, E stored entries, P clusters, C classes, M contributors.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpn_scale.data.graph import NodeIds
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference.evidence import FeatureEvidence, evaluating
from gpn_scale.nn.aggregation import ClusterEvidence, TopKAggregation
from gpn_scale.nn.model import GPNOutput
from gpn_scale.nn.posterior import DirichletPosterior
from gpn_scale.nn.sparse import SparseMatrix
from gpn_scale.ppr.batches import BatchSource, PPRBatch, assemble_batch, check_roots
from gpn_scale.ppr.rows import Rows
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.tails import AbstractTail

ROOTS_AT_A_TIME = 1 << 14
"""Roots whose joint support is encoded once; bounds memory at this times k times C numbers."""
_ROUND_OFF = 1e-5
"""Intervals are widened by this share: weights and evidence are float32 sums."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contributors:
    """Who supplied the evidence of each node: its top neighbours, by falling share."""

    node: NodeIds
    """Node ids, (B, M); -1 where a row has fewer."""
    share: NDArray[np.float64]
    """Of the node's aggregated evidence, the estimated tail included; (B, M)."""
    weight: NDArray[np.float64]
    """Diffusion weight of the contributor in the row, (B, M)."""
    leading_class: NDArray[np.int64]
    """Class that the contributor's own features speak for most, (B, M); -1 where there is none."""
    tail_share: NDArray[np.float64]
    """What did not come from kept neighbours but from the estimate of the cut tail, (B,)."""


_Arrays = TypeVar("_Arrays", Prediction, Contributors)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowPrediction:
    """What stored rows say of some nodes."""

    node: NodeIds
    """As asked for, (B,)."""
    prediction: Prediction
    """Of these nodes, in their order."""
    alpha_0_lower: NDArray[np.float64]
    """Prior plus kept evidence: exact diffusion gives no less; (B,)."""
    alpha_0_upper: NDArray[np.float64]
    """Cut mass times the largest evidence, cluster by cluster, on top: it gives no more; (B,)."""
    contributors: Contributors | None
    """Where it was asked for."""


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """Some of the nodes asked for, and their evidence."""

    batch: PPRBatch
    evidence_NC: Tensor
    aggregated_BC: Tensor

    @property
    def total_N(self) -> NDArray[np.float64]:
        """Evidence of every support node, summed over classes."""
        return np.asarray(self.evidence_NC.double().sum(1).cpu().numpy())


def batch_aggregation(
    batch: PPRBatch,
    cluster_evidence: Callable[[Tensor], Tensor],
    device: torch.device,
    dtype: torch.dtype,
) -> TopKAggregation:
    """The aggregation of a batch; `cluster_evidence` as `TopKAggregation` takes it."""
    rows = SparseMatrix(
        torch.from_numpy(batch.rows.row_ptr).to(device),
        torch.from_numpy(batch.rows.ids).to(device),
        torch.from_numpy(batch.rows.weights).to(device, dtype),
        len(batch.support_global),
    )
    cluster_weight_BP = torch.from_numpy(batch.cluster_weight).to(device, dtype)
    return TopKAggregation(rows, cluster_weight_BP, cluster_evidence)


def row_posteriors(
    nodes: NodeIds,
    evidence_of: FeatureEvidence,
    store: PPRStore,
    tail: AbstractTail,
    cluster_PC: Tensor,
) -> DirichletPosterior:
    """Posteriors of `nodes` with the network's influence, from their rows.

    Args:
        nodes: With rows in the store, (B,).
        evidence_of: The model's evidence of any node.
        store: The rows.
        tail: What stands for their cut part.
        cluster_PC: Mean evidence of the tail's clusters.
    """
    blocks = _blocks(nodes, evidence_of, store, tail, cluster_PC)
    return DirichletPosterior.from_evidence(torch.cat([block.aggregated_BC for block in blocks]))


def predict_rows(
    nodes: NodeIds,
    evidence_of: FeatureEvidence,
    store: PPRStore,
    tail: AbstractTail,
    clusters: ClusterEvidence,
    *,
    explain: int = 0,
) -> RowPrediction:
    """Classes and uncertainty of `nodes`, the interval of alpha_0, and who supplied the evidence.

    Args:
        nodes: With rows in the store, in any order, (B,).
        evidence_of: The model's evidence of any node.
        store: The rows.
        tail: What stands for their cut part.
        clusters: Exact means and largest evidences of the tail's clusters.
        explain: Number M of contributors to name per node; 0 for none.

    Raises:
        StoreError: a node has no row.
    """
    check_roots(nodes, store)
    predictions, lower, upper, contributors = [], [], [], []
    largest_P = clusters.largest_total_P.double().cpu().numpy()
    for block in _blocks(nodes, evidence_of, store, tail, clusters.mean_PC):
        batch = block.batch
        root_local_B = torch.from_numpy(batch.root_local).to(block.evidence_NC.device)
        output = GPNOutput(
            with_network=DirichletPosterior.from_evidence(block.aggregated_BC),
            without_network=DirichletPosterior.from_evidence(block.evidence_NC[root_local_B]),
        )
        predictions.append(Prediction.from_output(output))
        # The tail may have changed weights; what is certified are the rows as they were stored.
        rows = store.rows(batch.root_global)
        entry_local_E = np.searchsorted(batch.support_global, rows.ids)
        given_E = rows.weights * block.total_N[entry_local_E]
        kept_B = np.bincount(rows.row_of_entry(), given_E, minlength=len(batch.root_global))
        by_cluster = rows.cut_mass.shape[1] == len(largest_P)
        cut_BP = rows.cut_mass if by_cluster else rows.missing_mass[:, None]
        bound_B = cut_BP.astype(np.float64) @ (largest_P if by_cluster else largest_P.max()[None])
        num_classes = block.evidence_NC.shape[1]
        lower.append((num_classes + kept_B) * (1.0 - _ROUND_OFF))
        upper.append((num_classes + kept_B + bound_B) * (1.0 + _ROUND_OFF))
        if explain:
            total_B = block.aggregated_BC.double().sum(1).cpu().numpy()
            leading_N = block.evidence_NC.argmax(1).cpu().numpy()
            found = _contributors(rows, given_E, total_B, leading_N[entry_local_E], explain)
            contributors.append(found)
    return RowPrediction(
        node=nodes,
        prediction=_joined(predictions),
        alpha_0_lower=np.concatenate(lower),
        alpha_0_upper=np.concatenate(upper),
        contributors=_joined(contributors) if explain else None,
    )


def _blocks(
    nodes: NodeIds,
    evidence_of: FeatureEvidence,
    store: PPRStore,
    tail: AbstractTail,
    cluster_PC: Tensor,
) -> Iterator[_Block]:
    source = BatchSource(store=store, tail=tail)
    for start in range(0, max(len(nodes), 1), ROOTS_AT_A_TIME):  # one empty block for no nodes
        batch = assemble_batch(nodes[start : start + ROOTS_AT_A_TIME], source)
        with torch.no_grad(), evaluating(evidence_of.model):
            evidence_NC = evidence_of(batch.support_global)
        aggregate = batch_aggregation(
            batch, lambda _: cluster_PC, evidence_of.device, evidence_of.dtype
        )
        yield _Block(batch, evidence_NC, aggregate(evidence_NC))


def _contributors(
    rows: Rows,
    given_E: NDArray[np.float64],
    total_B: NDArray[np.float64],
    leading_E: NDArray[np.int64],
    count: int,
) -> Contributors:
    """The `count` entries of each row that gave most."""
    row_E = rows.row_of_entry()
    order = np.lexsort((-given_E, row_E))
    rank_E = np.arange(len(order)) - rows.row_ptr[row_E[order]]
    first = rank_E < count
    entry, place = order[first], (row_E[order][first], rank_E[first])

    def table(values: NDArray[Any], empty: float) -> NDArray[Any]:
        filled = np.full((len(total_B), count), empty, values.dtype)
        filled[place] = values[entry]
        return filled

    kept_B = np.bincount(row_E, given_E, minlength=len(total_B))
    return Contributors(
        node=table(rows.ids.astype(np.int64), -1),
        share=table(given_E / total_B[row_E], 0.0),
        weight=table(rows.weights.astype(np.float64), 0.0),
        leading_class=table(leading_E, -1),
        tail_share=np.maximum(1.0 - kept_B / total_B, 0.0),
    )


def _joined(parts: list[_Arrays]) -> _Arrays:
    """A value object whose arrays are those of the parts, one after the other."""
    names = [field.name for field in fields(parts[0])]
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return type(parts[0])(**joined)
