"""GKDE-GCN: a network that predicts Dirichlets, taught by a plain one and by GKDE.

Zhao et al. (2020), S-GCN-T-K: without their Bayesian weights, as in GPN's appendix.

Shapes: N nodes, C classes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from gpn_scale.baselines.gcn import VGCN, AbstractGCN
from gpn_scale.baselines.kernel import kernel_evidence
from gpn_scale.baselines.model import dirichlet_answer
from gpn_scale.baselines.view import View
from gpn_scale.errors import ConfigError
from gpn_scale.evaluation.scored_prediction import ScoredPrediction

_LOG_LIMIT = 30.0
"""Logits are clamped to it, so that noise far from all data stays a finite number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelGCNOptions:
    """Of `KernelGCN`."""

    kernel_weight: float = 1e-3
    """lambda: of the divergence from the graph kernel's Dirichlets."""
    teacher_weight: float = 1.0
    """Of the divergence from a plain network's probabilities; 0 for no teacher."""
    sigma: float = 1.0
    """Width of the kernel's Gaussian of distances."""
    cutoff: int = 7
    """Labelled nodes farther away than so many hops do not count for the kernel."""

    def __post_init__(self) -> None:
        for name in ("kernel_weight", "teacher_weight"):
            if getattr(self, name) < 0.0:
                raise ConfigError(f"model.{name} is {getattr(self, name)}, expected at least 0")
        if not self.sigma > 0.0 or self.cutoff < 0:
            raise ConfigError(
                f"model.sigma and model.cutoff are {self.sigma} and {self.cutoff}, expected a "
                "positive width and at least 0 hops"
            )


class KernelGCN(AbstractGCN):
    """alpha = exp(logits), trained by expected squared error, kernel and teacher.

    Deviation: alpha is not 1 + exp(logits), the teacher's weight does not rise over 200 epochs, and
    weight decay is 1e-4. With 1 + exp(logits) or a rising weight, as in its paper, training often
    ends before it has learnt the small classes (docs/comparison.md).
    """

    name = "GKDE-GCN"
    revision = 1
    Options = KernelGCNOptions

    def prepare(self, view: View, store: Path | None) -> None:
        """The teacher's probabilities and the kernel's Dirichlets."""
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

    def losses(self, view: View, generator: torch.Generator, epoch: int) -> Iterator[Tensor]:  # noqa: D102
        nodes, labels = view.training
        alpha_NC = self.alpha(self.logits(view, generator))
        loss = expected_squared_error(alpha_NC[nodes], labels).mean()
        kernel = dirichlet_divergence(alpha_NC, self._kernel_NC).mean()
        loss = loss + self.options.kernel_weight * kernel
        if self._log_teacher_NC is not None:
            taught = mean_divergence(alpha_NC, self._log_teacher_NC).mean()
            loss = loss + self.options.teacher_weight * taught
        yield loss

    def validation_loss(self, view: View) -> float:
        """Cross-entropy of the expected probabilities."""
        nodes, labels = view.validation
        alpha_NC = self.alpha(self.logits(view))[nodes]
        return float(functional.nll_loss((alpha_NC / alpha_NC.sum(1, keepdim=True)).log(), labels))

    def predict_view(self, view: View) -> ScoredPrediction:
        """Of the Dirichlets."""
        return dirichlet_answer(self, self.alpha(self.final_logits(view)))

    @staticmethod
    def alpha(logits_NC: Tensor) -> Tensor:
        """exp(logits)."""
        return logits_NC.clamp(-_LOG_LIMIT, _LOG_LIMIT).exp()


def expected_squared_error(alpha_BC: Tensor, labels_B: Tensor) -> Tensor:
    """E |y - p|^2 under every Dirichlet, (B,): squared bias of the mean, plus the variance."""
    total_B1 = alpha_BC.sum(1, keepdim=True)
    mean_BC = alpha_BC / total_B1
    target_BC = functional.one_hot(labels_B, alpha_BC.shape[1])
    variance_BC = mean_BC * (1.0 - mean_BC) / (total_B1 + 1.0)
    return ((target_BC - mean_BC).square() + variance_BC).sum(1)


def mean_divergence(alpha_NC: Tensor, log_other_NC: Tensor) -> Tensor:
    """KL[mean of Dir(alpha) || other probabilities] of every node, (N,)."""
    log_mean_NC = (alpha_NC / alpha_NC.sum(1, keepdim=True)).log()
    parts_NC = functional.kl_div(log_other_NC, log_mean_NC, reduction="none", log_target=True)
    return parts_NC.sum(1)


def dirichlet_divergence(alpha_NC: Tensor, other_NC: Tensor) -> Tensor:
    """KL[Dir(alpha) || Dir(other)] of every node, (N,)."""
    first = torch.distributions.Dirichlet(alpha_NC, validate_args=False)
    second = torch.distributions.Dirichlet(other_NC, validate_args=False)
    return torch.distributions.kl_divergence(first, second)
