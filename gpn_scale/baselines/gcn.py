"""VGCN, a graph convolutional network, and VGCN-Energy, which scores nodes by their energy.

Kipf & Welling (2017), with the architecture of Shchur et al. (2018); energies by Liu et al. (2020).

Shapes: N nodes, C classes.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from gpn_scale.baselines.graph_view import GraphView
from gpn_scale.baselines.network import AbstractLayeredNetwork
from gpn_scale.baselines.options import require_in_range
from gpn_scale.evaluation.scored_prediction import ScoredPrediction


class AbstractGCN(AbstractLayeredNetwork):
    """A network of graph convolutions that predicts with all edges."""

    @property
    def reach(self) -> int:
        """Number of hops over which features act: one per layer."""
        return self.config.encoder.layers

    def logits(self, view: GraphView, generator: torch.Generator | None = None) -> Tensor:  # noqa: D102
        logits_NC: Tensor = self.layers(view, view.edges.transition("sym").__matmul__, generator)
        return logits_NC

    def representation(self, view: GraphView) -> Tensor:  # noqa: D102
        mix = view.edges.transition("sym").__matmul__
        return mix(self.layers.hidden(view.project(self.layers.first), mix))


class VGCN(AbstractGCN):
    """A plain graph convolutional network, without an epistemic score."""

    name = "VGCN"

    def predict_view(self, view: GraphView) -> ScoredPrediction:
        """Return the softmax of the logits."""
        return self.prediction(self.final_logits(view).softmax(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyOptions:
    """Options of `EnergyGCN`."""

    temperature: float = 1.0
    """Temperature T of the energy."""

    def __post_init__(self) -> None:
        allowed = self.temperature > 0.0
        require_in_range("model.temperature", self.temperature, allowed=allowed, expected="above 0")


class EnergyGCN(AbstractGCN):
    """VGCN with the energy -T logsumexp(logits / T) as epistemic score (Liu et al., 2020)."""

    name = "VGCN-Energy"
    Options = EnergyOptions

    def predict_view(self, view: GraphView) -> ScoredPrediction:
        """Return the softmax of the logits, and their energy."""
        logits_NC = self.final_logits(view)
        return self.prediction(logits_NC.softmax(1), energy(logits_NC, self.options.temperature))


def energy(logits_NC: Tensor, temperature: float = 1.0) -> Tensor:
    """Return -T logsumexp(logits / T), (N,), which is high where all logits are small."""
    return -temperature * (logits_NC / temperature).logsumexp(1)
