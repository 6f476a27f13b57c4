"""Batch normalisation as a shift and a scale, over rows that may be divided among ranks.

Shapes: N rows of this rank, H columns.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

Total = Callable[[Tensor], Tensor]
"""Sums a tensor over all ranks; every rank must call it."""


@dataclass(frozen=True, slots=True)
class Moments:
    """The moments that columns are normalised by.

    >>> BatchNorm(2).eval().moments(torch.ones(3, 2), block=3).mean_H  # the running mean
    tensor([0., 0.])
    """

    mean_H: Tensor
    inverse_deviation_H: Tensor
    count: float | Tensor | None
    """Rows of all ranks that the moments come from; None for running moments. A sum over ranks
    stays on the device, because reading it would wait for it."""


class BatchNorm(nn.BatchNorm1d):
    """`nn.BatchNorm1d` that exposes its moments and leaves their use to `nn/hidden.py`.

    With `total`, the moments are those of all ranks' rows together (`nn.SyncBatchNorm` supports
    that on GPUs only).

    >>> moments = BatchNorm(1).moments(torch.tensor([[1.0], [3.0]]), block=2)
    >>> moments.mean_H, moments.count
    (tensor([2.]), 2.0)
    """

    total: Total | None = None

    @torch.no_grad()
    def moments(self, input_NH: Tensor, block: int) -> Moments:
        """Return the moments of the rows in training mode, else the running ones.

        Sums are taken over blocks of rows, in float64.
        """
        assert self.running_mean is not None
        assert self.running_var is not None
        if not self.training:
            deviation_H = (self.running_var + self.eps).sqrt()
            return Moments(self.running_mean, 1.0 / deviation_H, None)
        count, mean_H, variance_H = self._of_all(*_local_moments(input_NH, block))
        self._remember(mean_H, variance_H, count)
        dtype = input_NH.dtype
        inverse_H = torch.rsqrt(variance_H + self.eps)
        return Moments(mean_H.to(dtype), inverse_H.to(dtype), count)

    def summed(self, sums: Tensor) -> Tensor:
        """Return the sums over all ranks."""
        return sums if self.total is None else self.total(sums)

    def _of_all(
        self, count: int, mean_H: Tensor, variance_H: Tensor
    ) -> tuple[float | Tensor, Tensor, Tensor]:
        """Combine the moments of this rank's rows with those of the other ranks."""
        if self.total is None:
            return float(count), mean_H, variance_H
        ones_H = torch.ones_like(mean_H)
        sums_3H = torch.stack([ones_H, mean_H, variance_H + mean_H.square()]) * count
        count_H, sum_H, square_H = self.total(sums_3H)
        mean_H = sum_H / count_H
        variance_H = (square_H / count_H - mean_H.square()).clamp_min(0.0)
        return count_H[0], mean_H, variance_H

    def _remember(self, mean_H: Tensor, variance_H: Tensor, count: float | Tensor) -> None:
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        assert self.momentum is not None
        others = count - 1.0
        least = others.clamp_min(1.0) if isinstance(others, Tensor) else max(others, 1.0)
        unbiased_H = variance_H * (count / least)
        self.running_mean.lerp_(mean_H.to(self.running_mean.dtype), self.momentum)
        self.running_var.lerp_(unbiased_H.to(self.running_var.dtype), self.momentum)
        self.num_batches_tracked += 1


def _local_moments(input_NH: Tensor, block: int) -> tuple[int, Tensor, Tensor]:
    """Return number of rows, mean and variance, computed by blocks to avoid cancellation."""
    count = len(input_NH)
    if count == 0:
        zero_H = input_NH.new_zeros(input_NH.shape[1], dtype=torch.float64)
        return 0, zero_H, zero_H
    if count <= block:
        mean_H = input_NH.mean(0)
        variance_H = (input_NH - mean_H).square_().mean(0)
        return count, mean_H.double(), variance_H.double()
    weights, means, variances = [], [], []
    scratch_MH = torch.empty_like(input_NH[:block])
    for rows_MH in torch.split(input_NH, block):
        mean_H = rows_MH.mean(0)
        # `torch.var_mean` takes ten times as long.
        centred_MH = torch.sub(rows_MH, mean_H, out=scratch_MH[: len(rows_MH)])
        variances.append(centred_MH.square_().mean(0))
        means.append(mean_H)
        weights.append(len(rows_MH) / count)
    mean_BH, variance_BH = torch.stack(means).double(), torch.stack(variances).double()
    weight_B1 = mean_BH.new_tensor(weights).unsqueeze(1)
    mean_H = (weight_B1 * mean_BH).sum(0)
    spread_BH = variance_BH + (mean_BH - mean_H).square()
    return count, mean_H, (weight_B1 * spread_BH).sum(0)
