"""`DirichletPosterior`: the posterior of a node's class probabilities, in closed form.

Shapes: N nodes, C classes.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

_SERIES_FROM = 30.0
"""Argument above which five terms of Stirling's series reach double precision."""


@dataclass(frozen=True, slots=True)
class DirichletPosterior:
    """Dirichlet distributions, one per node: the uniform prior 1 plus evidence.

    >>> posterior = DirichletPosterior.from_evidence(torch.tensor([[7.0, 1.0]]))
    >>> posterior.alpha_0_N, posterior.mean_NC
    (tensor([10.]), tensor([[0.8000, 0.2000]]))

    Attributes:
        alpha_NC: Concentrations, all at least 1.
    """

    alpha_NC: Tensor

    @classmethod
    def from_evidence(cls, evidence_NC: Tensor) -> "DirichletPosterior":
        """Return the flat prior updated by the evidence: alpha = 1 + evidence."""
        return cls(1.0 + evidence_NC)

    @property
    def alpha_0_N(self) -> Tensor:
        """alpha_0: the number of classes plus the total evidence, (N,)."""
        return self.alpha_NC.sum(-1)

    @property
    def mean_NC(self) -> Tensor:
        """Expected class probabilities alpha / alpha_0."""
        return self.alpha_NC / self.alpha_0_N.unsqueeze(-1)

    def expected_nll(self, label_N: Tensor) -> Tensor:
        """Return E[-log p_y] = digamma(alpha_0) - digamma(alpha_y), (N,).

        The uncertainty-aware cross-entropy (Charpentier et al., 2020), not reduced.
        """
        alpha_y_N = self.alpha_NC.gather(-1, label_N.unsqueeze(-1)).squeeze(-1)
        return torch.digamma(self.alpha_0_N) - torch.digamma(alpha_y_N)

    def entropy(self) -> Tensor:
        """Return the differential entropy, (N,), without the cancellation of the textbook form.

        log B(alpha) + (alpha_0 - C) digamma(alpha_0) - sum (alpha_c - 1) digamma(alpha_c) has terms
        of size alpha_0 log alpha_0 whose sum is of size log alpha_0. Since sum alpha_c = alpha_0,
        +alpha_c can be added to every class term and -alpha_0 to the total's. Each of them then has
        logarithmic size and an accurate series for large arguments.
        """
        num_classes = self.alpha_NC.shape[-1]
        alpha_0_N = self.alpha_0_N
        per_class_N = _class_term(self.alpha_NC).sum(-1)
        return per_class_N + _total_term(alpha_0_N) - num_classes * torch.digamma(alpha_0_N)


def _class_term(a: Tensor) -> Tensor:
    """Return lgamma(a) - (a - 1) digamma(a) + a, for a >= 1."""
    direct = torch.lgamma(a) - (a - 1.0) * torch.digamma(a) + a
    large = a.clamp_min(_SERIES_FROM)
    series = _lgamma_minus_leading(large) - _a_digamma_minus_leading(large) + torch.digamma(large)
    # Leading parts: lgamma ~ (a - 1/2) log a - a, a digamma ~ a log a - 1/2.
    series = series - 0.5 * large.log() + 0.5
    return torch.where(a < _SERIES_FROM, direct, series)


def _total_term(a: Tensor) -> Tensor:
    """Return -lgamma(a) + a digamma(a) - a, for a >= 1."""
    direct = -torch.lgamma(a) + a * torch.digamma(a) - a
    large = a.clamp_min(_SERIES_FROM)
    series = 0.5 * large.log() - 0.5
    series = series - _lgamma_minus_leading(large) + _a_digamma_minus_leading(large)
    return torch.where(a < _SERIES_FROM, direct, series)


def _lgamma_minus_leading(a: Tensor) -> Tensor:
    """Return lgamma(a) - (a - 1/2) log a + a, by Stirling's series."""
    x = 1.0 / (a * a)
    return 0.5 * math.log(2.0 * math.pi) + (1 / 12 - x * (1 / 360 - x * (1 / 1260 - x / 1680))) / a


def _a_digamma_minus_leading(a: Tensor) -> Tensor:
    """Return digamma(a) a - a log a + 1/2, by its asymptotic series."""
    x = 1.0 / (a * a)
    return -(1 / 12 - x * (1 / 120 - x * (1 / 252 - x / 240))) / a
