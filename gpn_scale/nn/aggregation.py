"""Aggregate the evidence of a batch's support over the roots' top-k rows and their cut tails.

Shapes: N support nodes, B roots, E stored entries, P clusters, C classes.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from gpn_scale.nn.sparse import SparseMatrix


class TopKAggregation:
    """beta_agg = rows @ beta + cluster_weight @ cluster_evidence; differentiable in both.

    The rows hold each root's kept neighbours. The cut part of a row is represented by the mean
    evidence of its clusters, each with the weight that the tail gives it.

    >>> weight_E = torch.tensor([0.5, 0.25])
    >>> rows = SparseMatrix(torch.tensor([0, 2]), torch.tensor([0, 1]), weight_E, 2)
    >>> cut_BP = torch.tensor([[0.25]])  # one root, one cluster
    >>> aggregate = TopKAggregation(rows, cut_BP, lambda evidence_NC: evidence_NC.mean(0, True))
    >>> aggregate(torch.tensor([[4.0], [8.0]]))  # 0.5 x 4 + 0.25 x 8 + 0.25 x 6
    tensor([[5.5000]])

    Args:
        rows: Weights of the kept neighbours, (B, N).
        cluster_weight_BP: Weight of each cluster's mean evidence; P may be 0 (no tail).
        cluster_evidence: Maps the evidence of the support (N, C) to that of the clusters (P, C).
    """

    def __init__(
        self,
        rows: SparseMatrix,
        cluster_weight_BP: Tensor,
        cluster_evidence: Callable[[Tensor], Tensor],
    ) -> None:
        self.rows = rows
        self.cluster_weight_BP = cluster_weight_BP
        self.cluster_evidence = cluster_evidence

    def __call__(self, evidence_NC: Tensor) -> Tensor:
        """Return the aggregated evidence of the roots, (N, C) -> (B, C)."""
        kept_BC = self.rows @ evidence_NC
        if self.cluster_weight_BP.shape[1] == 0:
            return kept_BC
        return kept_BC + self.cluster_weight_BP @ self.cluster_evidence(evidence_NC)


class ClusterEvidence(nn.Module):
    """Mean evidence of every cluster: estimated during training, exact after it.

    A training step takes the mean over the nodes it has encoded, with its gradient. A running mean
    over earlier steps would be less noisy, but evidence changes by orders of magnitude within a few
    steps, and a tail that lags behind the rows derails training (docs/performance.md).

    >>> clusters = ClusterEvidence(num_clusters=2, num_classes=1)
    >>> clusters.track(torch.tensor([[2.0], [8.0]]), torch.tensor([True, True]))
    tensor([[2.],
            [8.]])
    >>> clusters.track(torch.tensor([[3.0], [0.0]]), torch.tensor([True, False]))
    tensor([[3.],
            [8.]])

    Args:
        num_clusters: P, the number of clusters.
        num_classes: C, the number of classes.
    """

    mean_PC: Tensor
    largest_total_P: Tensor

    def __init__(self, num_clusters: int, num_classes: int) -> None:
        super().__init__()
        self.register_buffer("mean_PC", torch.zeros(num_clusters, num_classes))
        self.register_buffer("largest_total_P", torch.full((num_clusters,), torch.inf))

    @property
    def num_clusters(self) -> int:
        """The number of clusters, P."""
        return len(self.mean_PC)

    def track(self, batch_PC: Tensor, present_P: Tensor | None) -> Tensor:
        """Return the cluster means of a batch, (P, C), and store them; differentiable.

        A cluster without a node in the support keeps its last mean, without gradient.

        Args:
            batch_PC: Means over the batch's support.
            present_P: Which clusters have a node in the support; None if all have.
        """
        means_PC = batch_PC
        if present_P is not None:
            means_PC = torch.where(present_P.unsqueeze(1), batch_PC, self.mean_PC.clone())
        self.mean_PC.copy_(means_PC.detach())
        return means_PC

    def summarise(self, mean_PC: Tensor, largest_total_P: Tensor) -> None:
        """Store the exact means and the largest total evidence of every cluster, rounded up."""
        self.mean_PC.copy_(mean_PC)
        self.largest_total_P.copy_(largest_total_P)
        next_P = self.largest_total_P.nextafter(torch.full_like(self.largest_total_P, torch.inf))
        below_P = self.largest_total_P.to(largest_total_P.dtype) < largest_total_P
        self.largest_total_P.copy_(torch.where(below_P, next_P, self.largest_total_P))


def weighted_means(
    evidence_NC: Tensor, cluster_N: Tensor, weight_N: Tensor, num_clusters: int
) -> tuple[Tensor, Tensor]:
    """Return the weighted mean evidence per cluster, (P, C), and which clusters have nodes, (P,).

    The mean of a cluster without nodes is 0.

    >>> evidence_NC, weight_N = torch.tensor([[1.0], [5.0]]), torch.tensor([3.0, 1.0])
    >>> weighted_means(evidence_NC, torch.tensor([0, 0]), weight_N, num_clusters=2)
    (tensor([[2.],
            [0.]]), tensor([ True, False]))
    """
    total_P = weight_N.new_zeros(num_clusters).index_add_(0, cluster_N, weight_N)
    fraction_N = weight_N / total_P[cluster_N]
    means_PC = evidence_NC.new_zeros(num_clusters, evidence_NC.shape[1])
    means_PC = means_PC.index_add(0, cluster_N, fraction_N.unsqueeze(1) * evidence_NC)
    return means_PC, total_P > 0
