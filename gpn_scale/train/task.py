"""What a trainer optimises: where losses come from and how well the model does on validation."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gpn_scale.config import DiffusionConfig, RunConfig
from gpn_scale.data.features import scale_features
from gpn_scale.data.graph import CSRFeatures, Graph
from gpn_scale.data.transition import steps_to_tolerance, transition_matrix
from gpn_scale.errors import GraphError
from gpn_scale.nn.diffusion import PowerIteration
from gpn_scale.nn.encoder import Inputs
from gpn_scale.nn.losses import bayesian_loss
from gpn_scale.nn.model import GPN
from gpn_scale.nn.posterior import DirichletPosterior
from gpn_scale.nn.sparse import SparseMatrix


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
        self.inputs = model_inputs(graph, config, device, dtype)
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


def model_inputs(
    graph: Graph, config: RunConfig, device: torch.device, dtype: torch.dtype
) -> Inputs:
    """The graph's features, scaled as configured, as the encoder takes them; sparse stay sparse."""
    if graph.features is None:
        raise GraphError(
            f"graph {graph.name!r} has no features, expected some to learn from: "
            "add feature columns (node degrees would do for a start)"
        )
    features = scale_features(graph.features, config.data.feature_scaling)
    if isinstance(features, CSRFeatures):
        return SparseMatrix(
            torch.from_numpy(np.array(features.indptr)).to(device),
            torch.from_numpy(np.array(features.indices)).to(device),
            torch.from_numpy(np.array(features.values)).to(device, dtype),
            features.num_columns,
        )
    return torch.from_numpy(np.array(features)).to(device, dtype)


def exact_diffusion(
    graph: Graph, config: DiffusionConfig, device: torch.device, dtype: torch.dtype
) -> PowerIteration:
    """The power iteration that `config` asks for, on the whole graph."""
    matrix = transition_matrix(graph, config.normalisation, config.self_loops)
    transition = SparseMatrix(
        torch.from_numpy(matrix.indptr).to(device),
        torch.from_numpy(matrix.indices).to(device),
        torch.from_numpy(matrix.weight).to(device, dtype),
        matrix.num_nodes,
        symmetric=matrix.symmetric,
    )
    steps = config.steps
    if steps == "inf":
        steps = steps_to_tolerance(config.teleport, config.tolerance)
    return PowerIteration(transition, teleport=config.teleport, steps=steps)


def _labelled(graph: Graph, nodes: np.ndarray, device: torch.device) -> tuple[Tensor, Tensor]:
    labels = torch.from_numpy(graph.labels[nodes].astype(np.int64))
    return torch.from_numpy(np.array(nodes)).to(device), labels.to(device)
