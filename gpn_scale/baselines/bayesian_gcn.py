"""VGCN-BNN: a graph convolutional network with a distribution over its weights.

Bayes by backprop (Blundell et al., 2015): every weight has a Gaussian posterior, and a prior
that is a mixture of a wide and a narrow Gaussian.

Shapes: N nodes, C classes.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from gpn_scale.baselines.graph_view import GraphView
from gpn_scale.baselines.layers import Layers, Mix
from gpn_scale.baselines.network import AbstractNetwork
from gpn_scale.baselines.options import require_in_range, require_positive
from gpn_scale.baselines.predictions import sampled_prediction
from gpn_scale.baselines.training import cross_entropy, evaluating
from gpn_scale.evaluation.scored_prediction import ScoredPrediction


@dataclass(frozen=True, slots=True, kw_only=True)
class BayesianOptions:
    """Options of `BayesianGCN`; the prior is that of GPN's appendix."""

    samples: int = 10
    """Number of networks that are drawn for a prediction."""
    prior_fraction: float = 0.75
    """Mixture weight of the prior's wide Gaussian."""
    prior_wide: float = 1.0
    """Standard deviation of the prior's wide Gaussian."""
    prior_narrow: float = 1e-6
    """Standard deviation of the prior's narrow Gaussian."""
    initial_deviation: float = 0.1
    """Initial standard deviation of every weight's posterior."""
    divergence_weight: float = 2e-6
    """Weight of the divergence from the prior, summed over weights, in the mean loss per node."""

    def __post_init__(self) -> None:
        require_positive("model.samples", self.samples, "drawn network")
        fraction, weight = self.prior_fraction, self.divergence_weight
        allowed = 0.0 < fraction <= 1.0
        require_in_range("model.prior_fraction", fraction, allowed=allowed, expected="in (0, 1]")
        for name in ("prior_wide", "prior_narrow", "initial_deviation"):
            deviation = getattr(self, name)
            require_in_range(
                f"model.{name}", deviation, allowed=deviation > 0.0, expected="above 0"
            )
        allowed = not weight < 0.0
        require_in_range("model.divergence_weight", weight, allowed=allowed, expected="at least 0")


class BayesianLayers(nn.Module):
    """`Layers` whose parameters are means of Gaussians, each with its own deviation.

    Args:
        means: Layers with the initial means.
        options: Prior and initial deviation.
    """

    def __init__(self, means: Layers, options: BayesianOptions) -> None:
        super().__init__()
        self.means, self.options = means, options
        self.names = [name for name, part in means.named_parameters() if part.requires_grad]
        start = math.log(math.expm1(options.initial_deviation))  # inverse of softplus
        self.spread = nn.ParameterList(
            torch.full_like(means.get_parameter(name), start) for name in self.names
        )

    def draw(self, generator: torch.Generator) -> tuple[dict[str, Tensor], Tensor]:
        """Draw weights from the posterior, and estimate its divergence from the prior.

        KL[q || p] = -H[q] - E[log p(w)]: the entropy is exact, the expectation has one sample.
        """
        weights, divergence = {}, torch.zeros((), device=generator.device)
        for name, raw in zip(self.names, self.spread, strict=True):
            deviation = functional.softplus(raw)
            noise = torch.empty_like(raw).normal_(generator=generator)
            weights[name] = self.means.get_parameter(name) + deviation * noise
            entropy = (0.5 * math.log(2.0 * math.pi * math.e) + deviation.log()).sum()
            divergence = divergence - entropy - self.log_prior(weights[name]).sum()
        return weights, divergence

    def log_prior(self, weight: Tensor) -> Tensor:
        """Return the log-density of the mixture at every weight."""
        options = self.options
        wide = _log_normal(weight, options.prior_wide) + math.log(options.prior_fraction)
        if options.prior_fraction == 1.0:
            return wide
        narrow = _log_normal(weight, options.prior_narrow) + math.log1p(-options.prior_fraction)
        return torch.logaddexp(wide, narrow)

    def forward(
        self, view: GraphView, mix: Mix, weights: dict[str, Tensor] | None = None
    ) -> Tensor:
        """Return the logits for `weights`, (N, C); without them, for the mean weights."""
        logits_NC: Tensor = functional_call(self.means, weights or {}, (view, mix))
        return logits_NC


class BayesianGCN(AbstractNetwork):
    """VGCN with a distribution over its weights.

    It has half the width of VGCN, since each weight has two parameters.
    """

    name = "VGCN-BNN"
    Options = BayesianOptions

    @property
    def reach(self) -> int:
        """Number of hops over which features act: one per layer."""
        return self.config.encoder.layers

    def build(self, view: GraphView, generator: torch.Generator) -> nn.Module:  # noqa: D102
        width = view.feature_rows.features.shape[1]
        means = Layers(width, view.graph.num_classes, self.config.encoder, generator)
        return BayesianLayers(means, self.options)

    def losses(self, view: GraphView, generator: torch.Generator, epoch: int) -> Iterator[Tensor]:  # noqa: D102
        weights, divergence = self.layers.draw(generator)
        fit = cross_entropy(self._logits(view, weights), view.training)
        yield fit + self.options.divergence_weight * divergence

    def validation_loss(self, view: GraphView) -> float:
        """Return the cross-entropy of the mean weights, without random draws."""
        return float(cross_entropy(self._logits(view, None), view.validation))

    def predict_view(self, view: GraphView) -> ScoredPrediction:
        """Return mean and variance of drawn networks."""
        generator = self.generator(2)
        with evaluating(self.module):
            draws = (self.layers.draw(generator)[0] for _ in range(self.options.samples))
            samples = (self._logits(view, draw).softmax(1) for draw in draws)
            return sampled_prediction(self.name, samples)

    @property
    def layers(self) -> BayesianLayers:
        """The trained network."""
        assert isinstance(self.module, BayesianLayers)
        return self.module

    def _logits(self, view: GraphView, weights: dict[str, Tensor] | None) -> Tensor:
        logits_NC: Tensor = self.layers(view, view.edges.transition("sym").__matmul__, weights)
        return logits_NC


def _log_normal(value: Tensor, deviation: float) -> Tensor:
    return -0.5 * (value / deviation).square() - math.log(deviation * math.sqrt(2.0 * math.pi))
