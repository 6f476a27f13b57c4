"""RGCN: Gaussian hidden layers in which uncertain neighbours count less (Zhu et al., 2019).

Shapes: N nodes, C classes, H hidden units.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from gpn_scale.baselines.graph_view import GraphView
from gpn_scale.baselines.layers import dropout, glorot, input_map
from gpn_scale.baselines.network import AbstractNetwork
from gpn_scale.baselines.options import require_in_range
from gpn_scale.baselines.training import cross_entropy, evaluating
from gpn_scale.config import EncoderConfig
from gpn_scale.evaluation.scored_prediction import ScoredPrediction


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustOptions:
    """Options of `RobustGCN`."""

    attention: float = 1.0
    """Rate gamma at which the weight of a neighbour falls with its variance."""
    divergence_weight: float = 5e-4
    """Weight of the first layer's divergence from unit Gaussians, summed over nodes.

    A mean over nodes is too weak: variances then vanish, and the model is no longer robust.
    """
    norm_weight: float = 5e-4
    """Weight of the first layer's squared weights; the model has no other weight decay."""

    def __post_init__(self) -> None:
        for name in ("attention", "divergence_weight", "norm_weight"):
            value = getattr(self, name)
            require_in_range(f"model.{name}", value, allowed=not value < 0.0, expected="at least 0")


class RobustLayers(nn.Module):
    """Layers of means and variances that are weighted by attention and summed over neighbours.

    Args:
        num_features: Number of features.
        num_classes: Number of classes C.
        shape: Width, number of layers and dropout; other fields are ignored.
        attention: Rate gamma of the attention weights exp(-gamma variance).
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

    def first(self, view: GraphView) -> tuple[Tensor, Tensor]:
        """Return means and variances of the first layer before any sum, (N, H) each."""
        mean_NH = functional.elu(view.project(self.first_mean))
        return mean_NH, view.project(self.first_variance).relu()

    def forward(
        self,
        view: GraphView,
        first: tuple[Tensor, Tensor],
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return means and variances of the logits, (N, C) each.

        Hidden units are dropped if a generator is given.
        """
        mean_NH, variance_NH = self._summed(view, *first)
        for mean_HH, variance_HH in zip(self.means, self.variances, strict=True):
            mean_NH = dropout(mean_NH, self.dropout, generator)
            variance_NH = dropout(variance_NH, self.dropout, generator)
            mean_NH = functional.elu(mean_NH @ mean_HH)
            variance_NH = (variance_NH @ variance_HH).relu()
            mean_NH, variance_NH = self._summed(view, mean_NH, variance_NH)
        return mean_NH, variance_NH

    def _summed(
        self, view: GraphView, mean_NH: Tensor, variance_NH: Tensor
    ) -> tuple[Tensor, Tensor]:
        attention_NH = (-self.attention * variance_NH).exp()
        return (
            view.edges.transition("sym") @ (mean_NH * attention_NH),
            view.edges.squared @ (variance_NH * attention_NH.square()),
        )


class RobustGCN(AbstractNetwork):
    """A network that draws logits from Gaussians in training and predicts with their means.

    Deviation: hidden units are dropped instead of features (which made no difference when tried),
    and there is no batch-norm, not even with the recipe of ogbn-arxiv.
    """

    name = "RGCN"
    revision = 1
    Options = RobustOptions

    @property
    def reach(self) -> int:
        """Number of hops over which features act: one per layer."""
        return self.config.encoder.layers

    def build(self, view: GraphView, generator: torch.Generator) -> nn.Module:  # noqa: D102
        width, classes = view.feature_rows.features.shape[1], view.graph.num_classes
        encoder = self.config.encoder
        return RobustLayers(width, classes, encoder, self.options.attention, generator)

    def losses(self, view: GraphView, generator: torch.Generator, epoch: int) -> Iterator[Tensor]:  # noqa: D102
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

    def validation_loss(self, view: GraphView) -> float:  # noqa: D102
        return float(cross_entropy(self._mean_logits(view), view.validation))

    def predict_view(self, view: GraphView) -> ScoredPrediction:
        """Return the softmax of the mean logits."""
        with evaluating(self.module):
            return self.prediction(self._mean_logits(view).softmax(1))

    @property
    def layers(self) -> RobustLayers:
        """The trained network."""
        assert isinstance(self.module, RobustLayers)
        return self.module

    def _mean_logits(self, view: GraphView) -> Tensor:
        mean_NC: Tensor = self.layers(view, self.layers.first(view))[0]
        return mean_NC


def unit_divergence(mean_NH: Tensor, variance_NH: Tensor) -> Tensor:
    """Return KL[N(mean, variance) || N(0, 1)] of every node, averaged over its units; (N,)."""
    terms_NH = mean_NH.square() + variance_NH - (variance_NH + 1e-8).log() - 1.0
    return 0.5 * terms_NH.mean(1)
