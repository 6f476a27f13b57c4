"""RGCN: hidden layers are Gaussians, and uncertain neighbours count less (Zhu et al., 2019).

Shapes: N nodes, C classes, H hidden units.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from gpn_scale.baselines.layers import dropout, glorot, input_map
from gpn_scale.baselines.training import AbstractNetwork, cross_entropy, evaluating
from gpn_scale.baselines.view import View
from gpn_scale.config import EncoderConfig
from gpn_scale.errors import ConfigError
from gpn_scale.evaluation.scored_prediction import ScoredPrediction


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustOptions:
    """Of `RobustGCN`."""

    attention: float = 1.0
    """gamma: how fast the weight of a neighbour falls with its variance."""
    divergence_weight: float = 5e-4
    """Of the first layer's divergence from unit Gaussians, summed over nodes.

    A mean over nodes is too weak: variances then vanish, and with them what is robust.
    """
    norm_weight: float = 5e-4
    """Of the first layer's squared weights; the model has no other weight decay."""

    def __post_init__(self) -> None:
        for name in ("attention", "divergence_weight", "norm_weight"):
            if getattr(self, name) < 0.0:
                raise ConfigError(f"model.{name} is {getattr(self, name)}, expected at least 0")


class RobustLayers(nn.Module):
    """Layers of means and variances, weighted by attention, summed over neighbours.

    Args:
        num_features: F.
        num_classes: C.
        shape: Width, number of layers and dropout are used.
        attention: gamma.
        generator: Source of the initial values.
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        shape: EncoderConfig,
        attention: float,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        widths = [*[shape.hidden] * (shape.layers - 1), num_classes]
        self.dropout, self.attention = shape.dropout, attention
        self.first_mean = input_map(num_features, widths[0], generator)
        self.first_variance = input_map(num_features, widths[0], generator)
        self.means = nn.ParameterList(glorot(pair, generator) for pair in pairwise(widths))
        self.variances = nn.ParameterList(glorot(pair, generator) for pair in pairwise(widths))

    def first(self, view: View) -> tuple[Tensor, Tensor]:
        """Means and variances of the first layer, before any sum; (N, H) each."""
        mean_NH = functional.elu(view.project(self.first_mean))
        return mean_NH, view.project(self.first_variance).relu()

    def forward(
        self,
        view: View,
        first: tuple[Tensor, Tensor],
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Means and variances of the logits, (N, C) each; with a generator, units are dropped."""
        mean_NH, variance_NH = self._summed(view, *first)
        for mean_HH, variance_HH in zip(self.means, self.variances, strict=True):
            mean_NH = dropout(mean_NH, self.dropout, generator)
            variance_NH = dropout(variance_NH, self.dropout, generator)
            mean_NH = functional.elu(mean_NH @ mean_HH)
            variance_NH = (variance_NH @ variance_HH).relu()
            mean_NH, variance_NH = self._summed(view, mean_NH, variance_NH)
        return mean_NH, variance_NH

    def _summed(self, view: View, mean_NH: Tensor, variance_NH: Tensor) -> tuple[Tensor, Tensor]:
        attention_NH = (-self.attention * variance_NH).exp()
        return (
            view.edges.transition("sym") @ (mean_NH * attention_NH),
            view.edges.squared @ (variance_NH * attention_NH.square()),
        )


class RobustGCN(AbstractNetwork):
    """Logits are drawn from Gaussians in training and are their means in prediction.

    Deviation: units of hidden layers are dropped, not features (which changed nothing when tried),
    and there is no batch-norm, not even with ogbn-arxiv's recipe.
    """

    name = "RGCN"
    revision = 1
    Options = RobustOptions

    @property
    def reach(self) -> int:
        """A hop per layer."""
        return self.config.encoder.layers

    def build(self, view: View, generator: torch.Generator) -> nn.Module:  # noqa: D102
        width, classes = view.feature_rows.features.shape[1], view.graph.num_classes
        encoder = self.config.encoder
        return RobustLayers(width, classes, encoder, self.options.attention, generator)

    def losses(self, view: View, generator: torch.Generator, epoch: int) -> Iterator[Tensor]:  # noqa: D102
        layers, options = self.layers, self.options
        first = layers.first(view)
        mean_NC, variance_NC = layers(view, first, generator)
        noise_NC = torch.empty_like(mean_NC).normal_(generator=generator)
        logits_NC = mean_NC + noise_NC * (variance_NC + 1e-8).sqrt()
        weights = (layers.first_mean.weight, layers.first_variance.weight)
        norm = sum((weight.square().sum() for weight in weights), torch.zeros(()))
        yield (
            cross_entropy(logits_NC, view.training)
            + options.divergence_weight * unit_divergence(*first).sum()
            + options.norm_weight * norm
        )

    def validation_loss(self, view: View) -> float:  # noqa: D102
        return float(cross_entropy(self._mean_logits(view), view.validation))

    def predict_view(self, view: View) -> ScoredPrediction:
        """Softmax of the means."""
        with evaluating(self.module):
            return self.answer(self._mean_logits(view).softmax(1))

    @property
    def layers(self) -> RobustLayers:
        """The trained network."""
        assert isinstance(self.module, RobustLayers)
        return self.module

    def _mean_logits(self, view: View) -> Tensor:
        mean_NC: Tensor = self.layers(view, self.layers.first(view))[0]
        return mean_NC


def unit_divergence(mean_NH: Tensor, variance_NH: Tensor) -> Tensor:
    """KL[N(mean, variance) || N(0, 1)] of every node, (N,), mean over its units."""
    terms_NH = mean_NH.square() + variance_NH - (variance_NH + 1e-8).log() - 1.0
    return 0.5 * terms_NH.mean(1)
