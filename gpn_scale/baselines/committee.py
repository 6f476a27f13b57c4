"""CUQ-GNN: a graph network encodes nodes, and a posterior network judges their latent positions.

Damke & Hüllermeier (2024), "CUQ-GNN: Committee-based Graph Uncertainty Quantification using
Posterior Networks". GPN has the reverse order: flows first, then the network.

Shapes: N nodes, B nodes of a batch, C classes, D latent dimensions.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from gpn_scale.baselines.appnp import AbstractDiffusedNetwork
from gpn_scale.baselines.gcn import AbstractGCN
from gpn_scale.baselines.graph_view import GraphView
from gpn_scale.baselines.layers import Layers
from gpn_scale.baselines.network import AbstractLayeredNetwork
from gpn_scale.baselines.predictions import dirichlet_prediction
from gpn_scale.baselines.row_batches import AbstractRowNetwork
from gpn_scale.baselines.training import evaluating
from gpn_scale.config import RunConfig
from gpn_scale.data.splits import class_prior
from gpn_scale.evaluation.scored_prediction import ScoredPrediction
from gpn_scale.nn.evidence import Evidence
from gpn_scale.nn.flow import RadialFlow
from gpn_scale.nn.losses import bayesian_loss
from gpn_scale.nn.posterior import DirichletPosterior


class LatentNetwork(nn.Module):
    """Layers that map features to latent positions, and flows that turn these into posteriors.

    Args:
        config: Sections encoder, flow and evidence are used.
        num_features: Number of features F.
        class_prior_C: Class frequencies in the training set.
        generator: Source of the initial values.
    """

    def __init__(
        self,
        config: RunConfig,
        num_features: int,
        class_prior_C: Tensor,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        latent = config.encoder.latent
        self.layers = Layers(num_features, latent, config.encoder, generator)
        self.flow = RadialFlow(
            num_classes=len(class_prior_C),
            latent=latent,
            radial_layers=config.flow.radial_layers,
            memory_mib=config.flow.memory_mib,
            generator=generator,
        )
        self.evidence = Evidence(
            class_prior_C,
            latent=latent,
            budget=config.evidence.budget,
            log_limit=config.evidence.log_limit,
        )

    def posterior(self, latent_ND: Tensor) -> DirichletPosterior:
        """Return the posteriors at latent positions, (N, D)."""
        return DirichletPosterior.from_evidence(self.evidence(self.flow(latent_ND)))


class AbstractCommittee(AbstractLayeredNetwork):
    """A graph network whose outputs, `logits`, are latent positions instead of logits.

    Deviation: hyper-parameters are those of GPN (docs/deviations.md).
    """

    def build(self, view: GraphView, generator: torch.Generator) -> LatentNetwork:  # noqa: D102
        prior_C = torch.from_numpy(class_prior(view.graph)).float()
        self._num_train = len(view.training[1])
        width = view.feature_rows.features.shape[1]
        return LatentNetwork(self.config, width, prior_C, generator)

    @property
    def network(self) -> LatentNetwork:
        """The trained network."""
        assert isinstance(self.module, LatentNetwork)
        return self.module

    @property
    def layers(self) -> Layers:
        """The layers of the trained network."""
        return self.network.layers

    def flow(self, module: nn.Module) -> nn.Module:  # noqa: D102
        assert isinstance(module, LatentNetwork)
        return module.flow

    def loss(self, logits_BC: Tensor, labels_B: Tensor) -> Tensor:
        """Return the sum of the Bayesian loss over training nodes, estimated from some of them.

        It is a sum, not a mean, as in GPN, whose weight decay is meant for sums.
        """
        posterior = self.network.posterior(logits_BC)
        weight = self.config.train.entropy_weight
        scale = self._num_train / len(labels_B)
        return scale * bayesian_loss(posterior, labels_B, entropy_weight=weight)

    def validation_loss(self, view: GraphView) -> float:
        """Return the cross-entropy of the expected probabilities."""
        nodes, labels = view.validation
        mean_BC = self.network.posterior(self.logits(view)[nodes]).mean_NC
        return float(functional.nll_loss(mean_BC.log(), labels))

    def predict_view(self, view: GraphView) -> ScoredPrediction:
        """Return the means and totals of the posteriors."""
        with evaluating(self.module):
            posterior = self.network.posterior(self.logits(view))
        return dirichlet_prediction(self.name, posterior.alpha_NC)


class Committee(AbstractCommittee, AbstractDiffusedNetwork):
    """CUQ-GNN with APPNP: latent positions of a perceptron, diffused over the graph."""

    name = "CUQ-GNN"


class RowCommittee(AbstractCommittee, AbstractRowNetwork):
    """CUQ-GNN with APPNP, trained on stored rows; predicts by exact diffusion."""

    name = "CUQ-GNN-minibatch"


class CommitteeGCN(AbstractCommittee, AbstractGCN):
    """CUQ-GNN with graph convolutions."""

    name = "CUQ-GCN"
