"""Exact mean and largest evidence of the clusters that stand for cut tails.

Shapes: N nodes, P clusters, C classes.
"""

import numpy as np
import torch
from torch import Tensor

from gpn_scale.data.graph import Graph
from gpn_scale.inference.evidence import Observer, node_values
from gpn_scale.inference.opinion_values import is_training_node, with_labels
from gpn_scale.inference.trained_model import TrainedModel
from gpn_scale.nn.aggregation import ClusterEvidence
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.tails import AbstractTail


class ClusterSummary:
    """Mean and largest evidence of every cluster, collected while evidence is computed.

    Sums are in float64. Pass `observe` to `predict_all`, then call `result`.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.config import DiffusionConfig
    >>> from gpn_scale.ppr.tails import TruncatedTail
    >>> tail = TruncatedTail(build_graph([0], [1]), DiffusionConfig())
    >>> summary = ClusterSummary(tail, num_classes=2, device=torch.device("cpu"))
    >>> summary.observe(0, 2, torch.tensor([[1.0, 0.0], [3.0, 4.0]]))
    >>> clusters = summary.result(torch.float32)
    >>> clusters.mean_PC.tolist(), clusters.largest_total_P.tolist()
    ([[2.0, 2.0]], [7.0])

    Args:
        tail: Gives the cluster of each node and the node's weight in it. A tail without clusters
            counts as one cluster, so that its rows have a bound as well.
        num_classes: Number C of classes.
        device: Device of the evidence.
    """

    def __init__(self, tail: AbstractTail, num_classes: int, device: torch.device) -> None:
        self.tail = tail
        zeros_P = torch.zeros(num_tracked_clusters(tail), device=device, dtype=torch.float64)
        self.sum_PC = zeros_P.unsqueeze(1).repeat(1, num_classes)
        self.weight_P = zeros_P.clone()
        self.largest_total_P = zeros_P.clone()

    def observe(self, start: int, stop: int, evidence_NC: Tensor) -> None:
        """Add the evidence of the nodes `start` to `stop`; this method is an `Observer`."""
        nodes = np.arange(start, stop)
        device = self.sum_PC.device
        cluster_N = torch.from_numpy(self.tail.cluster_of(nodes)).to(device)
        weight_N = torch.from_numpy(self.tail.weight_of(nodes)).to(device, torch.float64)
        exact_NC = evidence_NC.double()
        self.sum_PC.index_add_(0, cluster_N, weight_N.unsqueeze(1) * exact_NC)
        self.weight_P.index_add_(0, cluster_N, weight_N)
        total_N = exact_NC.sum(1)
        self.largest_total_P.scatter_reduce_(0, cluster_N, total_N, "amax")

    def result(self, dtype: torch.dtype) -> ClusterEvidence:
        """Return the means and bounds of all evidence added so far."""
        num_clusters, num_classes = self.sum_PC.shape
        clusters = ClusterEvidence(num_clusters, num_classes).to(self.sum_PC.device, dtype)
        weight_P1 = self.weight_P.clamp_min(torch.finfo(torch.float64).tiny).unsqueeze(1)
        clusters.summarise(self.sum_PC / weight_P1, self.largest_total_P)
        return clusters


class OpinionSummary:
    """Mean logits and fraction of training nodes of every cluster, collected as they are computed.

    Pass `observe` to `predict_all` as an opinion observer, then call `result`.

    >>> from gpn_scale.ppr.example import EXAMPLE_DIFFUSION, example_graph
    >>> from gpn_scale.ppr.tails import TruncatedTail
    >>> graph = example_graph()  # 0 and 1 are training nodes; 1 has two edges and counts twice
    >>> tail = TruncatedTail(graph, EXAMPLE_DIFFUSION)
    >>> summary = OpinionSummary(tail, graph, num_classes=2, device=torch.device("cpu"))
    >>> summary.observe(0, 3, torch.tensor([[1.0, 0.0], [2.0, 0.0], [3.0, 6.0]]))
    >>> summary.result(torch.float64).tolist()
    [[2.0, 1.5, 0.75]]

    Args:
        tail: Gives the cluster of each node and the node's weight in it.
        graph: The graph, whose split names the training nodes.
        num_classes: Number C of classes.
        device: Device of the logits.
    """

    def __init__(
        self, tail: AbstractTail, graph: Graph, num_classes: int, device: torch.device
    ) -> None:
        self.means = ClusterSummary(tail, num_classes + 1, device)
        self.is_training = is_training_node(graph)

    def observe(self, start: int, stop: int, logits_NC: Tensor) -> None:
        """Add the logits of the nodes `start` to `stop`; this method is an `Observer`."""
        unknown = np.zeros(stop - start, bool)
        is_training = unknown if self.is_training is None else self.is_training[start:stop]
        self.means.observe(start, stop, with_labels(logits_NC, is_training))

    def result(self, dtype: torch.dtype) -> Tensor:
        """Return the means of all values added so far, (P, C + 1)."""
        return self.means.result(dtype).mean_PC


