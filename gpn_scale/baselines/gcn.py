"""VGCN, a graph convolutional network, and its energy as epistemic score.

Kipf & Welling (2017), in the shape of Shchur et al. (2018); energies by Liu et al. (2020).

Shapes: N nodes, C classes.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from gpn_scale.baselines.layers import Layers
from gpn_scale.baselines.training import AbstractNetwork, cross_entropy, evaluating
from gpn_scale.baselines.view import View
from gpn_scale.errors import ConfigError
from gpn_scale.evaluation.scored_prediction import ScoredPrediction


class AbstractLogits(AbstractNetwork):
    """A network whose softmax is trained by cross-entropy."""

    @abstractmethod
    def logits(self, view: View, generator: torch.Generator | None = None) -> Tensor:
        """(N, C); with a generator, as in training."""

    def losses(self, view: View, generator: torch.Generator, epoch: int) -> Iterator[Tensor]:  # noqa: D102
        yield cross_entropy(self.logits(view, generator), view.training)

    def validation_loss(self, view: View) -> float:  # noqa: D102
        return float(cross_entropy(self.logits(view), view.validation))

    def final_logits(self, view: View) -> Tensor:
        """Those of prediction, (N, C)."""
        with evaluating(self.module):
            return self.logits(view)


class AbstractLayers(AbstractLogits):
    """A network of `Layers`."""

    def build(self, view: View, generator: torch.Generator) -> Layers:  # noqa: D102
        width = view.feature_rows.features.shape[1]
        return Layers(width, view.graph.num_classes, self.config.encoder, generator)

    @property
    def layers(self) -> Layers:
        """The trained network."""
        assert isinstance(self.module, Layers)
        return self.module


class AbstractGCN(AbstractLayers):
    """A network with graph convolutions; it predicts over all edges."""

    @property
    def reach(self) -> int:
        """A hop per layer."""
        return self.config.encoder.layers

    def logits(self, view: View, generator: torch.Generator | None = None) -> Tensor:  # noqa: D102
        found: Tensor = self.layers(view, view.edges.transition("sym").__matmul__, generator)
        return found


class VGCN(AbstractGCN):
    """A plain graph convolutional network; it has no epistemic score."""

    name = "VGCN"

    def predict_view(self, view: View) -> ScoredPrediction:
        """Softmax."""
        return self.answer(self.final_logits(view).softmax(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyOptions:
    """Of `EnergyGCN`."""

    temperature: float = 1.0
    """Of the energy."""

    def __post_init__(self) -> None:
        if not self.temperature > 0.0:
            raise ConfigError(f"model.temperature is {self.temperature}, expected above 0")


class EnergyGCN(AbstractGCN):
    """VGCN with the energy -T logsumexp(logits / T) as epistemic score (Liu et al., 2020)."""

    name = "VGCN-Energy"
    Options = EnergyOptions

    def predict_view(self, view: View) -> ScoredPrediction:
        """Softmax and energy."""
        logits_NC = self.final_logits(view)
        return self.answer(logits_NC.softmax(1), energy(logits_NC, self.options.temperature))


def energy(logits_NC: Tensor, temperature: float = 1.0) -> Tensor:
    """-T logsumexp(logits / T), (N,): high where no class is spoken for."""
    return -temperature * (logits_NC / temperature).logsumexp(1)
