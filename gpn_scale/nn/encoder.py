"""Encoder: map features to latent positions by a small perceptron.

Shapes: N nodes, F features, H hidden units, D latent dimensions.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from gpn_scale.device import device_rule
from gpn_scale.nn.hidden import Dropout, hidden_layer
from gpn_scale.nn.hidden_whole import kept_units, whole_hidden_layer
from gpn_scale.nn.noise import Noise
from gpn_scale.nn.normalisation import BatchNorm, Total
from gpn_scale.nn.repeated import RepeatedInputs
from gpn_scale.nn.sparse import SparseMatrix

Inputs = Tensor | SparseMatrix | RepeatedInputs


class InputLinear(nn.Module):
    """Affine map of dense or sparse rows, (N, F) -> (N, H); sparse rows are never made dense.

    Columns may be standardised: shift and scale are folded into the weights, so the rows themselves
    are not changed.

    >>> layer = InputLinear(1, 2, torch.Generator().manual_seed(1))
    >>> layer.standardise(torch.tensor([3.0]), torch.tensor([13.0]))  # deviation 2
    >>> torch.allclose(layer(torch.tensor([[5.0]])), layer.weight.T + layer.bias)
    True
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
        """Standardise columns from now on: (x - mean) / deviation; constant ones are only shifted.

        Args:
            mean_F: Mean of every column, in float64.
            square_F: Mean square of every column, in float64.
        """
        deviation_F = (square_F - mean_F.square()).clamp_min(0.0).sqrt()
        # A constant column's variance is round-off, not 0.
        constant = deviation_F <= 1e-6 * square_F.sqrt()
        self.shift_F.copy_(mean_F)
        self.scale_F.copy_(deviation_F.masked_fill(constant, 1.0))

    def forward(self, inputs: Inputs) -> Tensor:
        """Return the mapped rows, (N, F) -> (N, H)."""
        weight_HF = self.weight / self.scale_F
        shift_H = self.bias - weight_HF @ self.shift_F
        if isinstance(inputs, Tensor):
            return torch.addmm(shift_H, inputs, weight_HF.T)
        return inputs @ weight_HF.T + shift_H


class Encoder(nn.Module):
    """Linear, [batch-norm,] ReLU, dropout, ..., Linear: (N, F) -> (N, D).

    Dropout draws from the noise given to `forward` and is off without it.

    >>> sizes = {"num_features": 5, "hidden": 8, "layers": 2, "latent": 3}
    >>> source = torch.Generator().manual_seed(1)
    >>> encoder = Encoder(**sizes, dropout=0.5, batch_norm=False, generator=source)
    >>> encoder(torch.ones(4, 5)).shape
    torch.Size([4, 3])

    Args:
        num_features: F, the number of features.
        hidden: H, the width of hidden layers.
        layers: Number of linear maps, at least 1.
        latent: D, the latent dimension.
        dropout: Fraction of hidden units that are dropped.
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
        """Return latent positions, (N, F) -> (N, D); with noise, hidden units are dropped."""
        hidden_NH: Tensor = self.first(inputs)
        dropout = None
        if noise is not None and self.dropout > 0.0:
            dropout = Dropout(noise, self.dropout, 0)
        if device_rule(hidden_NH.device).whole_rows:
            return self._whole(hidden_NH, dropout)
        for depth, linear in enumerate(self._linears()):
            own = None if dropout is None else replace(dropout, depth=depth)
            hidden_NH = hidden_layer(hidden_NH, linear, self._norm(depth), own)
        return hidden_NH

    def _whole(self, hidden_NH: Tensor, dropout: Dropout | None) -> Tensor:
        """Return latent positions from the first map's output, with all rows in one operation."""
        linears, scale = self._linears(), 1.0 if dropout is None else dropout.scale
        kept: Sequence[Tensor | None] = [None] * len(linears)
        if dropout is not None and linears:
            kept = kept_units(dropout, len(linears), hidden_NH)
        for depth, linear in enumerate(linears):
            norm = self._norm(depth)
            hidden_NH = whole_hidden_layer(hidden_NH, linear, norm, kept[depth], scale)
        return hidden_NH

    def _linears(self) -> list[nn.Linear]:
        return [each for each in self.further if isinstance(each, nn.Linear)]

    def divide(self, total: Total) -> None:
        """Treat a batch's rows as divided among ranks from now on; `total` sums over them."""
        for norm in self.norms:
            assert isinstance(norm, BatchNorm)
            norm.total = total

    def _norm(self, depth: int) -> BatchNorm | None:
        """Return the batch normalisation before a hidden map, if there is one."""
        if not len(self.norms):
            return None
        norm = self.norms[depth]
        assert isinstance(norm, BatchNorm)
        return norm


def _linear(num_inputs: int, num_outputs: int, generator: torch.Generator) -> nn.Linear:
    linear = nn.Linear(num_inputs, num_outputs, device="meta").to_empty(device="cpu")
    bound = 1.0 / math.sqrt(num_inputs)
    for parameter in linear.parameters():
        nn.init.uniform_(parameter, -bound, bound, generator=generator)
    return linear


def _uniform(shape: tuple[int, ...], bound: float, generator: torch.Generator) -> Tensor:
    return nn.init.uniform_(torch.empty(shape), -bound, bound, generator=generator)
