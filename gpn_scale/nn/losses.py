"""Training loss, a pure function that sums over the labelled nodes it is given."""

from torch import Tensor

from gpn_scale.nn.posterior import DirichletPosterior


def bayesian_loss(
    posterior: DirichletPosterior, label_N: Tensor, *, entropy_weight: float
) -> Tensor:
    """Return the sum over nodes of E[-log p_y] - entropy_weight * H[Dir(alpha)]; a scalar.

    Equation 7 of the GPN paper (Stadler et al., 2021): fit the label and stay as spread out as the
    data allow.
    """
    return (posterior.expected_nll(label_N) - entropy_weight * posterior.entropy()).sum()
