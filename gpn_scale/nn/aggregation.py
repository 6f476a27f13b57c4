"""Evidence of a support -> evidence aggregated over the roots' top-k rows and their cut tails.

Shapes: N support nodes, B roots, E stored entries, T drawn nodes, P clusters, C classes.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from gpn_scale.nn.sparse import SparseMatrix


class TopKAggregation:
    """beta_agg = rows @ beta + cluster_mass @ cluster_evidence; differentiable in both.

    The rows hold each root's kept neighbours. What the cut to k lost is known by cluster, and its
    evidence is taken to be the cluster's mean; with no clusters there is no tail.

    Args:
        rows: Weights of the kept neighbours, (B, N).
        cluster_mass_BP: Cut mass by cluster; P may be 0.
        cluster_evidence: Evidence of the support (N, C) -> that of the clusters (P, C).
    """

    def __init__(
        self,
        rows: SparseMatrix,
        cluster_mass_BP: Tensor,
        cluster_evidence: Callable[[Tensor], Tensor],
    ) -> None:
        self.rows = rows
        self.cluster_mass_BP = cluster_mass_BP
        self.cluster_evidence = cluster_evidence

    def __call__(self, evidence_NC: Tensor) -> Tensor:
        """(N, C) -> (B, C)."""
        kept_BC = self.rows @ evidence_NC
        if self.cluster_mass_BP.shape[1] == 0:
            return kept_BC
        return kept_BC + self.cluster_mass_BP @ self.cluster_evidence(evidence_NC)


class ClusterEvidence(nn.Module):
    """Mean evidence of every cluster: running while training, of all nodes once trained.

    A training step knows the evidence of a few drawn nodes only. Their mean is noisy, the running
    mean of earlier steps is calm but has no gradient; `track` returns the value of the second with
    the gradient of the first (a control variate), so that the tail is trained and not only there.

    Args:
        num_clusters: P.
        num_classes: C.
        refresh: Weight of a new mean in the running one, in (0, 1].
    """

    mean_PC: Tensor
    largest_total_P: Tensor
    seen_P: Tensor

    def __init__(self, num_clusters: int, num_classes: int, refresh: float) -> None:
        super().__init__()
        self.register_buffer("mean_PC", torch.zeros(num_clusters, num_classes))
        self.register_buffer("largest_total_P", torch.full((num_clusters,), torch.inf))
        self.register_buffer("seen_P", torch.zeros(num_clusters, dtype=torch.bool))
        self.refresh = refresh

    @property
    def num_clusters(self) -> int:
        """P."""
        return len(self.mean_PC)

    def track(
        self, evidence_TC: Tensor, cluster_T: Tensor, weight_T: Tensor, *, complete: bool
    ) -> Tensor:
        """Moves the running means towards those of the drawn nodes; (P, C) with gradient.

        Args:
            evidence_TC: Of the drawn nodes.
            cluster_T: Their clusters.
            weight_T: Their weights in the clusters' means.
            complete: Whether all nodes were drawn, so that their means are exact and not blended.
        """
        drawn_PC, present_P = weighted_means(evidence_TC, cluster_T, weight_T, self.num_clusters)
        with torch.no_grad():
            refresh = 1.0 if complete else self.refresh
            known_PC = torch.where(self.seen_P.unsqueeze(1), self.mean_PC, drawn_PC)
            blended_PC = torch.lerp(known_PC, drawn_PC, refresh)
            self.mean_PC.copy_(torch.where(present_P.unsqueeze(1), blended_PC, self.mean_PC))
            self.seen_P.logical_or_(present_P)
        gradient_PC = torch.where(present_P.unsqueeze(1), drawn_PC - drawn_PC.detach(), 0.0)
        return self.mean_PC.clone() + gradient_PC

    @property
    def summarised(self) -> bool:
        """Whether the means are those of all nodes and no longer running ones."""
        return bool(torch.isfinite(self.largest_total_P).all())

    def summarise(self, mean_PC: Tensor, largest_total_P: Tensor) -> None:
        """Replaces the running means by exact ones, and remembers the largest total evidences."""
        self.mean_PC.copy_(mean_PC)
        self.largest_total_P.copy_(largest_total_P)
        self.seen_P.fill_(True)


def weighted_means(
    evidence_TC: Tensor, cluster_T: Tensor, weight_T: Tensor, num_clusters: int
) -> tuple[Tensor, Tensor]:
    """Weighted mean evidence per cluster, (P, C), 0 for clusters without nodes; and who has any."""
    total_P = weight_T.new_zeros(num_clusters).index_add_(0, cluster_T, weight_T)
    share_T = weight_T / total_P[cluster_T]
    means_PC = evidence_TC.new_zeros(num_clusters, evidence_TC.shape[1])
    means_PC = means_PC.index_add(0, cluster_T, share_T.unsqueeze(1) * evidence_TC)
    return means_PC, total_P > 0
