"""Fused hidden layer: [batch-norm,] ReLU, dropout and linear map, in blocks that stay in cache.

Only the input of a layer is saved; the backward pass recomputes the rest. As separate operations,
every layer saves twice as much and passes through memory a dozen times; mapping fresh pages alone
took a quarter of a step.

With x the input, m and v its moments, f = gamma / sqrt(v + eps), k in {0, 1} the kept units and s
the scale that compensates for dropped ones:

    y = f x + (beta - f m),    a = k max(y, 0),    out = s a W^T + bias.

Backward, from G = d/d out, with sums over the rows of all ranks and n the number of these rows:

    g = s (G W) [a > 0],    d/d beta = sum g,    d/d gamma = sum g u,
    d/d x = f (g - (sum g) / n - u (sum g u) / n),    u = (x - m) / sqrt(v + eps),

where the last two terms of d/d x appear only if the moments are those of the rows.

Shapes: N rows of this rank, M rows of a block, H hidden units, O outputs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from gpn_scale.nn.noise import NOISE_ROWS, Noise
from gpn_scale.nn.normalisation import BatchNorm, Moments

_CACHE_ELEMENTS = 1 << 18
"""Elements of one array of a block; chosen by measurement, with 1 and 2 threads."""


@dataclass(frozen=True, slots=True)
class Dropout:
    """The units of one layer that a step drops; the fraction is rounded to 16 bits.

    Drawing 64 bits for every unit would take a quarter of a step.

    >>> Dropout(Noise(rng_seed=1), fraction=0.5, depth=0).scale
    2.0
    """

    noise: Noise
    fraction: float
    depth: int

    @property
    def level(self) -> int:
        """The 16-bit threshold: units that draw a smaller number are dropped."""
        return min(round(self.fraction * 2**16), 2**16 - 1)

    @property
    def scale(self) -> float:
        """The factor of the kept units that preserves the mean."""
        return 1.0 / (1.0 - self.level / 2**16)

    def apply_(self, values_MH: Tensor, scratch_MH: Tensor, start: int) -> None:
        """Set dropped units to 0, in place; `start` is the number of the first row."""
        rows, width = values_MH.shape
        scratch_MH.copy_(self.noise.from_row(start).bits(self.depth, rows, width, values_MH.device))
        _zero_up_to(values_MH, scratch_MH, self.level - 2**15 - 0.5)


def hidden_layer(
    input_NH: Tensor, linear: nn.Linear, norm: BatchNorm | None, dropout: Dropout | None
) -> Tensor:
    """Return the layer's output, (N, H) -> (N, O); it can be differentiated once.

    >>> linear = nn.Linear(2, 1)
    >>> linear.load_state_dict({"weight": torch.ones(1, 2), "bias": torch.zeros(1)})
    <All keys matched successfully>
    >>> hidden_layer(torch.tensor([[-1.0, 3.0]]), linear, norm=None, dropout=None).tolist()
    [[3.0]]
    """
    block = block_rows(input_NH)
    moments = None if norm is None else norm.moments(input_NH.detach(), block)
    out: Tensor = _HiddenLayer.apply(  # type: ignore[no-untyped-call]
        input_NH,
        None if norm is None else norm.weight,
        None if norm is None else norm.bias,
        linear.weight,
        linear.bias,
        _Layer(norm, moments, dropout, block),
    )
    return out


def block_rows(input_NH: Tensor) -> int:
    """Return the rows of a block that stays in cache: a multiple of `NOISE_ROWS`.

    >>> block_rows(torch.empty(10_000, 64))
    4096
    """
    return NOISE_ROWS * max(1, _CACHE_ELEMENTS // (NOISE_ROWS * max(1, input_NH.shape[1])))


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """Inputs of both passes besides the tensors that have a gradient."""

    norm: BatchNorm | None
    moments: Moments | None
    dropout: Dropout | None
    block: int

    def blocks(self, input_NH: Tensor) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Yield the rows of each block and two scratch arrays of its shape."""
        count = len(input_NH)
        scratch = [torch.empty_like(input_NH[: self.block]) for _ in range(2)]
        for start in range(0, count, self.block):
            rows = slice(start, min(start + self.block, count))
            first_MH, second_MH = (each[: rows.stop - start] for each in scratch)
            yield rows, first_MH, second_MH

    @property
    def scale(self) -> float:
        """The factor that compensates for dropped units."""
        return 1.0 if self.dropout is None else self.dropout.scale


