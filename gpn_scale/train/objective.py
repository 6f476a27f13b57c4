"""Objectives of the parts of a model: a loss of labelled nodes, and class probabilities.

Shapes: N nodes, B labelled nodes, C classes.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor
from torch.nn import functional

from gpn_scale.nn.losses import bayesian_loss
from gpn_scale.nn.model import GPNOutput
from gpn_scale.nn.posterior import DirichletPosterior


class Objective(Protocol):
    """The loss of a network's output, and the class probabilities that validation compares."""

    def loss(self, output: Any, label_B: Tensor, nodes_B: Tensor | None = None) -> Tensor:
        """Return the sum of the losses of the labelled nodes, a scalar.

        Args:
            output: Output of the network.
            label_B: Labels of the nodes.
            nodes_B: Rows of the output that have labels; None if all have.
        """

    def probabilities(self, output: Any) -> Tensor:
        """Return the class probabilities of the output, (N, C)."""


@dataclass(frozen=True, slots=True)
class EvidenceObjective:
    """The Bayesian loss of a GPN's posterior with network."""

    entropy_weight: float
    """Weight of the posterior's entropy."""

    def loss(self, output: GPNOutput, label_B: Tensor, nodes_B: Tensor | None = None) -> Tensor:  # noqa: D102
        posterior = output.with_network
        if nodes_B is not None:
            posterior = DirichletPosterior(posterior.alpha_NC[nodes_B])
        return bayesian_loss(posterior, label_B, entropy_weight=self.entropy_weight)

    def probabilities(self, output: GPNOutput) -> Tensor:  # noqa: D102
        return output.with_network.mean_NC


@dataclass(frozen=True, slots=True)
class OpinionObjective:
    """The cross-entropy of an opinion's diffused logits, divided by the number of training nodes.

    Because this is a mean, the weight decay has the same effect on every graph.
    """

    num_train: int
    """Number of training nodes."""

    def loss(self, output: Tensor, label_B: Tensor, nodes_B: Tensor | None = None) -> Tensor:  # noqa: D102
        logits_BC = output if nodes_B is None else output[nodes_B]
        return functional.cross_entropy(logits_BC, label_B, reduction="sum") / self.num_train

    def probabilities(self, output: Tensor) -> Tensor:  # noqa: D102
        return output.softmax(1)
