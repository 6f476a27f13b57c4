"""What a trainer optimises: where losses come from and how well the model does on validation."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gpn_scale.config import RunConfig
from gpn_scale.data.graph import Graph, NodeIds, Split
from gpn_scale.errors import GraphError
from gpn_scale.inference.exact import exact_diffusion
from gpn_scale.inference.inputs import model_inputs
from gpn_scale.nn.losses import bayesian_loss
from gpn_scale.nn.model import GPN
from gpn_scale.nn.posterior import DirichletPosterior


@dataclass(frozen=True, slots=True)
class Validation:
    """How the model does on the validation nodes."""

    cross_entropy: float
    """Mean of -log p_y; decides early stopping."""
    accuracy: float

    @classmethod
    def of(cls, mean_NC: Tensor, label_N: Tensor) -> "Validation":
        """From class probabilities and labels."""
        label_probability_N = mean_NC.gather(1, label_N.unsqueeze(1))
        return cls(
            cross_entropy=float(-label_probability_N.log().mean()),
            accuracy=float((mean_NC.argmax(1) == label_N).double().mean()),
        )


class AbstractTask(ABC):
    """A graph seen as a source of training losses."""

    @property
    @abstractmethod
    def num_steps(self) -> int:
        """Optimiser steps of an epoch."""

    @abstractmethod
    def losses(self, model: GPN, generator: torch.Generator, epoch: int) -> Iterator[Tensor]:
        """The losses of one epoch's steps, each an estimate of the sum over all training nodes."""

    @property
    def rows_fingerprint(self) -> str:
        """Which rows are trained on; empty where there are none."""
        return ""

    @property
    def precompute_seconds(self) -> float:
        """How long it took to make these rows; 0 where there are none."""
        return 0.0

    def facts(self) -> dict[str, Any]:
        """What a report tells of how batches were made; {} where there are none."""
        return {}

    @abstractmethod
    def validate(self, model: GPN) -> Validation:
        """Scores on the validation nodes; changes nothing."""


class ExactTask(AbstractTask):
    """The whole graph in every step, diffused by power iteration.

    Args:
        graph: With features, labels and a split.
        config: Sections data, diffusion and train are used.
        device: Where tensors are kept.
        dtype: Of all real numbers.
    """

    def __init__(
        self,
        graph: Graph,
        config: RunConfig,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        split = checked_split(graph)
        self.inputs = model_inputs(graph, config.data.feature_scaling, device, dtype)
        self.diffusion = exact_diffusion(graph, config.diffusion, device, dtype)
        self.entropy_weight = config.train.entropy_weight
        self.train_nodes, self.train_labels = labelled(graph, split.train, device)
        self.val_nodes, self.val_labels = labelled(graph, split.val, device)

    @property
    def num_steps(self) -> int:
        """One."""
        return 1

    def losses(self, model: GPN, generator: torch.Generator, epoch: int) -> Iterator[Tensor]:
        """That of all training nodes."""
        alpha_NC = model(self.inputs, self.diffusion, generator).with_network.alpha_NC
        posterior = DirichletPosterior(alpha_NC[self.train_nodes])
        yield bayesian_loss(posterior, self.train_labels, entropy_weight=self.entropy_weight)

    @torch.no_grad()
    def validate(self, model: GPN) -> Validation:
        """Scores on the validation nodes."""
        mean_NC = model(self.inputs, self.diffusion).with_network.mean_NC
        return Validation.of(mean_NC[self.val_nodes], self.val_labels)


def checked_split(graph: Graph) -> Split:
    """The graph's split.

    Raises:
        GraphError: there is none, or it has no validation nodes.
    """
    if graph.split is None:
        raise GraphError(f"graph {graph.name!r} has no split, expected one to train on")
    if len(graph.split.val) == 0:
        raise GraphError(
            f"graph {graph.name!r} has no validation nodes, expected at least one for early "
            "stopping: enlarge split.val or mark some nodes as val"
        )
    return graph.split


def labelled(graph: Graph, nodes: NodeIds, device: torch.device) -> tuple[Tensor, Tensor]:
    """Nodes and their labels as tensors."""
    labels = torch.from_numpy(graph.labels[nodes].astype(np.int64))
    return torch.from_numpy(np.array(nodes)).to(device), labels.to(device)