class _Activation:
    """The map x -> a for blocks of rows; built once per pass."""

    def __init__(self, layer: _Layer, gamma_H: Tensor | None, beta_H: Tensor | None) -> None:
        self.layer = layer
        self.factor_H: Tensor | None = None
        if layer.moments is not None:
            assert gamma_H is not None
            assert beta_H is not None
            self.factor_H = gamma_H * layer.moments.inverse_deviation_H
            self.shift_H = beta_H - self.factor_H * layer.moments.mean_H

    def __call__(self, input_MH: Tensor, out_MH: Tensor, scratch_MH: Tensor, start: int) -> None:
        """Write the activation a into `out_MH`."""
        if self.factor_H is None:
            torch.clamp_min(input_MH, 0.0, out=out_MH)
        else:
            torch.mul(input_MH, self.factor_H, out=out_MH).add_(self.shift_H).clamp_min_(0.0)
        if self.layer.dropout is not None:
            self.layer.dropout.apply_(out_MH, scratch_MH, start)


class _HiddenLayer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        input_NH: Tensor,
        gamma_H: Tensor | None,
        beta_H: Tensor | None,
        weight_OH: Tensor,
        bias_O: Tensor,
        layer: _Layer,
    ) -> Tensor:
        """Return the output, (N, H) -> (N, O)."""
        activate = _Activation(layer, gamma_H, beta_H)
        out_NO = input_NH.new_empty(len(input_NH), len(weight_OH))
        for rows, active_MH, spare_MH in layer.blocks(input_NH):
            activate(input_NH[rows], active_MH, spare_MH, rows.start)
            torch.addmm(bias_O, active_MH, weight_OH.T, alpha=layer.scale, out=out_NO[rows])
        ctx.layer = layer
        ctx.save_for_backward(input_NH, gamma_H, beta_H, weight_OH)
        return out_NO

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_NO: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of x, gamma, beta, W and bias."""
        input_NH, gamma_H, beta_H, weight_OH = ctx.saved_tensors
        layer: _Layer = ctx.layer
        moments = layer.moments
        activate = _Activation(layer, gamma_H, beta_H)
        scaled_OH = weight_OH * layer.scale
        grad_NH, grad_weight_OH = torch.empty_like(input_NH), torch.zeros_like(weight_OH)
        sum_H, product_H = input_NH.new_zeros(2, input_NH.shape[1], dtype=torch.float64)
        for rows, active_MH, spare_MH in layer.blocks(input_NH):
            activate(input_NH[rows], active_MH, spare_MH, rows.start)
            grad_weight_OH.addmm_(grad_NO[rows].T, active_MH, alpha=layer.scale)
            grad_MH = torch.mm(grad_NO[rows], scaled_OH, out=grad_NH[rows])
            _zero_up_to(grad_MH, active_MH, 0.0)
            if moments is not None:
                sum_H += grad_MH.sum(0)
                torch.sub(input_NH[rows], moments.mean_H, out=spare_MH)
                product_H += spare_MH.mul_(grad_MH).sum(0)
        grad_bias_O = grad_NO.sum(0)
        if moments is None:
            return grad_NH, None, None, grad_weight_OH, grad_bias_O, None
        sums_2H = torch.stack([sum_H, product_H * moments.inverse_deviation_H])
        _through_moments_(grad_NH, input_NH, activate, sums_2H)
        grad_beta_H, grad_gamma_H = sums_2H.to(input_NH.dtype)
        return grad_NH, grad_gamma_H, grad_beta_H, grad_weight_OH, grad_bias_O, None


def _through_moments_(
    grad_NH: Tensor, input_NH: Tensor, activate: _Activation, sums_2H: Tensor
) -> None:
    """Turn g into d/d x, in place, given the sums of g and g u over this rank's rows."""
    layer, factor_H = activate.layer, activate.factor_H
    assert layer.norm is not None
    assert layer.moments is not None
    assert factor_H is not None
    moments = layer.moments
    if moments.count is None:
        grad_NH.mul_(factor_H)
        return
    mean_H, slope_H = (layer.norm.summed(sums_2H) / moments.count).to(input_NH.dtype)
    slope_H = slope_H * factor_H * moments.inverse_deviation_H
    for rows, _, spare_MH in layer.blocks(input_NH):
        torch.sub(input_NH[rows], moments.mean_H, out=spare_MH)
        grad_NH[rows].sub_(mean_H).mul_(factor_H).addcmul_(spare_MH, slope_H, value=-1.0)


def _zero_up_to(values: Tensor, guide: Tensor, limit: float) -> None:
    """Zero `values` where `guide` <= `limit`; ten times as fast as `masked_fill_` on a CPU."""
    torch.ops.aten.threshold_backward.grad_input(values, guide, limit, grad_input=values)
