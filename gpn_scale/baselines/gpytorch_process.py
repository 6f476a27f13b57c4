"""Sparse variational Gaussian processes over nodes; the only module that imports GPyTorch.

Shapes: B nodes, M inducing nodes, C classes.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

with warnings.catch_warnings():
    # Importing GPyTorch uses functions that torch has deprecated.
    warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)
    import gpytorch
    from gpytorch.distributions import MultivariateNormal
    from gpytorch.likelihoods import SoftmaxLikelihood
    from gpytorch.mlls import VariationalELBO
    from gpytorch.utils.memoize import clear_cache_hook
    from gpytorch.variational import (
        CholeskyVariationalDistribution,
        IndependentMultitaskVariationalStrategy,
        VariationalStrategy,
    )
    from linear_operator.utils.warnings import NumericalWarning


class NodeKernel(gpytorch.kernels.Kernel):  # type: ignore[misc]
    """A kernel that looks up covariances by the positions of nodes in a block.

    `covariance` must be set before use, to a function that returns the covariances of the block.
    """

    covariance: Any = None

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Return covariances of positions (..., A, 1) and (..., B, 1), or the diagonal (..., A)."""
        whole: Tensor = self.covariance()
        rows, columns = x1.squeeze(-1).long(), x2.squeeze(-1).long()
        return whole[rows, columns] if diag else whole[rows[:, None], columns]


class _Latent(gpytorch.models.ApproximateGP):  # type: ignore[misc]
    """Independent latent functions, one per class, with a common kernel."""

    def __init__(self, num_inducing: int, num_classes: int) -> None:
        batch = torch.Size([num_classes])
        posterior = CholeskyVariationalDistribution(num_inducing, batch_shape=batch)
        position_M1 = torch.arange(num_inducing, dtype=torch.float64).unsqueeze(1)
        strategy = VariationalStrategy(self, position_M1, posterior, learn_inducing_locations=False)
        super().__init__(IndependentMultitaskVariationalStrategy(strategy, num_tasks=num_classes))
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = NodeKernel()

    def forward(self, x: Tensor) -> MultivariateNormal:
        """Return the prior at the positions `x`."""
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


class NodeProcess(nn.Module):
    """A Gaussian process classifier of nodes with a softmax likelihood.

    The first M positions of every block of covariances are the inducing nodes.

    Args:
        num_inducing: Number of inducing nodes M.
        num_classes: Number of classes C.
    """

    def __init__(self, num_inducing: int, num_classes: int) -> None:
        super().__init__()
        self.latent = _Latent(num_inducing, num_classes)
        self.likelihood = SoftmaxLikelihood(num_classes=num_classes, mixing_weights=False)
        self.num_inducing = num_inducing

    def loss(self, covariance: Any, labels_B: Tensor) -> Tensor:
        """Return the negative evidence lower bound per node; inducing nodes are training nodes.

        Args:
            covariance: Function that returns the block (M, M).
            labels_B: Labels of the inducing nodes.
        """
        bound = VariationalELBO(self.likelihood, self.latent, num_data=self.num_inducing)
        position_M1 = torch.arange(self.num_inducing, dtype=torch.float64).unsqueeze(1)
        with self._with(covariance):
            loss: Tensor = -bound(self.latent(position_M1), labels_B)
        return loss

    def moments(self, covariance: Any, num_nodes: int) -> tuple[Tensor, Tensor]:
        """Return mean and variance of the latent functions at the other nodes, (B, C) each.

        Args:
            covariance: Function that returns the block (M + B, M + B), inducing nodes first.
            num_nodes: Number of other nodes B.
        """
        with self._with(covariance):
            posterior = self._posterior(num_nodes)
            return posterior.mean, posterior.variance

    def means(self, covariance: Any, num_nodes: int) -> Tensor:
        """Return the means alone, which are much cheaper than variances; (B, C)."""
        with self._with(covariance):
            mean_BC: Tensor = self._posterior(num_nodes).mean
        return mean_BC

    def _posterior(self, num_nodes: int) -> Any:
        position_B = self.num_inducing + torch.arange(num_nodes, dtype=torch.float64)
        return self.latent(position_B.unsqueeze(1))

    @contextmanager
    def _with(self, covariance: Any) -> Iterator[None]:
        """Use the covariances of a block while the `with` block runs, and drop cached factors.

        GPyTorch adds jitter to nearly singular covariances; its warnings about that are hidden.
        """
        self.latent.covar_module.covariance = covariance
        clear_cache_hook(self.latent.variational_strategy.base_variational_strategy)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumericalWarning)
            yield
