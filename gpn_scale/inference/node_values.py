"""Columns of node values that a model diffuses: computed on demand, or kept in a table.

A GPN diffuses its evidence by class. A GPN+ diffuses logits, an indicator of training nodes and the
total of its evidence. Diffusion is linear, so one product with a row gives all of them.

Shapes: N nodes, B rows, C classes, W columns, T nodes that rows touch.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpn_scale.data.graph import Features, Graph, NodeIds
from gpn_scale.diffusion.push import PushedRow
from gpn_scale.errors import ConfigError
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference.encoder_inputs import required_features
from gpn_scale.inference.opinion_values import energy_of, is_training_node
from gpn_scale.inference.trained_model import CHUNK_ROWS, TrainedModel
from gpn_scale.nn.model import GPNOutput
from gpn_scale.nn.posterior import DirichletPosterior
from gpn_scale.nn.sparse import SparseMatrix
from gpn_scale.scratch import release_pages


def num_columns(trained: TrainedModel) -> int:
    """Return the number W of columns that a model diffuses.

    >>> from gpn_scale import GPNClassifier
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> from gpn_scale.ppr.example import example_graph
    >>> config = RunConfig(train=TrainConfig(epochs=1))
    >>> num_columns(GPNClassifier(config, device="cpu").fit(example_graph()).trained)  # GPN+
    4
    """
    return trained.num_classes + (0 if trained.opinion is None else 2)


@dataclass(frozen=True, slots=True, eq=False)
class OwnValues:
    """Values of nodes whose features are given, before diffusion.

    >>> from gpn_scale import GPNClassifier
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> from gpn_scale.ppr.example import example_graph
    >>> graph, config = example_graph(), RunConfig(train=TrainConfig(epochs=1))
    >>> trained = GPNClassifier(config, device="cpu").fit(graph).trained
    >>> values = OwnValues.of(trained, graph.features, np.arange(3), is_training_node(graph))
    >>> values.evidence_BC.shape, values.columns_BW.shape
    (torch.Size([3, 2]), torch.Size([3, 4]))
    """

    evidence_BC: Tensor
    """Feature evidence by class."""
    columns_BW: Tensor
    """Columns that are diffused."""

    @classmethod
    def of(
        cls,
        trained: TrainedModel,
        features: Features,
        nodes: NodeIds,
        is_training: NDArray[np.bool_] | None,
    ) -> "OwnValues":
        """Return the values of some nodes.

        Args:
            trained: The model.
            features: Feature rows of all nodes; only those of `nodes` are read, in chunks.
            nodes: Rows to take, (B,).
            is_training: Whether each node is a training node, (N,); None if there are none.
        """
        evidence_BC = trained.evidence(features, nodes)
        if trained.opinion is None:
            return cls(evidence_BC, evidence_BC)
        logits_BC = trained.opinion.values_of(features, nodes)
        indicator = np.zeros(len(nodes)) if is_training is None else is_training[nodes]
        indicator_B1 = torch.from_numpy(indicator.astype(np.float64)).to(logits_BC)[:, None]
        total_B1 = evidence_BC.sum(1, keepdim=True)
        return cls(evidence_BC, torch.cat([logits_BC, indicator_B1, total_B1], dim=1))


def prediction_of(
    trained: TrainedModel, own: OwnValues, diffused_BW: Tensor, *, has_labels: bool
) -> Prediction:
    """Return the uncalibrated prediction of nodes from their own and their diffused values.

    >>> from gpn_scale import GPNClassifier
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> from gpn_scale.ppr.example import example_graph
    >>> graph, config = example_graph(), RunConfig(train=TrainConfig(epochs=1))
    >>> trained = GPNClassifier(config, device="cpu").fit(graph).trained
    >>> own = OwnValues.of(trained, graph.features, np.arange(3), is_training_node(graph))
    >>> alone = prediction_of(trained, own, own.columns_BW, has_labels=True)
    >>> alone.label_evidence.tolist()  # as if there were no edges
    [1.0, 1.0, 0.0]

    Args:
        trained: The model.
        own: Values of the nodes themselves.
        diffused_BW: The same columns after diffusion.
        has_labels: Whether the graph has training nodes, so that label evidence is meaningful.
    """
    without_network = DirichletPosterior.from_evidence(own.evidence_BC)
    if trained.opinion is None:
        with_network = DirichletPosterior.from_evidence(diffused_BW)
        return Prediction.from_output(GPNOutput(with_network, without_network))
    logits_BC, label_B, total_B = diffused_BW[:, :-2], diffused_BW[:, -2], diffused_BW[:, -1]
    return Prediction(
        probabilities=logits_BC.softmax(1).float().cpu().numpy(),
        probabilities_no_network=without_network.mean_NC.float().cpu().numpy(),
        alpha_0=(trained.num_classes + total_B).float().cpu().numpy(),
        alpha_0_no_network=without_network.alpha_0_N.float().cpu().numpy(),
        energy=energy_of(logits_BC).float().cpu().numpy(),
        label_evidence=label_B.float().cpu().numpy() if has_labels else None,
    )


class AbstractNodeValues(ABC):
    """The columns of all nodes of a graph, for products with rows of the diffusion.

    >>> issubclass(EncodedValues, AbstractNodeValues), issubclass(StoredValues, AbstractNodeValues)
    (True, True)

    Args:
        trained: The model.
        graph: The graph.
    """

    def __init__(self, trained: TrainedModel, graph: Graph) -> None:
        self.trained, self.features = trained, required_features(graph)
        self.is_training = is_training_node(graph)
        """Whether each node is a training node, (N,); None if the graph has no split."""

    @property
    def has_labels(self) -> bool:
        """Whether the graph has training nodes, so that label evidence is meaningful."""
        return self.is_training is not None

    @property
    @abstractmethod
    def largest_evidence(self) -> float | None:
        """Largest evidence of a node, summed over classes; None if it is not known."""

    @abstractmethod
    def product(self, rows: Sequence[PushedRow]) -> Tensor:
        """Return rows of existing nodes times the columns of all nodes, (B, W)."""


class EncodedValues(AbstractNodeValues):
    """Columns that are computed on demand for the nodes that rows touch.

    >>> from gpn_scale import GPNClassifier
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> from gpn_scale.ppr.example import example_graph
    >>> graph, config = example_graph(), RunConfig(train=TrainConfig(epochs=1))
    >>> trained = GPNClassifier(config, device="cpu").fit(graph).trained
    >>> row = PushedRow(np.array([0, 2]), np.array([0.5, 0.25]), dropped=0.25)
    >>> EncodedValues(trained, graph).product([row]).shape
    torch.Size([1, 4])
    """

    @property
    def largest_evidence(self) -> float | None:
        """None, because the nodes are not encoded in advance."""
        return None

    def product(self, rows: Sequence[PushedRow]) -> Tensor:
        """Return rows of existing nodes times the columns of all nodes, (B, W)."""
        nodes, weights = zip(*(row.listed() for row in rows), strict=True)
        touched_T, column = np.unique(np.concatenate(nodes), return_inverse=True)
        own = OwnValues.of(self.trained, self.features, touched_T, self.is_training)
        columns_TW = own.columns_BW
        matrix = SparseMatrix(
            torch.from_numpy(np.cumsum([0, *map(len, nodes)])).to(columns_TW.device),
            torch.from_numpy(column).to(columns_TW.device),
            torch.from_numpy(np.concatenate(weights)).to(columns_TW),
            len(touched_T),
        )
        return matrix.multiply(columns_TW)


class StoredValues(AbstractNodeValues):
    """Columns that were computed once, in memory or in a memory-mapped file.

    >>> from gpn_scale import GPNClassifier
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> from gpn_scale.ppr.example import example_graph
    >>> graph, config = example_graph(), RunConfig(train=TrainConfig(epochs=1))
    >>> trained = GPNClassifier(config, device="cpu").fit(graph).trained
    >>> table = np.empty((3, num_columns(trained)), np.float32)
    >>> node_values_into(trained, graph, table)
    >>> StoredValues(trained, graph, table).largest_evidence == float(table[:, -1].max())
    True

    Args:
        trained: The model.
        graph: The graph.
        table: Columns of all nodes from `node_values_into`, (N, W); read once for the largest
            evidence.
        largest_evidence: Largest evidence of a node, if the caller already knows it.

    Raises:
        ConfigError: the table has the wrong shape or type.
    """

    def __init__(
        self,
        trained: TrainedModel,
        graph: Graph,
        table: NDArray[np.float32],
        *,
        largest_evidence: float | None = None,
    ) -> None:
        super().__init__(trained, graph)
        check_table(table, (graph.num_nodes, num_columns(trained)), "table")
        self.table = table
        self._largest = _largest_total(trained, table)
        if largest_evidence is not None:
            self._largest = largest_evidence

    @property
    def largest_evidence(self) -> float | None:
        """Largest evidence of a node, summed over classes."""
        return self._largest

    def product(self, rows: Sequence[PushedRow]) -> Tensor:
        """Return rows of existing nodes times the columns of all nodes, (B, W)."""
        product_BW = np.empty((len(rows), self.table.shape[1]), np.float32)
        for place, row in enumerate(rows):
            table = self.table if row.nodes is None else self.table[row.nodes]
            product_BW[place] = row.weight.astype(np.float32) @ table
        return torch.from_numpy(product_BW).to(self.trained.device, self.trained.dtype)


def node_values_into(trained: TrainedModel, graph: Graph, table: NDArray[np.float32]) -> None:
    """Write the columns of all nodes, (N, W), in chunks; `num_columns` gives W.

    Pass the table, which may be memory-mapped, to `StoredValues`; predictions of new nodes and of
    changes then do not encode existing nodes.

    >>> from gpn_scale import GPNClassifier
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> from gpn_scale.ppr.example import example_graph
    >>> graph, config = example_graph(), RunConfig(train=TrainConfig(epochs=1))
    >>> trained = GPNClassifier(config, device="cpu").fit(graph).trained
    >>> table = np.empty((3, num_columns(trained)), np.float32)
    >>> node_values_into(trained, graph, table)
    >>> table[:, -2].tolist()  # whether they are training nodes
    [1.0, 1.0, 0.0]

    Raises:
        ConfigError: the table has another shape or type.
    """
    check_table(table, (graph.num_nodes, num_columns(trained)), "table")
    features, is_training = required_features(graph), is_training_node(graph)
    for start in range(0, graph.num_nodes, CHUNK_ROWS):
        nodes = np.arange(start, min(start + CHUNK_ROWS, graph.num_nodes))
        own = OwnValues.of(trained, features, nodes, is_training)
        table[start : start + len(nodes)] = own.columns_BW.float().cpu().numpy()
        release_pages(table)


def check_table(table: NDArray[np.float32], shape: tuple[int, int], what: str) -> None:
    """Check that an array can hold a row of float32 per node.

    >>> check_table(np.empty((3, 2)), (3, 2), "table")
    Traceback (most recent call last):
        ...
    gpn_scale.errors.ConfigError: table is float64 of shape (3, 2), expected float32 of shape (3, 2)

    Raises:
        ConfigError: it has another shape or type.
    """
    if table.shape != shape or table.dtype != np.float32:
        raise ConfigError(
            f"{what} is {table.dtype} of shape {table.shape}, expected float32 of shape {shape}",
            arguments=(what,),
        )


def _largest_total(trained: TrainedModel, table: NDArray[np.float32]) -> float:
    largest = 0.0
    for start in range(0, len(table), CHUNK_ROWS):
        rows = table[start : start + CHUNK_ROWS]
        total = rows[:, -1] if trained.opinion is not None else rows.sum(1, dtype=np.float64)
        largest = max(largest, float(total.max()))
    return largest
