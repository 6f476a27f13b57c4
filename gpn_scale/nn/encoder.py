"""Features -> latent position, by a small perceptron.

Shapes: N nodes, F features, H hidden units, D latent dimensions.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from gpn_scale.nn.noise import Noise
from gpn_scale.nn.normalisation import BatchNorm, Total
from gpn_scale.nn.sparse import SparseMatrix

Inputs = Tensor | SparseMatrix


class InputLinear(nn.Module):
    """Affine map of dense or sparse rows, (N, F) -> (N, H); sparse rows are never made dense.

    Columns may be standardised; shift and scale are folded into the weights, so the rows stay as
    they are.
    """

    shift_F: Tensor
    scale_F: Tensor

    def __init__(self, num_features: int, num_outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(max(num_features, 1))
        self.weight = nn.Parameter(_uniform((num_outputs, num_features), bound, generator))
        self.bias = nn.Parameter(_uniform((num_outputs,), bound, generator))
        self.register_buffer("shift_F", torch.zeros(num_features))
        self.register_buffer("scale_F", torch.ones(num_features))

    @torch.no_grad()
    def standardise(self, mean_F: Tensor, square_F: Tensor) -> None:
        """From now on columns count as (x - mean) / deviation; constant ones are only shifted.

        Args:
            mean_F: Of every column, in float64.
            square_F: Mean square of every column, in float64.
        """
        deviation_F = (square_F - mean_F.square()).clamp_min(0.0).sqrt()
        # A constant column's variance is round-off, not 0.
        constant = deviation_F <= 1e-6 * square_F.sqrt()
        self.shift_F.copy_(mean_F)
        self.scale_F.copy_(deviation_F.masked_fill(constant, 1.0))

    def forward(self, inputs: Inputs) -> Tensor:
        """(N, F) -> (N, H)."""
        weight_HF = self.weight / self.scale_F
        return inputs @ weight_HF.T + (self.bias - weight_HF @ self.shift_F)


class Encoder(nn.Module):
    """Linear, [batch-norm,] ReLU, dropout, ..., Linear: (N, F) -> (N, D).

    Dropout draws from the noise given to `forward` and is off without it.

    Args:
        num_features: F.
        hidden: H.
        layers: Number of linear maps, at least 1.
        latent: D.
        dropout: Share of hidden units dropped.
        batch_norm: Whether hidden layers are batch-normalised.
        generator: Source of the initial values.
    """

    def __init__(
        self,
        *,
        num_features: int,
        hidden: int,
        layers: int,
        latent: int,
        dropout: float,
        batch_norm: bool,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        widths = [*[hidden] * (layers - 1), latent]
        self.first = InputLinear(num_features, widths[0], generator)
        self.norms = nn.ModuleList(BatchNorm(hidden) for _ in widths[1:] if batch_norm)
        self.further = nn.ModuleList(_linear(hidden, width, generator) for width in widths[1:])
        self.dropout = dropout

    def forward(self, inputs: Inputs, noise: Noise | None = None) -> Tensor:
        """(N, F) -> (N, D); with noise, hidden units are dropped."""
        hidden_NH: Tensor = self.first(inputs)
        for depth, linear in enumerate(self.further):
            if len(self.norms):
                hidden_NH = self.norms[depth](hidden_NH)
            hidden_NH = linear(activated(hidden_NH, self.dropout, noise, depth))
        return hidden_NH

    def divide(self, total: Total) -> None:
        """From now on, a batch's rows are divided among processes, over which `total` sums."""
        for norm in self.norms:
            assert isinstance(norm, BatchNorm)
            norm.total = total


def activated(hidden_NH: Tensor, share: float, noise: Noise | None, depth: int = 0) -> Tensor:
    """ReLU, then a random `share` set to 0 and the rest scaled up; without noise ReLU alone.

    The share is rounded to 16 bits: drawing 64 for every unit would take a quarter of a step.
    """
    if noise is None or share == 0.0:
        return torch.relu(hidden_NH)
    level = min(round(share * 2**16), 2**16 - 1)
    rows, width = hidden_NH.shape
    dropped_NH = noise.bits(depth, rows, width, hidden_NH.device) < level - 2**15
    scale = 1.0 / (1.0 - level / 2**16)
    out: Tensor = _DroppedReLU.apply(hidden_NH, dropped_NH, scale)  # type: ignore[no-untyped-call]
    return out


class _DroppedReLU(torch.autograd.Function):
    """Keeps its result only, which the next layer keeps anyway: 0 tells what was dropped or cut."""

    @staticmethod
    def forward(ctx: Any, hidden_NH: Tensor, dropped_NH: Tensor, scale: float) -> Tensor:
        """(N, H) -> (N, H)."""
        out_NH = torch.relu(hidden_NH).mul_(scale).masked_fill_(dropped_NH, 0.0)
        ctx.scale = scale
        ctx.save_for_backward(out_NH)
        return out_NH

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_NH: Tensor) -> tuple[Tensor, None, None]:
        """A unit that was kept above 0 passes on its gradient, scaled up."""
        (out_NH,) = ctx.saved_tensors
        return torch.mul(grad_NH, ctx.scale).masked_fill_(out_NH == 0.0, 0.0), None, None


def _linear(num_inputs: int, num_outputs: int, generator: torch.Generator) -> nn.Linear:
    linear = nn.Linear(num_inputs, num_outputs, device="meta").to_empty(device="cpu")
    bound = 1.0 / math.sqrt(num_inputs)
    for parameter in linear.parameters():
        nn.init.uniform_(parameter, -bound, bound, generator=generator)
    return linear


def _uniform(shape: tuple[int, ...], bound: float, generator: torch.Generator) -> Tensor:
    return nn.init.uniform_(torch.empty(shape), -bound, bound, generator=generator)
