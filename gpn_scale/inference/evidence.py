"""Feature evidence of all nodes of a graph, streamed in chunks and reduced to fit into memory.

Shapes: N nodes, C classes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpn_scale.data.graph import CSRFeatures, Features, Graph
from gpn_scale.inference.encoder_inputs import required_features
from gpn_scale.inference.trained_model import CHUNK_ROWS, AbstractTrainedPart, TrainedModel
from gpn_scale.scratch import release_pages

Observer = Callable[[int, int, Tensor], None]
"""Called with (start, stop, values (stop - start, C)) of each chunk, in order.

Values are feature evidence, or the logits of an opinion, before diffusion."""


@dataclass(frozen=True, slots=True, eq=False)
class EvidenceSummary:
    """Feature evidence of all nodes, reduced over classes: 16 bytes per node.

    `predict_all` fills it if its `observe` is among the observers.

    >>> summary = EvidenceSummary.empty(num_nodes=2)
    >>> summary.observe(0, 2, torch.tensor([[1.0, 0.0], [3.0, 4.0]]))
    >>> summary.total, summary.leading_class
    (array([1., 7.]), array([0, 1]))
    """

    total: NDArray[np.float64]
    """Sum over classes, (N,). It is exact where alpha_0 - C would lose small values."""
    leading_class: NDArray[np.int64]
    """Class with the most evidence, (N,)."""

    @classmethod
    def empty(cls, num_nodes: int) -> "EvidenceSummary":
        """Return a summary whose arrays are still to be filled by `observe`."""
        return cls(np.empty(num_nodes), np.empty(num_nodes, np.int64))

    @property
    def num_bytes(self) -> int:
        """Memory of both arrays."""
        return self.total.nbytes + self.leading_class.nbytes

    def observe(self, start: int, stop: int, evidence_NC: Tensor) -> None:
        """Store the evidence of the nodes `start` to `stop`; this method is an `Observer`."""
        self.total[start:stop] = evidence_NC.double().sum(1).cpu().numpy()
        self.leading_class[start:stop] = evidence_NC.argmax(1).cpu().numpy()


def summarise_evidence(trained: TrainedModel, graph: Graph) -> EvidenceSummary:
    """Return the summary of a graph, for callers that do not predict all nodes otherwise.

    >>> from gpn_scale import GPNClassifier, load_graph
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> graph = load_graph("synthetic:nodes=100,classes=2")
    >>> trained = GPNClassifier(RunConfig(train=TrainConfig(epochs=5))).fit(graph).trained
    >>> summarise_evidence(trained, graph).total.shape
    (100,)
    """
    summary = EvidenceSummary.empty(graph.num_nodes)
    for start, stop, evidence_NC in node_values(trained, graph):
        summary.observe(start, stop, evidence_NC)
    return summary


def node_values(
    trained: AbstractTrainedPart,
    graph: Graph,
    *,
    chunk: int = CHUNK_ROWS,
    nodes: slice | None = None,
) -> Iterator[tuple[int, int, Tensor]]:
    """Yield evidence or logits of all nodes in order: (start, stop, values (stop - start, C)).

    Features are read and scaled chunk by chunk. Batch normalisation uses its running moments; the
    network returns to its previous mode whenever a chunk is yielded.

    >>> from gpn_scale import GPNClassifier, load_graph
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> graph = load_graph("synthetic:nodes=100,classes=2")
    >>> trained = GPNClassifier(RunConfig(train=TrainConfig(epochs=5))).fit(graph).trained
    >>> [(start, stop) for start, stop, _ in node_values(trained, graph, chunk=64)]
    [(0, 64), (64, 100)]

    Args:
        trained: The part of the model whose values are computed.
        graph: Graph with features; may be a memory map.
        chunk: Number of nodes computed at a time.
        nodes: Range of nodes; None for all.
    """
    features = required_features(graph)
    nodes = nodes or slice(0, graph.num_nodes)
    for start in range(nodes.start, nodes.stop, chunk):
        stop = min(start + chunk, nodes.stop)
        inputs = trained.inputs(_rows(features, start, stop))
        with torch.no_grad(), trained.evaluating():
            values_NC = trained.finite_values(inputs)
        del inputs
        release_pages(*_arrays(features))
        yield start, stop, values_NC


def chunk_rows(trained: AbstractTrainedPart, features: Features, memory_bytes: int) -> int:
    """Return how many nodes the network can take at a time within `memory_bytes`, at least 1.

    >>> from gpn_scale import GPNClassifier, load_graph
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> graph = load_graph("synthetic:nodes=100,classes=2")
    >>> trained = GPNClassifier(RunConfig(train=TrainConfig(epochs=5))).fit(graph).trained
    >>> [chunk_rows(trained, graph.features, size) for size in (0, 1 << 30)]
    [1, 100]
    """
    encoder, classes, itemsize = trained.encoder, trained.num_classes, trained.dtype.itemsize
    widths = [len(layer.get_parameter("bias")) for layer in (encoder.first, *encoder.further)]
    hidden, latent = max(widths), widths[-1]
    # Upper bounds: a linear map, its norm, ReLU and the next map; positions and offsets of a flow.
    per_row = itemsize * (4 * hidden + 6 * classes * latent + 8 * classes)
    num_nodes = int(features.shape[0])
    if not isinstance(features, CSRFeatures):
        # As stored, as a copy, scaled twice (word counts, fractions), and as a tensor.
        per_row += int(features.shape[1]) * (2 * features.itemsize + 8 + itemsize)
        return max(1, min(memory_bytes // per_row, num_nodes))
    per_entry = 32 + itemsize  # column, value, row, and both scalings
    rows = max(1, min(memory_bytes // per_row, num_nodes))
    while rows > 1:
        offsets = np.append(features.indptr[::rows], features.indptr[-1])
        if rows * per_row + int(np.diff(offsets).max()) * per_entry <= memory_bytes:
            break
        rows //= 2
    return rows


def _rows(features: Features, start: int, stop: int) -> Features:
    if isinstance(features, CSRFeatures):
        return features.rows(start, stop)
    return features[start:stop]


def _arrays(features: Features) -> tuple[NDArray[Any], ...]:
    if isinstance(features, CSRFeatures):
        return features.indices, features.values
    return (features,)