class CollectedClusters:
    """Cluster means of all parts of a model, collected while all nodes are predicted.

    >>> from gpn_scale import GPNClassifier
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> from gpn_scale.ppr.example import example_graph
    >>> graph, config = example_graph(), RunConfig(train=TrainConfig(epochs=1))
    >>> trained = GPNClassifier(config, device="cpu").fit(graph).trained
    >>> from gpn_scale.ppr.tails import TruncatedTail
    >>> from gpn_scale.inference.all_nodes import predict_all
    >>> collected = CollectedClusters(trained, graph, TruncatedTail(graph, trained.diffusion))
    >>> prediction = predict_all(
    ...     trained,
    ...     graph,
    ...     observers=[collected.evidence.observe],
    ...     opinion_observers=collected.opinion_observers,
    ... )
    >>> collected.store()
    >>> trained.network.clusters.mean_PC.shape, trained.opinion.network.cluster_PS.shape
    (torch.Size([1, 2]), torch.Size([1, 3]))

    Args:
        trained: The model.
        graph: The graph that is predicted.
        tail: The tail whose clusters are summarised.
    """

    def __init__(self, trained: TrainedModel, graph: Graph, tail: AbstractTail) -> None:
        self.trained = trained
        self.evidence = ClusterSummary(tail, trained.num_classes, trained.device)
        self.opinion = None
        if trained.opinion is not None:
            self.opinion = OpinionSummary(tail, graph, trained.num_classes, trained.device)

    @property
    def opinion_observers(self) -> list[Observer]:
        """Observers of the opinion's logits; none for a GPN."""
        return [] if self.opinion is None else [self.opinion.observe]

    def store(self) -> None:
        """Put the means into the model's networks."""
        trained = self.trained
        trained.network.clusters = self.evidence.result(trained.dtype)
        if trained.opinion is not None and self.opinion is not None:
            trained.opinion.network.cluster_PS = self.opinion.result(trained.dtype)


def summarise_model(trained: TrainedModel, graph: Graph, tail: AbstractTail) -> None:
    """Put the graph's cluster means of all parts into the model's networks.

    For callers that do not predict all nodes otherwise.

    >>> from gpn_scale import GPNClassifier
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> from gpn_scale.ppr.example import example_graph
    >>> graph, config = example_graph(), RunConfig(train=TrainConfig(epochs=1))
    >>> trained = GPNClassifier(config, device="cpu").fit(graph).trained
    >>> from gpn_scale.ppr.tails import TruncatedTail
    >>> summarise_model(trained, graph, TruncatedTail(graph, trained.diffusion))
    >>> trained.network.clusters.mean_PC.shape, trained.opinion.network.cluster_PS.shape
    (torch.Size([1, 2]), torch.Size([1, 3]))
    """
    collected = CollectedClusters(trained, graph, tail)
    for start, stop, evidence_NC in node_values(trained, graph):
        collected.evidence.observe(start, stop, evidence_NC)
    if trained.opinion is not None and collected.opinion is not None:
        for start, stop, logits_NC in node_values(trained.opinion, graph):
            collected.opinion.observe(start, stop, logits_NC)
    collected.store()


def clusters_fingerprint(graph: Graph, store: PPRStore, tail: AbstractTail) -> str:
    """Return a text that identifies the graph and clusters on which cluster evidence depends.

    It begins with the fingerprint of the graph.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale import build_graph
    >>> from gpn_scale.config import PPRConfig
    >>> from gpn_scale.ppr.tails import TruncatedTail
    >>> from precompute.build import build_store
    >>> path, config = build_graph([0, 1], [1, 2]), PPRConfig(k=2, clusters=0)
    >>> with TemporaryDirectory() as folder:
    ...     plan = build_store(path, config, folder)
    ...     tail = TruncatedTail(path, config.diffusion)
    ...     text = clusters_fingerprint(path, PPRStore.open(folder), tail)
    >>> text.removeprefix(path.fingerprint())
    ' one cluster'
    """
    clusters = store.clusters_checksum if tail.uses_store_clusters else "one cluster"
    return f"{graph.fingerprint()} {clusters}"


def num_tracked_clusters(tail: AbstractTail) -> int:
    """Return the number of clusters that a model tracks for this tail, at least 1.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.config import DiffusionConfig
    >>> from gpn_scale.ppr.tails import TruncatedTail
    >>> num_tracked_clusters(TruncatedTail(build_graph([0], [1]), DiffusionConfig()))
    1
    """
    return max(tail.num_clusters, 1)
