"""VGCN-BNN: a graph convolutional network with uncertain weights (Bayes by backprop).

Blundell et al. (2015): every weight has a Gaussian posterior, and a prior that is a mixture of a
wide and a narrow Gaussian.

Shapes: N nodes, C classes.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from gpn_scale.baselines.layers import Layers, Mix
from gpn_scale.baselines.model import require_positive, sampled_answer
from gpn_scale.baselines.training import AbstractNetwork, cross_entropy, evaluating
from gpn_scale.baselines.view import View
from gpn_scale.errors import ConfigError
from gpn_scale.evaluation.scored_prediction import ScoredPrediction


@dataclass(frozen=True, slots=True, kw_only=True)
class BayesianOptions:
    """Of `BayesianGCN`; the prior is GPN's appendix's."""

    samples: int = 10
    """Drawn networks of a prediction."""
    prior_share: float = 0.75
    """Of the prior's wide part."""
    prior_wide: float = 1.0
    """Its standard deviation."""
    prior_narrow: float = 1e-6
    """That of the other part."""
    initial_deviation: float = 0.1
    """Of the posterior of every weight."""
    divergence_weight: float = 2e-6
    """Of the divergence from the prior, summed over weights, in the mean loss of a node."""

    def __post_init__(self) -> None:
        require_positive("model.samples", self.samples, "drawn network")
        if not 0.0 < self.prior_share <= 1.0:
            raise ConfigError(f"model.prior_share is {self.prior_share}, expected in (0, 1]")
        for name in ("prior_wide", "prior_narrow", "initial_deviation"):
            if not getattr(self, name) > 0.0:
                raise ConfigError(f"model.{name} is {getattr(self, name)}, expected above 0")
        if self.divergence_weight < 0.0:
            weight = self.divergence_weight
            raise ConfigError(f"model.divergence_weight is {weight}, expected at least 0")


class BayesianLayers(nn.Module):
    """`Layers` whose parameters are means; each has a deviation of its own.

    Args:
        means: Their initial values.
        options: Prior and initial deviation.
    """

    def __init__(self, means: Layers, options: BayesianOptions) -> None:
        super().__init__()
        self.means, self.options = means, options
        self.names = [name for name, part in means.named_parameters() if part.requires_grad]
        start = math.log(math.expm1(options.initial_deviation))  # softplus of it
        self.spread = nn.ParameterList(
            torch.full_like(means.get_parameter(name), start) for name in self.names
        )

    def draw(self, generator: torch.Generator) -> tuple[dict[str, Tensor], Tensor]:
        """Weights from the posterior, and an estimate of its divergence from the prior.

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
        """Log-density of the mixture at every weight."""
        options = self.options
        wide = _log_normal(weight, options.prior_wide) + math.log(options.prior_share)
        if options.prior_share == 1.0:
            return wide
        narrow = _log_normal(weight, options.prior_narrow) + math.log1p(-options.prior_share)
        return torch.logaddexp(wide, narrow)

    def forward(self, view: View, mix: Mix, weights: dict[str, Tensor] | None = None) -> Tensor:
        """Logits of the network with these weights, (N, C); without any, with the means."""
        found: Tensor = functional_call(self.means, weights or {}, (view, mix))
        return found


class BayesianGCN(AbstractNetwork):
    """VGCN with a distribution over its weights, half as wide: each has two parameters."""

    name = "VGCN-BNN"
    Options = BayesianOptions

    @property
    def reach(self) -> int:
        """A hop per layer."""
        return self.config.encoder.layers

    def build(self, view: View, generator: torch.Generator) -> nn.Module:  # noqa: D102
        width = view.feature_rows.features.shape[1]
        means = Layers(width, view.graph.num_classes, self.config.encoder, generator)
        return BayesianLayers(means, self.options)

    def losses(self, view: View, generator: torch.Generator, epoch: int) -> Iterator[Tensor]:  # noqa: D102
        weights, divergence = self.layers.draw(generator)
        fit = cross_entropy(self._logits(view, weights), view.training)
        yield fit + self.options.divergence_weight * divergence

    def validation_loss(self, view: View) -> float:
        """Of the mean weights, which draws nothing."""
        return float(cross_entropy(self._logits(view, None), view.validation))

    def predict_view(self, view: View) -> ScoredPrediction:
        """Mean and variance of drawn networks."""
        generator = self.generator(2)
        with evaluating(self.module):
            draws = (self.layers.draw(generator)[0] for _ in range(self.options.samples))
            return sampled_answer(self, (self._logits(view, draw).softmax(1) for draw in draws))

    @property
    def layers(self) -> BayesianLayers:
        """The trained network."""
        assert isinstance(self.module, BayesianLayers)
        return self.module

    def _logits(self, view: View, weights: dict[str, Tensor] | None) -> Tensor:
        found: Tensor = self.layers(view, view.edges.transition("sym").__matmul__, weights)
        return found


def _log_normal(value: Tensor, deviation: float) -> Tensor:
    return -0.5 * (value / deviation).square() - math.log(deviation * math.sqrt(2.0 * math.pi))
