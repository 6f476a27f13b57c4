"""Evidence of the clusters that stand for cut tails: of all nodes, or of a sample.

Shapes: N nodes, P clusters, C classes.
"""

import numpy as np
import torch
from torch import Tensor

from gpn_scale.nn.aggregation import ClusterEvidence
from gpn_scale.ppr.tails import AbstractTail


class ClusterSummary:
    """Mean and largest evidence of every cluster, gathered while evidence streams by.

    Sums run in float64. Hand `observe` to `predict_all`, then `store_into` the model.

    Args:
        tail: Which cluster a node belongs to and what it weighs there. A tail without clusters
            counts as one cluster, so that there is a bound for its rows, too.
        num_classes: C.
        device: Of the evidence.
    """

    def __init__(self, tail: AbstractTail, num_classes: int, device: torch.device) -> None:
        self.tail = tail
        zeros_P = torch.zeros(num_summarised(tail), device=device, dtype=torch.float64)
        self.sum_PC = zeros_P.unsqueeze(1).repeat(1, num_classes)
        self.weight_P = zeros_P.clone()
        self.largest_total_P = zeros_P.clone()

    def observe(self, start: int, stop: int, evidence_NC: Tensor) -> None:
        """Takes in the evidence of the nodes `start` to `stop`."""
        nodes = np.arange(start, stop)
        device = self.sum_PC.device
        cluster_N = torch.from_numpy(self.tail.cluster_of(nodes)).to(device)
        weight_N = torch.from_numpy(self.tail.weight_of(nodes)).to(device, torch.float64)
        exact_NC = evidence_NC.double()
        self.sum_PC.index_add_(0, cluster_N, weight_N.unsqueeze(1) * exact_NC)
        self.weight_P.index_add_(0, cluster_N, weight_N)
        total_N = exact_NC.sum(1)
        self.largest_total_P.scatter_reduce_(0, cluster_N, total_N, "amax")

    def store_into(self, clusters: ClusterEvidence) -> None:
        """Makes these the means and bounds that predictions use."""
        weight_P1 = self.weight_P.clamp_min(torch.finfo(torch.float64).tiny).unsqueeze(1)
        clusters.summarise(self.sum_PC / weight_P1, self.largest_total_P)


def num_summarised(tail: AbstractTail) -> int:
    """Clusters that a model keeps track of for this tail: at least 1."""
    return max(tail.num_clusters, 1)
