"""The network under VGCN, APPNP and their kin: linear maps, with or without sums over neighbours.

Shapes: N nodes, C classes, F features, H hidden units.
"""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn

from gpn_scale.baselines.view import View
from gpn_scale.config import EncoderConfig
from gpn_scale.errors import GraphError
from gpn_scale.nn.encoder import InputLinear

Mix = Callable[[Tensor], Tensor]
"""(N, H) values of nodes -> sums over their neighbours."""


def alone(values_NH: Tensor) -> Tensor:
    """No sum: every node by itself."""
    return values_NH


class Layers(nn.Module):
    """Layers mix(X W) + b with [batch-norm,] ReLU and dropout between them: (N, F) -> (N, C).

    With S of the graph as mix it is a graph convolutional network (Kipf & Welling, 2017), without
    one a perceptron. PyG's GCNConv gives the same numbers (tests), but takes three times as long on
    a CPU, and seven times with sparse features.

    Args:
        num_features: F.
        num_classes: C.
        shape: Width, number of layers, dropout and batch-norm are used.
        generator: Source of the initial values.
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        shape: EncoderConfig,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        widths = [*[shape.hidden] * (shape.layers - 1), num_classes]
        self.dropout = shape.dropout
        self.first = input_map(num_features, widths[0], generator)
        self.further = nn.ParameterList(glorot(pair, generator) for pair in pairwise(widths))
        self.biases = nn.ParameterList(torch.zeros(width) for width in widths)
        norms = (nn.BatchNorm1d(width) for width in widths[:-1] if shape.batch_norm)
        self.norms = nn.ModuleList(norms)

    def forward(self, view: View, mix: Mix, generator: torch.Generator | None = None) -> Tensor:
        """Logits, (N, C); with a generator, hidden units are dropped."""
        return self.after_first(view.project(self.first), mix, generator)

    def after_first(
        self, projected_NH: Tensor, mix: Mix, generator: torch.Generator | None = None
    ) -> Tensor:
        """The same from the values of the first linear map.

        Raises:
            GraphError: batch-norm is to train on one node, of which there is no variance.
        """
        values_NH: Tensor = mix(projected_NH) + self.biases[0]
        if self.training and len(self.norms) and len(values_NH) == 1:
            raise GraphError(
                "batch-norm got a batch of one node, expected at least two: label more nodes, take "
                "a larger minibatch.batch_size, or set encoder.batch_norm=false"
            )
        for depth, weight_HH in enumerate(self.further):
            if len(self.norms):
                values_NH = self.norms[depth](values_NH)
            values_NH = dropout(values_NH.relu(), self.dropout, generator)
            values_NH = mix(values_NH @ weight_HH) + self.biases[depth + 1]
        return values_NH


def dropout(values: Tensor, share: float, generator: torch.Generator | None) -> Tensor:
    """Drops a share of the values and scales up the others; nothing without a generator."""
    if generator is None or share == 0.0:
        return values
    kept = torch.empty_like(values).bernoulli_(1.0 - share, generator=generator)
    return values * kept.div_(1.0 - share)


def glorot(shape: tuple[int, ...], generator: torch.Generator) -> nn.Parameter:
    """Uniform initial values of a weight matrix (Glorot & Bengio, 2010)."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(shape), generator=generator))


def input_map(num_features: int, num_outputs: int, generator: torch.Generator) -> InputLinear:
    """The first linear map of a network, without an offset of its own."""
    linear = InputLinear(num_features, num_outputs, generator)
    linear.weight = glorot((num_outputs, num_features), generator)
    linear.bias.requires_grad_(False).zero_()
    return linear
