"""Hidden layer for all rows at once, in few operations, for GPUs.

It computes what `nn/hidden.py` does. A GPU has no cache to stay in, and memory enough to keep a
layer's activation, so the backward pass computes nothing again.

Shapes: N rows of this rank, H hidden units, O outputs.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from gpn_scale.nn.hidden import Dropout
from gpn_scale.nn.normalisation import BatchNorm


def kept_units(dropout: Dropout, layers: int, like_NH: Tensor) -> tuple[Tensor, ...]:
    """Return which units each of the first `layers` layers keeps, (N, H) each.

    >>> from gpn_scale.nn.noise import Noise
    >>> dropout = Dropout(Noise(rng_seed=1, hashed=True), fraction=0.0, depth=0)
    >>> kept_units(dropout, 1, torch.ones(1, 2))
    (tensor([[True, True]]),)
    """
    rows, width = like_NH.shape
    bits_NLH = dropout.noise.bits_of_layers(layers, rows, width, like_NH.device)
    return (bits_NLH >= dropout.level - 2**15).unbind(1)


def whole_hidden_layer(
    input_NH: Tensor,
    linear: nn.Linear,
    norm: BatchNorm | None,
    kept_NH: Tensor | None,
    scale: float,
) -> Tensor:
    """Return the layer's output, (N, H) -> (N, O).

    >>> linear = nn.Linear(2, 1)
    >>> linear.load_state_dict({"weight": torch.ones(1, 2), "bias": torch.zeros(1)})
    <All keys matched successfully>
    >>> whole_hidden_layer(torch.tensor([[-1.0, 3.0]]), linear, None, None, 1.0).tolist()
    [[3.0]]

    Args:
        input_NH: The previous layer's output.
        linear: The linear map.
        norm: The batch normalisation before it, if there is one.
        kept_NH: Which units are kept; None for all.
        scale: Factor of the kept units.
    """
    active_NH = input_NH if norm is None else _normalised(input_NH, norm)
    if kept_NH is None:
        return nn.functional.linear(torch.relu(active_NH), linear.weight, linear.bias)
    active_NH = torch.relu_(active_NH * kept_NH)
    return nn.functional.linear(active_NH, linear.weight * scale, linear.bias)


def _normalised(input_NH: Tensor, norm: BatchNorm) -> Tensor:
    """Return the batch-normalised rows, by torch's own operation where one process has them all."""
    if not norm.training or (norm.total is None and len(input_NH) > 1):
        normalised_NH: Tensor = torch.batch_norm(
            input_NH,
            norm.weight,
            norm.bias,
            norm.running_mean,
            norm.running_var,
            norm.training,
            norm.momentum or 0.0,
            norm.eps,
            cudnn_enabled=torch.backends.cudnn.enabled,
        )
        if norm.training:
            assert norm.num_batches_tracked is not None
            norm.num_batches_tracked += 1
        return normalised_NH
    divided_NH: Tensor = _DividedNorm.apply(  # type: ignore[no-untyped-call]
        input_NH, norm.weight, norm.bias, norm
    )
    return divided_NH


class _DividedNorm(torch.autograd.Function):
    """Batch normalisation of rows that are divided among ranks; formulas as in `nn/hidden.py`."""

    @staticmethod
    def forward(
        ctx: Any, input_NH: Tensor, gamma_H: Tensor, beta_H: Tensor, norm: BatchNorm
    ) -> Tensor:
        moments = norm.moments(input_NH, max(1, len(input_NH)))
        factor_H = gamma_H * moments.inverse_deviation_H
        shift_H = torch.addcmul(beta_H, factor_H, moments.mean_H, value=-1.0)
        ctx.norm, ctx.moments, ctx.factor_H = norm, moments, factor_H
        ctx.save_for_backward(input_NH)
        return torch.addcmul(shift_H, input_NH, factor_H)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_NH: Tensor) -> tuple[Tensor | None, ...]:
        (input_NH,) = ctx.saved_tensors
        moments, factor_H = ctx.moments, ctx.factor_H
        unit_NH = (input_NH - moments.mean_H).mul_(moments.inverse_deviation_H)
        sums_2H = torch.stack([grad_NH.sum(0), (unit_NH * grad_NH).sum(0)]).double()
        mean_H, slope_H = (ctx.norm.summed(sums_2H) / moments.count).to(input_NH.dtype)
        grad_input_NH = (grad_NH - mean_H).addcmul_(unit_NH, slope_H, value=-1.0).mul_(factor_H)
        grad_beta_H, grad_gamma_H = sums_2H.to(input_NH.dtype)
        return grad_input_NH, grad_gamma_H, grad_beta_H, None
