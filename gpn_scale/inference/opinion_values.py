"""Values that GPN+ diffuses besides feature evidence: logits, and an indicator of labels.

Both are columns of one matrix, so that any method of diffusion (power iteration, stored rows, or a
push) gives the opinion and the label evidence together.

Shapes: B nodes, C classes, S = C + 1 columns: logits, and 1 for a training node.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpn_scale.data.graph import Features, Graph, NodeIds
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference.encoder_inputs import required_features
from gpn_scale.inference.trained_model import TrainedOpinion


def is_training_node(graph: Graph) -> NDArray[np.bool_] | None:
    """Return whether each node is a training node, (N,); None for a graph without a split.

    >>> from gpn_scale.ppr.example import example_graph
    >>> is_training_node(example_graph()).tolist()
    [True, True, False]
    """
    if graph.split is None:
        return None
    is_training = np.zeros(graph.num_nodes, bool)
    is_training[graph.split.train] = True
    return is_training


def energy_of(logits_BC: Tensor) -> Tensor:
    """Return the energy -logsumexp of logits (Liu et al., 2020), (B,): large without support.

    >>> energy_of(torch.tensor([[9.0, 0.0], [0.0, 0.0]])).tolist()
    [-9.000123023986816, -0.6931471824645996]
    """
    return -logits_BC.logsumexp(1)


@dataclass(frozen=True, slots=True, eq=False)
class OpinionValues:
    """Rows of the matrix that GPN+ diffuses for its opinion and label evidence.

    >>> from gpn_scale import GPNClassifier
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> from gpn_scale.ppr.example import example_graph
    >>> graph, config = example_graph(), RunConfig(train=TrainConfig(epochs=1))
    >>> trained = GPNClassifier(config, device="cpu").fit(graph).trained
    >>> values = OpinionValues.of_graph(trained.opinion, graph)
    >>> values.of(np.array([0, 2]))[:, -1].tolist()  # whether they are training nodes
    [1.0, 0.0]
    """

    opinion: TrainedOpinion
    features: Features
    """Feature rows of all nodes."""
    is_training: NDArray[np.bool_] | None
    """Whether each node is a training node, (N,); None if the graph has no split."""

    @classmethod
    def of_graph(cls, opinion: TrainedOpinion, graph: Graph) -> "OpinionValues":
        """Return the values of a graph's nodes."""
        return cls(opinion, required_features(graph), is_training_node(graph))

    def of(self, nodes: NodeIds) -> Tensor:
        """Return the rows of `nodes`, (B, S)."""
        logits_BC = self.opinion.values_of(self.features, nodes)
        is_training = np.zeros(len(nodes)) if self.is_training is None else self.is_training[nodes]
        return with_labels(logits_BC, is_training)

    def explained(self, prediction: Prediction, diffused_BS: Tensor) -> Prediction:
        """Return a GPN's prediction of nodes with the opinion and label evidence of GPN+.

        Args:
            prediction: Prediction by feature evidence.
            diffused_BS: The diffused rows of the same nodes.
        """
        logits_BC, labels_B = diffused_BS[:, :-1], diffused_BS[:, -1]
        label_evidence = None
        if self.is_training is not None:
            label_evidence = labels_B.float().cpu().numpy()
        return replace(
            prediction,
            probabilities=logits_BC.softmax(1).float().cpu().numpy(),
            energy=energy_of(logits_BC).float().cpu().numpy(),
            label_evidence=label_evidence,
        )


def with_labels(logits_BC: Tensor, is_training_B: NDArray[np.generic]) -> Tensor:
    """Return logits with an additional column that is 1 for training nodes, (B, S).

    >>> with_labels(torch.tensor([[0.5, 2.0], [3.0, 4.0]]), np.array([True, False])).tolist()
    [[0.5, 2.0, 1.0], [3.0, 4.0, 0.0]]
    """
    column_B = torch.from_numpy(is_training_B.astype(np.float64)).to(logits_BC)
    return torch.cat([logits_BC, column_B.unsqueeze(1)], dim=1)
