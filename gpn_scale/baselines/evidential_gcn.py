"""EDL-GCN: a graph network that predicts Dirichlets, whose vacuity is averaged over neighbours.

Evidential deep learning (Sensoy et al., 2018) on a graph convolutional network; a comparison model
of Yu et al. (2025), "Evidential Uncertainty Probes for Graph Neural Networks".

Shapes: N nodes, B nodes of a batch, C classes.
"""

from torch import Tensor
from torch.nn import functional

from gpn_scale.baselines.gcn import AbstractGCN
from gpn_scale.baselines.graph_view import GraphView
from gpn_scale.baselines.post_hoc import SafeOptions, averaged_over_neighbours
from gpn_scale.evaluation.scored_prediction import ScoredPrediction
from gpn_scale.nn.losses import bayesian_loss
from gpn_scale.nn.posterior import DirichletPosterior

_LOG_LIMIT = 30.0
"""Limit to which logits are clamped, so that evidence stays finite far from all data."""


class EvidentialGCN(AbstractGCN):
    """Graph convolutions with alpha = 1 + exp(logits), trained by the Bayesian loss of GPN.

    The epistemic score is the vacuity u = C / alpha_0 after some steps
    u <- a u + (1 - a) D^-1 A u, as GNNSafe averages energies.

    Deviation: written without the full text of the paper; the activation, the weight of the entropy
    and the propagation are the obvious ones (docs/deviations.md).
    """

    name = "EDL-GCN"
    Options = SafeOptions

    @property
    def reach(self) -> int:
        """Number of hops over which features act: one per layer and per step of propagation."""
        return super().reach + int(self.options.steps)

    def loss(self, logits_BC: Tensor, labels_B: Tensor) -> Tensor:
        """Return the mean of E[-log p_y] - weight * entropy."""
        weight = self.config.train.entropy_weight
        posterior = evidential_posterior(logits_BC)
        return bayesian_loss(posterior, labels_B, entropy_weight=weight) / len(labels_B)

    def validation_loss(self, view: GraphView) -> float:
        """Return the cross-entropy of the expected probabilities."""
        nodes, labels = view.validation
        mean_BC = evidential_posterior(self.logits(view)[nodes]).mean_NC
        return float(functional.nll_loss(mean_BC.log(), labels))

    def predict_view(self, view: GraphView) -> ScoredPrediction:
        """Return the means of the Dirichlets, and propagated vacuities."""
        posterior = evidential_posterior(self.final_logits(view))
        vacuity_N = posterior.alpha_NC.shape[1] / posterior.alpha_0_N
        return self.prediction(
            posterior.mean_NC, averaged_over_neighbours(vacuity_N, view, self.options)
        )


def evidential_posterior(logits_NC: Tensor) -> DirichletPosterior:
    """Return Dir(1 + exp(logits)), with the logits clamped to a finite range."""
    evidence_NC = logits_NC.clamp(-_LOG_LIMIT, _LOG_LIMIT).exp()
    return DirichletPosterior.from_evidence(evidence_NC)
