"""Sparse variational Gaussian processes over nodes, on GPyTorch; sole user of it.

Shapes: B nodes, M inducing nodes, C classes, D kinds of covariances.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

with warnings.catch_warnings():
    # Importing it compiles functions with what torch calls deprecated.
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
    """Covariances of nodes that are known by their places in a block.

    `covariance` must be set before use: places of rows and columns -> their covariances.
    """

    covariance: Any = None

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """(..., A, 1) and (..., B, 1) places -> (..., A, B), or (..., A) of a diagonal."""
        whole: Tensor = self.covariance()
        rows, columns = x1.squeeze(-1).long(), x2.squeeze(-1).long()
        return whole[rows, columns] if diag else whole[rows[:, None], columns]


class _Latent(gpytorch.models.ApproximateGP):  # type: ignore[misc]
    """One function per class, independent, with a common kernel."""

    def __init__(self, num_inducing: int, num_classes: int) -> None:
        batch = torch.Size([num_classes])
        posterior = CholeskyVariationalDistribution(num_inducing, batch_shape=batch)
        place_M1 = torch.arange(num_inducing, dtype=torch.float64).unsqueeze(1)
        strategy = VariationalStrategy(self, place_M1, posterior, learn_inducing_locations=False)
        super().__init__(IndependentMultitaskVariationalStrategy(strategy, num_tasks=num_classes))
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = NodeKernel()

    def forward(self, x: Tensor) -> MultivariateNormal:
        """The prior of nodes at places `x`."""
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


class NodeProcess(nn.Module):
    """A Gaussian process classifier of nodes with a softmax likelihood.

    The first M places of every block of covariances are the inducing nodes.

    Args:
        num_inducing: M.
        num_classes: C.
    """

    def __init__(self, num_inducing: int, num_classes: int) -> None:
        super().__init__()
        self.latent = _Latent(num_inducing, num_classes)
        self.likelihood = SoftmaxLikelihood(num_classes=num_classes, mixing_weights=False)
        self.num_inducing = num_inducing

    def loss(self, covariance: Any, labels_B: Tensor) -> Tensor:
        """Negative evidence bound per node, where the inducing nodes are the training nodes.

        Args:
            covariance: Gives the block (M, M).
            labels_B: Of the inducing nodes.
        """
        bound = VariationalELBO(self.likelihood, self.latent, num_data=self.num_inducing)
        place_M1 = torch.arange(self.num_inducing, dtype=torch.float64).unsqueeze(1)
        with self._with(covariance):
            found: Tensor = -bound(self.latent(place_M1), labels_B)
        return found

    def moments(self, covariance: Any, num_nodes: int) -> tuple[Tensor, Tensor]:
        """Mean and variance of the latent functions at the nodes after the inducing ones, (B, C).

        Args:
            covariance: Gives the block (M + B, M + B).
            num_nodes: B.
        """
        with self._with(covariance):
            found = self._at(num_nodes)
            return found.mean, found.variance

    def means(self, covariance: Any, num_nodes: int) -> Tensor:
        """The means alone, which are much the cheaper part; (B, C)."""
        with self._with(covariance):
            found: Tensor = self._at(num_nodes).mean
        return found

    def _at(self, num_nodes: int) -> Any:
        places = self.num_inducing + torch.arange(num_nodes, dtype=torch.float64)
        return self.latent(places.unsqueeze(1))

    @contextmanager
    def _with(self, covariance: Any) -> Iterator[None]:
        """The covariances of a block; what was factorised of another one is forgotten.

        Nearly singular ones are mended by GPyTorch, with warnings that say no more than that.
        """
        self.latent.covar_module.covariance = covariance
        clear_cache_hook(self.latent.variational_strategy.base_variational_strategy)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumericalWarning)
            yield
