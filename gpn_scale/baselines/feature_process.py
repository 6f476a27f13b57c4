"""GGP: a Gaussian process on features, averaged over neighbours (Ng et al., 2018).

Shapes: B nodes, U these nodes and their neighbours, F features, D powers of the kernel.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import scipy.special
import torch
from torch import Tensor, nn
from torch.nn import functional

from gpn_scale.baselines.gaussian_process import (
    BLOCK_NODES,
    AbstractProcess,
    Covariance,
    VarianceOf,
    check_memory_limit,
)
from gpn_scale.baselines.graph_view import GraphView
from gpn_scale.baselines.options import require_positive
from gpn_scale.data.features import take_rows
from gpn_scale.data.graph import CSRFeatures, Graph, NodeIds
from gpn_scale.diffusion.transition import transition_matrix
from gpn_scale.train.task import checked_split


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureProcessOptions:
    """Options of `FeatureProcess`."""

    degree: int = 3
    """Degree of the polynomial kernel."""
    samples: int = 100
    """Number of functions that are drawn for a prediction."""
    epistemic: VarianceOf = "predictive"
    """Variance used as epistemic score: of the class (as in GPN's tables) or of the functions."""
    memory_gib: float = 4.0
    """Limit on memory in GiB; larger graphs are refused, since time grows faster than memory."""

    def __post_init__(self) -> None:
        require_positive("model.degree", self.degree, "as the degree")
        require_positive("model.samples", self.samples, "drawn function")
        check_memory_limit(self.memory_gib)


class PolynomialKernel(nn.Module):
    """The kernel (s <x, y> + c)^D, evaluated as a sum over powers of <x, y>."""

    def __init__(self, degree: int) -> None:
        super().__init__()
        self.degree = degree
        self.raw_scale = nn.Parameter(torch.zeros(()))
        self.raw_offset = nn.Parameter(torch.zeros(()))

    def forward(self, powers_DBB: Tensor) -> Tensor:
        """Return covariances, (B, B), from powers 1 to D of inner products."""
        scale = functional.softplus(self.raw_scale)
        offset = functional.softplus(self.raw_offset)
        covariance_BB = torch.ones_like(powers_DBB[0]) * offset**self.degree
        for power in range(1, self.degree + 1):
            binomial = float(scipy.special.comb(self.degree, power))
            coefficient = binomial * scale**power * offset ** (self.degree - power)
            covariance_BB = covariance_BB + coefficient * powers_DBB[power - 1]
        return covariance_BB


class FeatureProcess(AbstractProcess):
    """A Gaussian process on features, averaged over every node and its neighbours."""

    name = "GGP"
    Options = FeatureProcessOptions

    def kernel_numbers(self, graph: Graph) -> int:
        """Count products between the features of training nodes, other nodes and neighbours."""
        closed, split = graph.out_degree + 1, checked_split(graph)
        others = max(closed[split.val].sum(), round(BLOCK_NODES * closed.mean()))
        used = min(int(closed[split.train].sum() + others), graph.num_nodes)
        labelled = len(split.train) + len(split.val)
        count: int = (self.options.degree + 1) * used**2 + self.options.degree * labelled**2
        return count

    def kernel(self) -> nn.Module:  # noqa: D102
        return PolynomialKernel(self.options.degree)

    def covariance(self, view: GraphView, nodes: NodeIds) -> Covariance:  # noqa: D102
        powers_DBB = averaged_powers(view, nodes, self.options.degree)
        kernel = self.kernel_module
        return lambda: kernel(powers_DBB)


def averaged_powers(view: GraphView, nodes: NodeIds, degree: int) -> Tensor:
    """Return P (X X^T)^d P^T of `nodes` for d = 1 ... degree, (D, B, B), in float64.

    P averages over a node and its neighbours, the powers are elementwise, and the feature rows X
    are scaled to length 1.
    """
    average = _neighbourhood_averages(view.graph)[nodes]
    used = np.unique(average.indices)
    average = average[:, used]
    rows = _unit_rows(view, used)
    products = rows @ rows.T
    products_UU = products.toarray() if scipy.sparse.issparse(products) else products
    powers = []
    power_UU = np.ones_like(products_UU)
    for _ in range(degree):
        power_UU = power_UU * products_UU
        powers.append(average @ (average @ power_UU).T)
    return torch.from_numpy(np.stack(powers))


def _neighbourhood_averages(graph: Graph) -> scipy.sparse.csr_array:
    matrix = transition_matrix(graph, "rw", self_loops=True)
    shape = (graph.num_nodes, graph.num_nodes)
    return scipy.sparse.csr_array((matrix.weight, matrix.indices, matrix.indptr), shape=shape)


def _unit_rows(view: GraphView, nodes: NodeIds) -> Any:
    """Return feature rows of length 1, as a sparse or dense matrix like the graph's features."""
    features = view.feature_rows.features
    if isinstance(features, CSRFeatures) and view.replaced is None:
        own = take_rows(features, nodes)
        assert isinstance(own, CSRFeatures)
        parts = (own.values.astype(np.float64), own.indices, own.indptr)
        rows = scipy.sparse.csr_array(parts, shape=own.shape)
        length_U = np.sqrt(rows.multiply(rows).sum(1))
        return scipy.sparse.diags_array(1.0 / np.where(length_U > 0, length_U, 1.0)) @ rows
    dense_UF = view.dense_rows(nodes).astype(np.float64)
    length_U1 = np.linalg.norm(dense_UF, axis=1, keepdims=True)
    return dense_UF / np.where(length_U1 > 0, length_U1, 1.0)
