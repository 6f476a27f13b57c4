"""`GPN`: encoder, flows, evidence, aggregation and posterior in one module.

Shapes: N nodes, C classes, F features, D latent dimensions.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gpn_scale.config import RunConfig
from gpn_scale.nn.aggregation import ClusterEvidence
from gpn_scale.nn.encoder import Encoder, Inputs
from gpn_scale.nn.evidence import Evidence
from gpn_scale.nn.flow import RadialFlow
from gpn_scale.nn.noise import Noise
from gpn_scale.nn.posterior import DirichletPosterior

Aggregation = Callable[[Tensor], Tensor]
"""Maps the evidence of nodes (N, C) to the evidence aggregated over their neighbourhoods."""


@dataclass(frozen=True, slots=True)
class GPNOutput:
    """Posteriors with the network's influence and from each node's own features alone.

    >>> without = DirichletPosterior.from_evidence(torch.tensor([[0.0, 0.0]]))
    >>> diffused = DirichletPosterior.from_evidence(torch.tensor([[7.0, 1.0]]))
    >>> GPNOutput(with_network=diffused, without_network=without).with_network.mean_NC
    tensor([[0.8000, 0.2000]])
    """

    with_network: DirichletPosterior
    without_network: DirichletPosterior


class GPN(nn.Module):
    """Graph Posterior Network (Stadler et al., NeurIPS 2021). It takes tensors, never graphs.

    >>> prior_C, source = torch.tensor([0.5, 0.5]), torch.Generator().manual_seed(1)
    >>> network = GPN(RunConfig(), num_features=4, class_prior_C=prior_C, generator=source)
    >>> output = network(torch.ones(3, 4), aggregate=lambda evidence_NC: evidence_NC / 2)
    >>> output.with_network.mean_NC.shape
    torch.Size([3, 2])

    Args:
        config: The run's configuration; sections encoder, flow and evidence are used.
        num_features: F, the number of features.
        class_prior_C: Class frequencies in the whole training set.
        generator: Source of the initial values.
        num_clusters: P, the clusters that represent cut tails; 0 for a model of exact mode.
    """

    def __init__(
        self,
        config: RunConfig,
        *,
        num_features: int,
        class_prior_C: Tensor,
        generator: torch.Generator,
        num_clusters: int = 0,
    ) -> None:
        super().__init__()
        encoder = config.encoder
        self.encoder = Encoder(
            num_features=num_features,
            hidden=encoder.hidden,
            layers=encoder.layers,
            latent=encoder.latent,
            dropout=encoder.dropout,
            batch_norm=encoder.batch_norm,
            generator=generator,
        )
        self.flow = RadialFlow(
            num_classes=len(class_prior_C),
            latent=encoder.latent,
            radial_layers=config.flow.radial_layers,
            memory_mib=config.flow.memory_mib,
            generator=generator,
            compiled=config.flow.compiled,
        )
        self.evidence = Evidence(
            class_prior_C,
            latent=encoder.latent,
            budget=config.evidence.budget,
            log_limit=config.evidence.log_limit,
        )
        self.clusters: ClusterEvidence | None = None
        if num_clusters:
            self.clusters = ClusterEvidence(num_clusters, len(class_prior_C))

    def warmup_parameters(self) -> list[nn.Parameter]:
        """Return the parameters that train before the others: those of the flows."""
        return list(self.flow.parameters())

    def feature_evidence(self, inputs: Inputs, noise: Noise | None = None) -> Tensor:
        """Return the evidence from each node's own features, (N, F) -> (N, C)."""
        latent_ND = self.encoder(inputs, noise)
        evidence_NC: Tensor = self.evidence(self.flow(latent_ND))
        return evidence_NC

    def forward(
        self,
        inputs: Inputs,
        aggregate: Aggregation,
        noise: Noise | None = None,
    ) -> GPNOutput:
        """Return both posteriors of the nodes with features (N, F); noise turns dropout on."""
        evidence_NC = self.feature_evidence(inputs, noise)
        return GPNOutput(
            with_network=DirichletPosterior.from_evidence(aggregate(evidence_NC)),
            without_network=DirichletPosterior.from_evidence(evidence_NC),
        )
