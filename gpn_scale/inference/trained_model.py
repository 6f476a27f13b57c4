"""A trained network together with everything that turns feature rows into its evidence.

Shapes: B nodes, C classes, D latent dimensions, F feature columns.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from gpn_scale.config import DiffusionConfig, FeatureScaling
from gpn_scale.data.features import scale_features, take_rows
from gpn_scale.data.graph import Features, Graph, NodeIds
from gpn_scale.errors import GraphError
from gpn_scale.inference.encoder_inputs import as_inputs
from gpn_scale.nn.encoder import Inputs
from gpn_scale.nn.model import GPN

CHUNK_ROWS = 1 << 13
"""Nodes encoded at once: enough to keep the kernels busy, with little memory."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainedModel:
    """A network, how its features are scaled, and the diffusion that it predicts with.

    The network need not be finished: validation uses it while it is trained. Whatever is computed
    leaves the network in the mode, training or evaluation, that it was in.
    """

    network: GPN
    """The network, on `device`."""
    scaling: FeatureScaling
    """Scaling of feature rows, as in training."""
    diffusion: DiffusionConfig
    """Diffusion that aggregates evidence."""
    device: torch.device
    """Device of all tensors."""
    dtype: torch.dtype
    """Type of the network's real numbers."""

    @property
    def num_classes(self) -> int:
        """Number C of classes."""
        return self.network.flow.num_classes

    @property
    def num_features(self) -> int:
        """Number F of feature columns."""
        return len(self.network.encoder.first.shift_F)

    def check_features(self, graph: Graph) -> None:
        """Check that the graph has as many feature columns as that of training.

        Raises:
            GraphError: the number of columns differs.
        """
        if graph.num_features != self.num_features:
            raise GraphError(
                f"graph {graph.name!r} has {graph.num_features} feature columns, the model was "
                f"trained on {self.num_features}"
            )

    def inputs(self, features: Features) -> Inputs:
        """Return feature rows, scaled, as the encoder takes them."""
        return as_inputs(scale_features(features, self.scaling), self.device, self.dtype)

    def evidence(self, features: Features, nodes: NodeIds) -> Tensor:
        """Return the feature evidence of `nodes` in their order, (B, C).

        Args:
            features: Feature rows of all nodes; only those of `nodes` are read, in chunks.
            nodes: Node ids, (B,).
        """
        return self._in_chunks(self.network.feature_evidence, self.num_classes, features, nodes)

    def latent(self, features: Features, nodes: NodeIds) -> Tensor:
        """Return the latent positions of `nodes` in order, (B, D); arguments as in `evidence`."""
        return self._in_chunks(self.network.encoder, self.network.flow.latent, features, nodes)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Let batch normalisation use the statistics of training within the block."""
        was_training = self.network.training
        self.network.eval()
        try:
            yield
        finally:
            self.network.train(was_training)

    def _in_chunks(
        self,
        compute: Callable[[Inputs], Tensor],
        width: int,
        features: Features,
        nodes: NodeIds,
    ) -> Tensor:
        values = torch.empty(len(nodes), width, device=self.device, dtype=self.dtype)
        with torch.no_grad(), self.evaluating():
            for start in range(0, len(nodes), CHUNK_ROWS):
                chunk = slice(start, start + CHUNK_ROWS)
                values[chunk] = compute(self.inputs(take_rows(features, nodes[chunk])))
        return values
