"""What a trainer optimises: where losses come from and how well the model does on validation."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gpn_scale.config import RunConfig
from gpn_scale.data.graph import Graph
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


class AbstractTask(ABC):
    """A graph seen as a source of training losses."""

    @abstractmethod
    def losses(self, model: GPN, generator: torch.Generator) -> Iterator[Tensor]:
        """The losses of one epoch's optimiser steps, each a sum over its training nodes."""

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
        if graph.split is None:
            raise GraphError(f"graph {graph.name!r} has no split, expected one to train on")
        if len(graph.split.val) == 0:
            raise GraphError(
                f"graph {graph.name!r} has no validation nodes, expected at least one for early "
                "stopping: enlarge split.val or mark some nodes as val"
            )
        self.inputs = model_inputs(graph, config.data.feature_scaling, device, dtype)
        self.diffusion = exact_diffusion(graph, config.diffusion, device, dtype)
        self.entropy_weight = config.train.entropy_weight
        self.train_nodes, self.train_labels = _labelled(graph, graph.split.train, device)
        self.val_nodes, self.val_labels = _labelled(graph, graph.split.val, device)

    def losses(self, model: GPN, generator: torch.Generator) -> Iterator[Tensor]:
        """One step per epoch."""
        alpha_NC = model(self.inputs, self.diffusion, generator).with_network.alpha_NC
        posterior = DirichletPosterior(alpha_NC[self.train_nodes])
        yield bayesian_loss(posterior, self.train_labels, entropy_weight=self.entropy_weight)

    @torch.no_grad()
    def validate(self, model: GPN) -> Validation:
        """Scores on the validation nodes."""
        mean_NC = model(self.inputs, self.diffusion).with_network.mean_NC[self.val_nodes]
        label_probability_N = mean_NC.gather(1, self.val_labels.unsqueeze(1))
        return Validation(
            cross_entropy=float(-label_probability_N.log().mean()),
            accuracy=float((mean_NC.argmax(1) == self.val_labels).double().mean()),
        )


def _labelled(graph: Graph, nodes: np.ndarray, device: torch.device) -> tuple[Tensor, Tensor]:
    labels = torch.from_numpy(graph.labels[nodes].astype(np.int64))
    return torch.from_numpy(np.array(nodes)).to(device), labels.to(device)
