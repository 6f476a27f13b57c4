"""Evidence of a support -> evidence aggregated over the roots' top-k rows and their cut tails.

Shapes: N support nodes, B roots, E stored entries, P clusters, C classes.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from gpn_scale.nn.sparse import SparseMatrix


class TopKAggregation:
    """beta_agg = rows @ beta + cluster_weight @ cluster_evidence; differentiable in both.

    The rows hold each root's kept neighbours. What the cut to k lost is known by cluster, and its
    evidence is taken to be the cluster's mean; with no clusters there is no tail.

    Args:
        rows: Weights of the kept neighbours, (B, N).
        cluster_weight_BP: Weight of each cluster's mean evidence; P may be 0.
        cluster_evidence: Evidence of the support (N, C) -> that of the clusters (P, C).
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
        """(N, C) -> (B, C)."""
        kept_BC = self.rows @ evidence_NC
        if self.cluster_weight_BP.shape[1] == 0:
            return kept_BC
        return kept_BC + self.cluster_weight_BP @ self.cluster_evidence(evidence_NC)


class ClusterEvidence(nn.Module):
    """Mean evidence of every cluster: estimated while training, of all nodes once trained.

    A training step takes the mean of the nodes it has encoded, value and gradient. A running mean
    of earlier steps would be calmer, but evidence changes by orders of magnitude in a few steps,
    and a tail that lags behind the rows derails training (docs/performance.md).

    Args:
        num_clusters: P.
        num_classes: C.
    """

    mean_PC: Tensor
    largest_total_P: Tensor

    def __init__(self, num_clusters: int, num_classes: int) -> None:
        super().__init__()
        self.register_buffer("mean_PC", torch.zeros(num_clusters, num_classes))
        self.register_buffer("largest_total_P", torch.full((num_clusters,), torch.inf))

    @property
    def num_clusters(self) -> int:
        """P."""
        return len(self.mean_PC)

    def track(self, evidence_NC: Tensor, cluster_N: Tensor, weight_N: Tensor) -> Tensor:
        """Means of a batch's support, (P, C), which are remembered; differentiable.

        A cluster of which no node is there keeps the mean that it had last, without gradient.

        Args:
            evidence_NC: Of the support.
            cluster_N: Its nodes' clusters.
            weight_N: Their weights in the clusters' means.
        """
        found_PC, present_P = weighted_means(evidence_NC, cluster_N, weight_N, self.num_clusters)
        means_PC = torch.where(present_P.unsqueeze(1), found_PC, self.mean_PC.clone())
        self.mean_PC.copy_(means_PC.detach())
        return means_PC

    @property
    def summarised(self) -> bool:
        """Whether the means are those of all nodes, and no longer of a batch."""
        return bool(torch.isfinite(self.largest_total_P).all())

    def summarise(self, mean_PC: Tensor, largest_total_P: Tensor) -> None:
        """Replaces the estimated means by exact ones, and remembers the largest total evidences."""
        self.mean_PC.copy_(mean_PC)
        self.largest_total_P.copy_(largest_total_P)


def weighted_means(
    evidence_NC: Tensor, cluster_N: Tensor, weight_N: Tensor, num_clusters: int
) -> tuple[Tensor, Tensor]:
    """Weighted mean evidence per cluster, (P, C), 0 for clusters without nodes; and who has any."""
    total_P = weight_N.new_zeros(num_clusters).index_add_(0, cluster_N, weight_N)
    share_N = weight_N / total_P[cluster_N]
    means_PC = evidence_NC.new_zeros(num_clusters, evidence_NC.shape[1])
    means_PC = means_PC.index_add(0, cluster_N, share_N.unsqueeze(1) * evidence_NC)
    return means_PC, total_P > 0
