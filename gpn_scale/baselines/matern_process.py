"""Matern-GGP: a Gaussian process on positions in the graph (Borovitskiy et al., 2021).

Shapes: N nodes, B nodes of a block, K eigenpairs.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse
import torch
from scipy.sparse.linalg import eigsh
from torch import Tensor, nn

from gpn_scale.baselines.gaussian_process import (
    AbstractProcess,
    Covariance,
    VarianceOf,
    check_memory_limit,
)
from gpn_scale.baselines.graph_view import EdgeMatrices, GraphView
from gpn_scale.baselines.options import require_positive
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.diffusion.transition import transition_matrix
from gpn_scale.errors import GraphError


@dataclass(frozen=True, slots=True, kw_only=True)
class MaternOptions:
    """Options of `MaternProcess`."""

    eigenpairs: int = 500
    """Number of eigenpairs of the graph's Laplacian, smoothest first, that make up the kernel."""
    samples: int = 100
    """Number of functions that are drawn for a prediction."""
    epistemic: VarianceOf = "predictive"
    """Variance used as epistemic score: of the class (as in GPN's tables) or of the functions."""
    memory_gib: float = 1.0
    """Limit on memory in GiB; larger graphs are refused, since time grows faster than memory."""

    def __post_init__(self) -> None:
        require_positive("model.eigenpairs", self.eigenpairs, "eigenpair")
        require_positive("model.samples", self.samples, "drawn function")
        check_memory_limit(self.memory_gib)


class MaternKernel(nn.Module):
    """The graph Matern kernel with spectrum s (2 nu / kappa^2 + lambda)^-nu and mean variance s."""

    def __init__(self) -> None:
        super().__init__()
        self.log_smoothness = nn.Parameter(torch.tensor(1.5).log())
        self.log_length = nn.Parameter(torch.tensor(5.0).log())
        self.log_scale = nn.Parameter(torch.zeros(()))

    def forward(self, eigenvalue_K: Tensor, vector_BK: Tensor, num_nodes: int) -> Tensor:
        """Return covariances, (B, B)."""
        smoothness, length = self.log_smoothness.exp(), self.log_length.exp()
        spectrum_K = (2.0 * smoothness / length.square() + eigenvalue_K) ** -smoothness
        spectrum_K = spectrum_K * (self.log_scale.exp() * num_nodes / spectrum_K.sum())
        return (vector_BK * spectrum_K) @ vector_BK.T


class MaternProcess(AbstractProcess):
    """A Gaussian process on positions alone; the graph's Laplacian defines its smoothness."""

    name = "Matern-GGP"
    Options = MaternOptions

    _last_spectrum: tuple[EdgeMatrices, Tensor, Tensor] | None = None
    """Edges, eigenvalues and eigenvectors of the last view."""

    @property
    def reach(self) -> int:
        """Number of hops over which features act: 0, since they are not used."""
        return 0

    def check_limits(self, graph: Graph) -> None:
        """Refuse directed graphs, whose Laplacian has no real spectrum, and large graphs.

        Raises:
            ConfigError: GPyTorch is not installed.
            GraphError: the graph is directed or too large.
        """
        if graph.directed:
            raise GraphError(
                f"{self.name} got the directed graph {graph.name!r}, expected an undirected one: "
                "add the reverse edges or use another model"
            )
        super().check_limits(graph)

    def kernel_numbers(self, graph: Graph) -> int:
        """Count eigenvectors and the working memory of the eigensolver."""
        pairs: int = min(self.options.eigenpairs, graph.num_nodes)
        return 3 * pairs * graph.num_nodes

    def kernel(self) -> nn.Module:  # noqa: D102
        return MaternKernel()

    def covariance(self, view: GraphView, nodes: NodeIds) -> Covariance:  # noqa: D102
        eigenvalue_K, vector_NK = self._spectrum(view)
        vector_BK, kernel = vector_NK[torch.from_numpy(nodes)], self.kernel_module
        return lambda: kernel(eigenvalue_K, vector_BK, len(vector_NK))

    def _spectrum(self, view: GraphView) -> tuple[Tensor, Tensor]:
        if self._last_spectrum is None or self._last_spectrum[0] is not view.edges:
            spectrum = laplacian_spectrum(view.graph, self.options.eigenpairs)
            self._last_spectrum = (view.edges, *spectrum)
        return self._last_spectrum[1:]


def laplacian_spectrum(graph: Graph, eigenpairs: int) -> tuple[Tensor, Tensor]:
    """Return the smallest eigenvalues of I - D^-1/2 A D^-1/2, (K,), and their vectors, (N, K).

    Nodes without neighbours have a self-loop, so that their function values are independent.
    """
    matrix = transition_matrix(graph, "sym", self_loops=False)
    shape = (graph.num_nodes, graph.num_nodes)
    similar = scipy.sparse.csr_array((matrix.weight, matrix.indices, matrix.indptr), shape=shape)
    if eigenpairs >= graph.num_nodes - 1:
        value, vector = np.linalg.eigh(similar.toarray())
    else:
        start = np.random.default_rng(0).standard_normal(graph.num_nodes)
        value, vector = eigsh(similar, k=eigenpairs, which="LA", v0=start, tol=1e-6)
    # Rounding may take eigenvalues slightly below 0.
    smallest = np.maximum(1.0 - value[::-1], 0.0)
    return torch.from_numpy(smallest), torch.from_numpy(vector[:, ::-1].copy())
