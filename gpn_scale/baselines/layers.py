"""Layers of VGCN, APPNP and their variants: linear maps, with or without sums over neighbours.

Shapes: N nodes, C classes, F features, H hidden units.
"""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn

from gpn_scale.baselines.graph_view import GraphView
from gpn_scale.config import EncoderConfig
from gpn_scale.errors import GraphError
from gpn_scale.nn.encoder import InputLinear

Mix = Callable[[Tensor], Tensor]
"""Function from values of nodes, (N, H), to sums over their neighbours, (N, H)."""


def no_mixing(values_NH: Tensor) -> Tensor:
    """Return the values unchanged, so that no node sees its neighbours."""
    return values_NH


class Layers(nn.Module):
    """Layers mix(X W) + b with optional batch-norm, ReLU and dropout: (N, F) -> (N, C).

    With the graph's normalised adjacency as `mix` this is a graph convolutional network (Kipf &
    Welling, 2017), with `no_mixing` a perceptron. PyG's GCNConv gives the same numbers (tests), but
    takes three times as long on a CPU, and seven times with sparse features.

    Args:
        num_features: Number of features F.
        num_classes: Number of classes C.
        shape: Width, number of layers, dropout and batch-norm; other fields are ignored.
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

    def forward(
        self, view: GraphView, mix: Mix, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return logits, (N, C); with a generator, hidden units are dropped."""
        return self.after_first(view.project(self.first), mix, generator)

    def after_first(
        self, projected_NH: Tensor, mix: Mix, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return logits, (N, C), from the values of the first linear map.

        Raises:
            GraphError: batch-norm would train on a single node, which has no variance.
        """
        values_NH = self.hidden(projected_NH, mix, generator)
        if not len(self.further):
            return values_NH
        logits_NC: Tensor = mix(values_NH @ self.further[-1]) + self.biases[-1]
        return logits_NC

    def hidden(
        self, projected_NH: Tensor, mix: Mix, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return the last hidden values, (N, H), or the logits if there is only one layer.

        Arguments and errors are those of `after_first`.
        """
        values_NH: Tensor = mix(projected_NH) + self.biases[0]
        if self.training and len(self.norms) and len(values_NH) == 1:
            raise GraphError(
                "batch-norm got a batch of one node, expected at least two: label more nodes, "
                "use a larger minibatch.batch_size, or set encoder.batch_norm=false",
                arguments=("minibatch.batch_size", "encoder.batch_norm"),
            )
        for depth in range(len(self.further)):
            if depth:
                values_NH = mix(values_NH @ self.further[depth - 1]) + self.biases[depth]
            if len(self.norms):
                values_NH = self.norms[depth](values_NH)
            values_NH = dropout(values_NH.relu(), self.dropout, generator)
        return values_NH


def dropout(values: Tensor, fraction: float, generator: torch.Generator | None) -> Tensor:
    """Drop a fraction of the values and scale up the others; without a generator, drop none."""
    if generator is None or fraction == 0.0:
        return values
    kept = torch.empty_like(values).bernoulli_(1.0 - fraction, generator=generator)
    return values * kept.div_(1.0 - fraction)


def glorot(shape: tuple[int, ...], generator: torch.Generator) -> nn.Parameter:
    """Return a weight matrix with uniform initial values (Glorot & Bengio, 2010)."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(shape), generator=generator))


def input_map(num_features: int, num_outputs: int, generator: torch.Generator) -> InputLinear:
    """Return the first linear map of a network, without a trainable bias."""
    linear = InputLinear(num_features, num_outputs, generator)
    linear.weight = glorot((num_outputs, num_features), generator)
    linear.bias.requires_grad_(False).zero_()
    return linear
