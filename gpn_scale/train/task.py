"""Tasks that a trainer optimises: sources of losses, and scores on the validation nodes."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gpn_scale.config import RunConfig
from gpn_scale.data.graph import Graph, NodeIds, Split
from gpn_scale.device import device_rule
from gpn_scale.diffusion.power_iteration import exact_diffusion
from gpn_scale.distributed import World
from gpn_scale.errors import GraphError
from gpn_scale.inference.encoder_inputs import model_inputs, repeated_inputs
from gpn_scale.nn.model import GPN
from gpn_scale.nn.noise import Noise
from gpn_scale.nn.opinion import Opinion
from gpn_scale.train.objective import Objective

TrainedPart = GPN | Opinion
"""A network that is trained by itself: a GPN for feature evidence, or the opinion of GPN+."""


@dataclass(frozen=True, slots=True)
class Validation:
    """Scores of a model on the validation nodes."""

    cross_entropy: float
    """Mean of -log p_y, which decides early stopping."""
    accuracy: float
    """Fraction of nodes whose most probable class is their label."""

    @classmethod
    def of(cls, mean_NC: Tensor, label_N: Tensor, world: World | None = None) -> "Validation":
        """Return the scores of class probabilities (N, C), over the nodes of all processes.

        A softmax can be 0 in floating point. It counts as the smallest normal number, so that one
        node that is far off does not make the cross-entropy infinite.
        """
        least = torch.finfo(mean_NC.dtype).tiny
        label_probability_N = mean_NC.gather(1, label_N.unsqueeze(1)).clamp_min(least)
        sums = [
            float(-label_probability_N.log().double().sum()),
            float((mean_NC.argmax(1) == label_N).sum()),
            float(len(label_N)),
        ]
        cross_entropy, right, count = sums if world is None else world.totals(sums)
        return cls(cross_entropy=cross_entropy / count, accuracy=right / count)


class AbstractTask(ABC):
    """A graph as a source of training losses."""

    data_seconds: float = 0.0
    """Seconds spent waiting for batches so far."""
    roots_seen: int = 0
    """Number of training nodes whose loss has been computed so far, in all processes together."""

    @property
    @abstractmethod
    def num_steps(self) -> int:
        """Number of optimiser steps of an epoch."""

    @abstractmethod
    def losses(
        self,
        model: TrainedPart,
        generator: torch.Generator | None,
        epoch: int,
        *,
        first: int = 0,
    ) -> Iterator[Tensor]:
        """Yield the losses of one epoch's steps, each an estimate of the sum over training nodes.

        If several processes train, each yields an equal part of the same estimate, whose gradient
        reaches what this process has computed.

        Args:
            model: The network, whose parameters change between the steps.
            generator: Source of dropout; None for no dropout.
            epoch: Number of the epoch, counted from 1.
            first: Number of steps to skip because they are done.
        """

    @property
    def rows_fingerprint(self) -> str:
        """Fingerprint of the rows of training; empty for a task without rows."""
        return ""

    @property
    def precompute_seconds(self) -> float:
        """Seconds that building the rows took; 0 for a task without rows."""
        return 0.0

    def facts(self) -> dict[str, Any]:
        """Return facts about the batches for the report; empty for a task without batches."""
        return {}

    @abstractmethod
    def validate(self, model: TrainedPart) -> Validation:
        """Return the scores on the validation nodes; the model does not change."""


class ExactTask(AbstractTask):
    """Training on the whole graph in every step, diffused by power iteration.

    Args:
        graph: Graph with features, labels and a split.
        config: Configuration; uses the sections data and diffusion.
        objective: Loss of the network.
        device: Device of all tensors.
        dtype: Type of all real numbers.
    """

    def __init__(
        self,
        graph: Graph,
        config: RunConfig,
        objective: Objective,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        split = checked_split(graph)
        inputs = model_inputs(graph, config.data.feature_scaling, device, dtype)
        self.inputs = repeated_inputs(inputs)
        self.diffusion = exact_diffusion(graph, config.diffusion, device, dtype)
        self.objective = objective
        self.train_nodes, self.train_labels = labelled(graph, split.train, device)
        self.val_nodes, self.val_labels = labelled(graph, split.val, device)

    def with_objective(self, objective: Objective) -> "ExactTask":
        """Return a task with another objective that shares the features and the diffusion."""
        other = copy(self)
        other.objective, other.roots_seen = objective, 0
        return other

    @property
    def num_steps(self) -> int:
        """Number of optimiser steps of an epoch: 1, which sees all training nodes."""
        return 1

    def losses(  # noqa: D102
        self,
        model: TrainedPart,
        generator: torch.Generator | None,
        epoch: int,
        *,
        first: int = 0,
    ) -> Iterator[Tensor]:
        if first:
            return
        self.roots_seen += len(self.train_nodes)
        noise = None
        if generator is not None:
            hashed = device_rule(self.train_nodes.device).hashed_noise
            noise = Noise.drawn(generator, hashed=hashed)
        output = model(self.inputs, self.diffusion, noise)
        yield self.objective.loss(output, self.train_labels, self.train_nodes)

    @torch.no_grad()
    def validate(self, model: TrainedPart) -> Validation:
        """Return the scores on the validation nodes."""
        mean_NC = self.objective.probabilities(model(self.inputs, self.diffusion))
        return Validation.of(mean_NC[self.val_nodes], self.val_labels)


def checked_split(graph: Graph) -> Split:
    """Return the graph's split.

    Raises:
        GraphError: the graph has no split, or the split has no validation nodes.
    """
    if graph.split is None:
        raise GraphError(f"graph {graph.name!r} has no split, expected one to train on")
    if len(graph.split.val) == 0:
        raise GraphError(
            f"graph {graph.name!r} has no validation nodes, expected at least one for early "
            "stopping: enlarge split.val or mark some nodes as val",
            arguments=("split.val",),
        )
    return graph.split


def labelled(graph: Graph, nodes: NodeIds, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return nodes and their labels as tensors."""
    labels = torch.from_numpy(graph.labels[nodes].astype(np.int64))
    return torch.from_numpy(np.array(nodes)).to(device), labels.to(device)
