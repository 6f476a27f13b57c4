"""`Opinion`: a perceptron whose diffused logits predict the class of a node.

Shapes: N nodes, B roots, C classes, F features, P clusters.
"""

import torch
from torch import Tensor, nn

from gpn_scale.config import RunConfig
from gpn_scale.nn.encoder import Encoder, Inputs
from gpn_scale.nn.model import Aggregation
from gpn_scale.nn.noise import Noise


class Opinion(nn.Module):
    """A perceptron whose logits are diffused (APPNP; Klicpera et al., 2019). It takes tensors only.

    It shares nothing with a GPN's encoder: a latent space in which classes are linearly separable
    has no use for densities, and the detection of unknown nodes suffers (docs/posterior.md).

    >>> opinion = Opinion(
    ...     RunConfig(), num_features=3, num_classes=2, generator=torch.Generator().manual_seed(1)
    ... )
    >>> opinion(torch.eye(3), aggregate=lambda logits_NC: logits_NC[:1]).shape
    torch.Size([1, 2])

    Args:
        config: The run's configuration; sections encoder and opinion are used.
        num_features: F, the number of features.
        num_classes: C, the number of classes.
        generator: Source of the initial values.
    """

    cluster_PS: Tensor | None
    """Mean logits and fraction of training nodes of each cluster of a store's rows; None if there
    are none yet. S is C + 1."""

    def __init__(
        self,
        config: RunConfig,
        *,
        num_features: int,
        num_classes: int,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.encoder = Encoder(
            num_features=num_features,
            hidden=config.encoder.hidden,
            layers=config.encoder.layers,
            latent=num_classes,
            dropout=config.opinion.dropout,
            batch_norm=config.encoder.batch_norm,
            generator=generator,
        )
        self.num_classes = num_classes
        self.register_buffer("cluster_PS", None)

    def warmup_parameters(self) -> list[nn.Parameter]:
        """Return the parameters that train before the others: none."""
        return []

    def forward(self, inputs: Inputs, aggregate: Aggregation, noise: Noise | None = None) -> Tensor:
        """Return the diffused logits of the roots, (N, F) -> (B, C); noise turns dropout on."""
        return aggregate(self.encoder(inputs, noise))
