"""Batch normalisation whose batch may be divided among processes.

Shapes: N rows of this process, H columns.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

Total = Callable[[Tensor], Tensor]
"""The sum of a tensor over all processes, differentiable; every process must call it."""


class BatchNorm(nn.BatchNorm1d):
    """`nn.BatchNorm1d`; with `total`, moments are those of all processes' rows together.

    (`nn.SyncBatchNorm` does the same on GPUs only.)
    """

    total: Total | None = None

    def forward(self, input: Tensor) -> Tensor:
        """(N, H) -> (N, H)."""
        if self.total is None or not self.training:
            return super().forward(input)
        count_1 = self.total(input.new_tensor([float(len(input))]))
        mean_H = self.total(input.sum(0)) / count_1
        centred_NH = input - mean_H
        variance_H = self.total(centred_NH.square().sum(0)) / count_1
        self._remember(mean_H.detach(), variance_H.detach(), count_1)
        factor_H = self.weight * torch.rsqrt(variance_H + self.eps)
        return centred_NH * factor_H + self.bias

    @torch.no_grad()
    def _remember(self, mean_H: Tensor, variance_H: Tensor, count_1: Tensor) -> None:
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        assert self.momentum is not None
        unbiased_H = variance_H * (count_1 / (count_1 - 1.0).clamp_min(1.0))
        self.running_mean.lerp_(mean_H, self.momentum)
        self.running_var.lerp_(unbiased_H, self.momentum)
        self.num_batches_tracked += 1
