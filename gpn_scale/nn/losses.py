"""Training loss, a pure function that sums over the labelled nodes it is given.

Shapes: N nodes, C classes, S = C + 1 columns: the classes, then their total.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gpn_scale.device import device_rule
from gpn_scale.nn.posterior import DirichletPosterior

_LEADING_FROM = 1e8
"""Concentration above which the leading terms of an entropy are exact to 1e-8."""


def bayesian_loss(
    posterior: DirichletPosterior, label_N: Tensor, *, entropy_weight: float
) -> Tensor:
    """Return the sum over nodes of E[-log p_y] - entropy_weight * H[Dir(alpha)]; a scalar.

    Equation 7 of the GPN paper (Stadler et al., 2021): fit the label and stay as spread out as the
    data allow.

    >>> import torch
    >>> unknown = DirichletPosterior(torch.ones(3, 2))  # three nodes, no evidence
    >>> loss = bayesian_loss(unknown, torch.tensor([0, 1, 1]), entropy_weight=0.1)
    >>> round(float(loss), 3)
    3.0
    """
    if device_rule(label_N.device).whole_rows:
        loss: Tensor = _BayesianLoss.apply(  # type: ignore[no-untyped-call]
            posterior.alpha_NC, label_N, entropy_weight
        )
        return loss
    return (posterior.expected_nll(label_N) - entropy_weight * posterior.entropy()).sum()


class _BayesianLoss(torch.autograd.Function):
    """The same in a third of the operations, in float64, with its gradient in closed form.

    With t(a) = lgamma(a) - (a - 1) digamma(a) + a, the entropy is sum t(alpha_c) - t(alpha_0) +
    (1 - C) digamma(alpha_0), in which all terms are of logarithmic size. Its derivative by alpha_c
    is (alpha_0 - C) trigamma(alpha_0) - (alpha_c - 1) trigamma(alpha_c).
    """

    @staticmethod
    def forward(ctx: Any, alpha_NC: Tensor, label_N: Tensor, entropy_weight: float) -> Tensor:
        wide_NC = alpha_NC.double()
        alpha_NS = torch.cat([wide_NC, wide_NC.sum(1, keepdim=True)], dim=1)
        label_N1 = label_N.unsqueeze(1)
        ctx.save_for_backward(alpha_NS, label_N1)
        ctx.entropy_weight, ctx.dtype = entropy_weight, alpha_NC.dtype
        digamma_NS = torch.digamma(alpha_NS)
        term_NS = _entropy_term(alpha_NS, digamma_NS)
        total_N1, term_0_N1 = digamma_NS[:, -1:], term_NS[:, -1:]
        num_classes = alpha_NC.shape[1]
        entropy_N1 = term_NS.sum(1, keepdim=True).sub_(term_0_N1, alpha=2.0)
        entropy_N1.add_(total_N1, alpha=1.0 - num_classes)
        nll_N1 = total_N1 - digamma_NS.gather(1, label_N1)
        return nll_N1.sub_(entropy_N1, alpha=entropy_weight).sum().to(alpha_NC.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        alpha_NS, label_N1 = ctx.saved_tensors
        num_classes, weight = alpha_NS.shape[1] - 1, ctx.entropy_weight
        trigamma_NS = torch.polygamma(1, alpha_NS)
        total_N1, alpha_0_N1 = trigamma_NS[:, -1:], alpha_NS[:, -1:]
        # d/d alpha_c of the first term of the loss, and of the entropy's part in alpha_0.
        common_N1 = total_N1 * (alpha_0_N1 - num_classes).mul_(-weight).add_(1.0)
        own_NC = (alpha_NS[:, :-1] - 1.0).mul_(weight).mul_(trigamma_NS[:, :-1]).add_(common_N1)
        own_NC.scatter_add_(1, label_N1, -trigamma_NS.gather(1, label_N1))
        return own_NC.mul_(grad).to(ctx.dtype), None, None


def _entropy_term(alpha_NS: Tensor, digamma_NS: Tensor) -> Tensor:
    """Return t(alpha), for alpha >= 1; for large arguments, its leading terms."""
    direct_NS = torch.lgamma(alpha_NS).addcmul_(alpha_NS - 1.0, digamma_NS, value=-1.0)
    leading_NS = alpha_NS.log().add_(1.0 + math.log(2.0 * math.pi)).mul_(0.5)
    return torch.where(alpha_NS < _LEADING_FROM, direct_NS.add_(alpha_NS), leading_NS)
