"""Evidence: turn log-densities and the class prior into pseudo-counts per class.

Shapes: N nodes, C classes.
"""

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import hardtanh


class Evidence(nn.Module):
    """beta_c = N_H p(z | c) p(c) with the budget N_H = sqrt(4 pi)^D (Charpentier et al., 2022).

    Log-evidence is clamped to [-log_limit, log_limit]; no gradient passes where it is clamped.

    >>> prior_C = torch.tensor([0.25, 0.75])
    >>> evidence = Evidence(prior_C, latent=2, budget="one", log_limit=30.0)
    >>> evidence(torch.zeros(1, 2))  # both densities are 1
    tensor([[0.2500, 0.7500]])

    Args:
        class_prior_C: Class frequencies in the training set; positive, summing to 1.
        latent: D, the latent dimension.
        budget: `latent` for N_H, `latent_classes` for N_H C, `one` for 1.
        log_limit: Bound on the absolute log-evidence.
    """

    log_prior_C: Tensor

    def __init__(
        self,
        class_prior_C: Tensor,
        *,
        latent: int,
        budget: Literal["latent", "latent_classes", "one"],
        log_limit: float,
    ) -> None:
        super().__init__()
        self.register_buffer("log_prior_C", class_prior_C.log())
        classes = len(class_prior_C) if budget == "latent_classes" else 1
        dimensions = 0 if budget == "one" else latent
        self.log_budget = 0.5 * dimensions * math.log(4.0 * math.pi) + math.log(classes)
        self.log_limit = log_limit

    def forward(self, log_density_NC: Tensor) -> Tensor:
        """Return the evidence per class, in [exp(-log_limit), exp(log_limit)]; (N, C)."""
        log_evidence_NC = log_density_NC + self.log_prior_C + self.log_budget
        # The gradient of `clamp` takes five times as many operations.
        return torch.exp(hardtanh(log_evidence_NC, -self.log_limit, self.log_limit))
