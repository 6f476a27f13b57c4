"""Training loss, a pure function that sums over the labelled nodes it is given."""

from torch import Tensor

from gpn_scale.nn.posterior import DirichletPosterior


def bayesian_loss(
    posterior: DirichletPosterior, label_N: Tensor, *, entropy_weight: float
) -> Tensor:
    """Return the sum over nodes of E[-log p_y] - entropy_weight * H[Dir(alpha)]; a scalar.

    Equation 7 of the GPN paper (Stadler et al., 2021): fit the label and stay as spread out as the
    data allow.

    >>> import torch
    >>> unknown = DirichletPosterior(torch.ones(3, 2))  # three nodes, no evidence
    >>> loss = bayesian_loss(unknown, torch.tensor([0, 1, 1]), entropy_weight=0.1)
    >>> round(float(loss), 3)
    3.0
    """
    return (posterior.expected_nll(label_N) - entropy_weight * posterior.entropy()).sum()
