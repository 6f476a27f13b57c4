"""Evidence of single nodes -> evidence aggregated over soft neighbourhoods, exactly.

Shapes: N nodes, C classes.
"""

from typing import Any

import torch
from torch import Tensor

from gpn_scale.nn.sparse import SparseMatrix

_LOG_LIMIT = 80.0


def from_logs(values_NC: Tensor) -> Tensor:
    """Diffused logarithms -> evidence that is finite in float32, and so are sums over classes.

    Rows of `sym` can sum to more than 1, which makes products of what should be means.
    """
    return values_NC.clamp(-_LOG_LIMIT, _LOG_LIMIT).exp()


class PowerIteration:
    """K steps of B <- (1 - t) S B + t beta from B = beta (APPNP; Klicpera et al., 2019).

    The map is linear, so its gradient is the same iteration with the transposed matrix: nothing is
    kept for the backward pass. As K grows the rows tend to personalised PageRank,
    t (I - (1 - t) S)^-1.

    Args:
        transition: S, (N, N).
        teleport: t.
        steps: K.
        in_logs: Whether logarithms of evidence are averaged instead: geometric means.
    """

    def __init__(
        self, transition: SparseMatrix, *, teleport: float, steps: int, in_logs: bool = False
    ) -> None:
        self.transition = transition
        self.teleport = teleport
        self.steps = steps
        self.in_logs = in_logs

    def __call__(self, evidence_NC: Tensor) -> Tensor:
        """Aggregated evidence, (N, C) -> (N, C); differentiable."""
        if self.in_logs:
            return from_logs(self.linear(evidence_NC.log()))
        return self.linear(evidence_NC)

    def linear(self, values_NC: Tensor) -> Tensor:
        """The map itself, of any values."""
        aggregated_NC: Tensor = _Iterate.apply(values_NC, self)  # type: ignore[no-untyped-call]
        return aggregated_NC

    def iterate(self, start_NC: Tensor, matrix: SparseMatrix) -> Tensor:
        """The K steps with `matrix`, outside of autograd."""
        current_NC = start_NC.clone()  # autograd wants no alias of its input, even for K = 0
        for _ in range(self.steps):
            current_NC = matrix.multiply_add(
                current_NC, start_NC, scale=1.0 - self.teleport, weight=self.teleport
            )
        return current_NC


class _Iterate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, evidence_NC: Tensor, diffusion: PowerIteration) -> Tensor:
        ctx.diffusion = diffusion
        return diffusion.iterate(evidence_NC, diffusion.transition)

    @staticmethod
    def backward(ctx: Any, gradient_NC: Tensor) -> tuple[Tensor, None]:
        diffusion = ctx.diffusion
        transposed = diffusion.transition.transposed()
        return diffusion.iterate(gradient_NC.contiguous(), transposed), None
