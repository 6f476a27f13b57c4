"""GKDE-GCN: a network that predicts Dirichlets, taught by a VGCN and by the graph kernel (GKDE).

Zhao et al. (2020), S-GCN-T-K: without Bayesian weights, as in GPN's appendix.

Shapes: N nodes, C classes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from gpn_scale.baselines.gcn import VGCN, AbstractGCN
from gpn_scale.baselines.graph_kernel import check_kernel, kernel_evidence
from gpn_scale.baselines.graph_view import GraphView
from gpn_scale.baselines.options import require_in_range
from gpn_scale.baselines.predictions import dirichlet_prediction
from gpn_scale.evaluation.scored_prediction import ScoredPrediction

_LOG_LIMIT = 30.0
"""Limit to which logits are clamped, so that alpha stays finite far from all data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelGCNOptions:
    """Options of `KernelGCN`."""

    kernel_weight: float = 1e-3
    """Weight lambda of the divergence from the graph kernel's Dirichlets."""
    teacher_weight: float = 1.0
    """Weight of the divergence from the teacher's probabilities; 0 for no teacher."""
    sigma: float = 1.0
    """Standard deviation of the kernel's Gaussian of distances, in hops."""
    cutoff: int = 7
    """Largest distance, in hops, at which labelled nodes count for the kernel."""

    def __post_init__(self) -> None:
        for name in ("kernel_weight", "teacher_weight"):
            weight = getattr(self, name)
            require_in_range(
                f"model.{name}", weight, allowed=not weight < 0.0, expected="at least 0"
            )
        check_kernel(self.sigma, self.cutoff)


class KernelGCN(AbstractGCN):
    """Dirichlets with alpha = exp(logits), trained by expected squared error, kernel and teacher.

    Deviation: alpha is not 1 + exp(logits), the teacher's weight does not rise over 200 epochs, and
    weight decay is 1e-4. With 1 + exp(logits) or a rising weight, as in its paper, training often
    stops before it has learned the small classes (docs/comparison.md).
    """

    name = "GKDE-GCN"
    revision = 1
    Options = KernelGCNOptions

    def prepare(self, view: GraphView, store: Path | None) -> None:
        """Compute the kernel's Dirichlets, and train the teacher."""
        nodes, labels = view.training
        evidence_NC = kernel_evidence(
            view.graph,
            nodes.cpu().numpy(),
            labels.cpu().numpy(),
            view.graph.num_classes,
            sigma=self.options.sigma,
            cutoff=self.options.cutoff,
        )
        self._kernel_NC = 1.0 + torch.from_numpy(evidence_NC).to(self.device, self.dtype)
        self._log_teacher_NC: Tensor | None = None
        if self.options.teacher_weight > 0.0:
            teacher = VGCN(self.config, device=str(self.device), dtype=self.dtype)
            teacher.fit_on(view, store)
            self._log_teacher_NC = teacher.final_logits(view).log_softmax(1)

    def losses(self, view: GraphView, generator: torch.Generator, epoch: int) -> Iterator[Tensor]:  # noqa: D102
        nodes, labels = view.training
        alpha_NC = self.alpha(self.logits(view, generator))
        loss = expected_squared_error(alpha_NC[nodes], labels).mean()
        kernel = dirichlet_divergence(alpha_NC, self._kernel_NC).mean()
        loss = loss + self.options.kernel_weight * kernel
        if self._log_teacher_NC is not None:
            teacher = mean_divergence(alpha_NC, self._log_teacher_NC).mean()
            loss = loss + self.options.teacher_weight * teacher
        yield loss

    def validation_loss(self, view: GraphView) -> float:
        """Return the cross-entropy of the expected probabilities."""
        nodes, labels = view.validation
        alpha_NC = self.alpha(self.logits(view))[nodes]
        return float(functional.nll_loss((alpha_NC / alpha_NC.sum(1, keepdim=True)).log(), labels))

    def predict_view(self, view: GraphView) -> ScoredPrediction:
        """Return the means and totals of the Dirichlets."""
        return dirichlet_prediction(self.name, self.alpha(self.final_logits(view)))

    @staticmethod
    def alpha(logits_NC: Tensor) -> Tensor:
        """Return exp(logits), with the logits clamped to a finite range; (N, C)."""
        return logits_NC.clamp(-_LOG_LIMIT, _LOG_LIMIT).exp()


def expected_squared_error(alpha_BC: Tensor, labels_B: Tensor) -> Tensor:
    """Return E |y - p|^2 under every Dirichlet, (B,): squared bias of the mean plus variance."""
    total_B1 = alpha_BC.sum(1, keepdim=True)
    mean_BC = alpha_BC / total_B1
    target_BC = functional.one_hot(labels_B, alpha_BC.shape[1])
    variance_BC = mean_BC * (1.0 - mean_BC) / (total_B1 + 1.0)
    return ((target_BC - mean_BC).square() + variance_BC).sum(1)


def mean_divergence(alpha_NC: Tensor, log_other_NC: Tensor) -> Tensor:
    """Return KL[mean of Dir(alpha) || other probabilities] of every node, (N,)."""
    log_mean_NC = (alpha_NC / alpha_NC.sum(1, keepdim=True)).log()
    parts_NC = functional.kl_div(log_other_NC, log_mean_NC, reduction="none", log_target=True)
    return parts_NC.sum(1)


def dirichlet_divergence(alpha_NC: Tensor, other_NC: Tensor) -> Tensor:
    """Return KL[Dir(alpha) || Dir(other)] of every node, (N,)."""
    first = torch.distributions.Dirichlet(alpha_NC, validate_args=False)
    second = torch.distributions.Dirichlet(other_NC, validate_args=False)
    return torch.distributions.kl_divergence(first, second)
