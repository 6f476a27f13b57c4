"""Gaussian processes on graphs: GGP (Ng et al., 2018) and Matern-GGP (Borovitskiy et al., 2021).

Both are sparse variational classifiers whose inducing nodes are the training nodes. They do not
scale: what they would need is estimated, and refused above a limit.

Shapes: N nodes, B nodes of a block, C classes, F features, D powers of a kernel.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse
import scipy.special
import torch
from scipy.sparse.linalg import eigsh
from torch import Tensor, nn
from torch.nn import functional

from gpn_scale.baselines.model import require_positive
from gpn_scale.baselines.training import AbstractNetwork, evaluating
from gpn_scale.baselines.view import Edges, View
from gpn_scale.config import RunConfig
from gpn_scale.data.features import take_rows
from gpn_scale.data.graph import CSRFeatures, Graph, NodeIds
from gpn_scale.diffusion.transition import transition_matrix
from gpn_scale.errors import ConfigError, GraphError
from gpn_scale.evaluation.scored_prediction import ScoredPrediction
from gpn_scale.train.task import checked_split

if TYPE_CHECKING:
    from gpn_scale.baselines.gp_network import NodeProcess

_GIB = 1 << 30
_BLOCK = 512
"""Nodes that are predicted together."""

VarianceOf = Literal["predictive", "latent"]
Covariance = Callable[[], Tensor]


def _check_memory(gib: float) -> None:
    if not gib > 0.0:
        raise ConfigError(f"model.memory_gib is {gib:g}, expected a number above 0")


def _short(gib: float) -> str:
    return f"{gib:,.1f}" if gib >= 0.1 else f"{gib:.1g}"


class AbstractProcess(AbstractNetwork):
    """A Gaussian process; epistemic is a variance, summed over classes."""

    def __init__(self, config: RunConfig | None = None, options: Any = None, **_: Any) -> None:
        # Covariances are nearly singular: on the CPU and in double precision alone.
        super().__init__(config, options, device="cpu", dtype=torch.float64)

    def check_limits(self, graph: Graph) -> None:
        """Refuses large graphs, and to go on without GPyTorch.

        Raises:
            ConfigError: it is not installed.
            GraphError: what it must hold at once would need more than `memory_gib`.
        """
        try:
            import gpn_scale.baselines.gp_network  # noqa: F401
        except ImportError as error:
            raise ConfigError(
                f"{self.name} needs GPyTorch, which cannot be imported ({error}): install it with "
                "`pip install gpn-scale[gp]`"
            ) from error
        split = checked_split(graph)
        trained, judged = len(split.train), len(split.train) + len(split.val)
        # The factors of the posterior with gradient and moments, and the covariances of validation:
        # measured peaks were 0.9 to 3.6 times as high.
        count = 5 * graph.num_classes * trained**2 + 3 * judged**2 + self.own_numbers(graph)
        need, limit = 8 * count / _GIB, self.options.memory_gib
        if need > limit:
            raise GraphError(
                f"{self.name} on graph {graph.name!r} needs about {_short(need)} GiB for "
                f"{trained:,} training, {len(split.val):,} validation and in all "
                f"{graph.num_nodes:,} nodes, expected at most {limit:g}: use a smaller graph or "
                "another model, or raise model.memory_gib"
            )

    def build(self, view: View, generator: torch.Generator) -> nn.Module:
        """The process and its kernel's parameters."""
        from gpn_scale.baselines.gp_network import NodeProcess

        process = NodeProcess(len(view.training[0]), view.graph.num_classes)
        self._inducing = view.training[0].cpu().numpy()
        return nn.ModuleDict({"process": process, "kernel": self.kernel()})

    def fit_view(self, view: View, store: Path | None) -> None:  # noqa: D102
        # GPyTorch draws from torch's own generator, which others must find as it was.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.config.train.rng_seed)
            self._blocks: dict[str, Covariance] = {}
            super().fit_view(view, store)
        self._blocks = {}

    def losses(self, view: View, generator: torch.Generator, epoch: int) -> Iterator[Tensor]:  # noqa: D102
        yield self.process.loss(self._kept("training", view, self._inducing), view.training[1])

    def validation_loss(self, view: View) -> float:
        """Cross-entropy of the mean functions."""
        nodes, labels = view.validation
        both = np.append(self._inducing, nodes.cpu().numpy())
        mean_BC = self.process.means(self._kept("validation", view, both), len(nodes))
        return float(functional.cross_entropy(mean_BC, labels))

    def predict_view(self, view: View) -> ScoredPrediction:  # noqa: D102
        return self.predict_nodes(view, np.arange(view.graph.num_nodes))

    def predict_nodes(self, view: View, nodes: NodeIds) -> ScoredPrediction:
        """Expected softmax over drawn functions, and the variance."""
        found = []
        with evaluating(self.module):
            for start in range(0, len(nodes), _BLOCK):
                moments = self._moments(view, nodes[start : start + _BLOCK])
                probability_BC = self._expected_softmax(*moments)
                score_B = moments[1].sum(1)
                if self.options.epistemic == "predictive":
                    score_B = (probability_BC * (1.0 - probability_BC)).sum(1)
                found.append(self.answer(probability_BC, score_B))
        return ScoredPrediction.joined(found)

    @property
    def process(self) -> "NodeProcess":
        """The trained process."""
        found: Any = self._parts["process"]
        return found  # type: ignore[no-any-return]

    @property
    def kernel_module(self) -> Callable[..., Tensor]:
        """What `kernel` made, trained."""
        return self._parts["kernel"]

    @property
    def _parts(self) -> nn.ModuleDict:
        assert isinstance(self.module, nn.ModuleDict)
        return self.module

    @abstractmethod
    def own_numbers(self, graph: Graph) -> int:
        """How many numbers this kernel must hold at once."""

    @abstractmethod
    def kernel(self) -> nn.Module:
        """What covariances depend on beside the graph."""

    @abstractmethod
    def covariance(self, view: View, nodes: NodeIds) -> Covariance:
        """The covariances of `nodes`, as a function of the kernel's parameters."""

    def _kept(self, name: str, view: View, nodes: NodeIds) -> Covariance:
        """Covariances that every epoch needs."""
        if name not in self._blocks:
            self._blocks[name] = self.covariance(view, nodes)
        return self._blocks[name]

    def _expected_softmax(self, mean_BC: Tensor, variance_BC: Tensor) -> Tensor:
        """Over functions that are drawn alike at all nodes, so that blocks do not matter."""
        probability_BC = torch.zeros_like(mean_BC)
        generator, deviation_BC = self.generator(2), variance_BC.sqrt()
        for _ in range(self.options.samples):
            noise_C = torch.empty_like(mean_BC[0]).normal_(generator=generator)
            probability_BC += (mean_BC + deviation_BC * noise_C).softmax(1)
        return probability_BC.div_(self.options.samples)

    def _moments(self, view: View, nodes: NodeIds) -> tuple[Tensor, Tensor]:
        covariance = self.covariance(view, np.append(self._inducing, nodes))
        return self.process.moments(covariance, len(nodes))


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureProcessOptions:
    """Of `FeatureProcess`."""

    degree: int = 3
    """Of the polynomial kernel."""
    samples: int = 100
    """Drawn functions of a prediction."""
    epistemic: VarianceOf = "predictive"
    """Whose variance is the epistemic score: the class's, as in GPN's tables, or the functions'."""
    memory_gib: float = 4.0
    """Graphs that would need more are refused; time grows faster than memory."""

    def __post_init__(self) -> None:
        require_positive("model.degree", self.degree, "as degree")
        require_positive("model.samples", self.samples, "drawn function")
        _check_memory(self.memory_gib)


class PolynomialKernel(nn.Module):
    """Coefficients of (s <x, y> + c)^D as a sum over powers of <x, y>."""

    def __init__(self, degree: int) -> None:
        super().__init__()
        self.degree = degree
        self.raw_scale = nn.Parameter(torch.zeros(()))
        self.raw_offset = nn.Parameter(torch.zeros(()))

    def forward(self, powers_DBB: Tensor) -> Tensor:
        """Powers 1 to D of inner products -> covariances, (B, B)."""
        scale = functional.softplus(self.raw_scale)
        offset = functional.softplus(self.raw_offset)
        covariance_BB = torch.ones_like(powers_DBB[0]) * offset**self.degree
        for power in range(1, self.degree + 1):
            ways = float(scipy.special.comb(self.degree, power))
            share = ways * scale**power * offset ** (self.degree - power)
            covariance_BB = covariance_BB + share * powers_DBB[power - 1]
        return covariance_BB


class FeatureProcess(AbstractProcess):
    """A function of features, averaged over every node and its neighbours."""

    name = "GGP"
    Options = FeatureProcessOptions

    def own_numbers(self, graph: Graph) -> int:
        """Products of the features of all neighbours of training nodes and of a block of others."""
        closed, split = graph.out_degree + 1, checked_split(graph)
        others = max(closed[split.val].sum(), round(_BLOCK * closed.mean()))
        used = min(int(closed[split.train].sum() + others), graph.num_nodes)
        judged = len(split.train) + len(split.val)
        count: int = (self.options.degree + 1) * used**2 + self.options.degree * judged**2
        return count

    def kernel(self) -> nn.Module:  # noqa: D102
        return PolynomialKernel(self.options.degree)

    def covariance(self, view: View, nodes: NodeIds) -> Covariance:  # noqa: D102
        powers_DBB = averaged_powers(view, nodes, self.options.degree)
        kernel = self.kernel_module
        return lambda: kernel(powers_DBB)


def averaged_powers(view: View, nodes: NodeIds, degree: int) -> Tensor:
    """P (X X^T)^d P^T for the rows of `nodes` and d = 1 ... degree, (D, B, B), in float64.

    P averages over a node and its neighbours, and powers are of single entries. Feature rows are
    scaled to length 1.
    """
    average = _averages(view.graph)[nodes]
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


def _averages(graph: Graph) -> scipy.sparse.csr_array:
    matrix = transition_matrix(graph, "rw", self_loops=True)
    shape = (graph.num_nodes, graph.num_nodes)
    return scipy.sparse.csr_array((matrix.weight, matrix.indices, matrix.indptr), shape=shape)


def _unit_rows(view: View, nodes: NodeIds) -> Any:
    """Feature rows of length 1, a sparse or a dense matrix as the graph's own are."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MaternOptions:
    """Of `MaternProcess`."""

    eigenpairs: int = 500
    """Of the graph's Laplacian, from the smoothest on; the kernel is cut to these."""
    samples: int = 100
    """Drawn functions of a prediction."""
    epistemic: VarianceOf = "predictive"
    """Whose variance is the epistemic score: the class's, as in GPN's tables, or the functions'."""
    memory_gib: float = 1.0
    """Graphs that would need more are refused; time grows faster than memory."""

    def __post_init__(self) -> None:
        require_positive("model.eigenpairs", self.eigenpairs, "eigenpair")
        require_positive("model.samples", self.samples, "drawn function")
        _check_memory(self.memory_gib)


class MaternKernel(nn.Module):
    """Spectrum of the graph Matern kernel: s (2 nu / kappa^2 + lambda)^-nu, of mean variance s."""

    def __init__(self) -> None:
        super().__init__()
        self.log_smoothness = nn.Parameter(torch.tensor(1.5).log())
        self.log_length = nn.Parameter(torch.tensor(5.0).log())
        self.log_scale = nn.Parameter(torch.zeros(()))

    def forward(self, eigenvalue_K: Tensor, vector_BK: Tensor, num_nodes: int) -> Tensor:
        """Covariances, (B, B)."""
        smoothness, length = self.log_smoothness.exp(), self.log_length.exp()
        spectrum_K = (2.0 * smoothness / length.square() + eigenvalue_K) ** -smoothness
        spectrum_K = spectrum_K * (self.log_scale.exp() * num_nodes / spectrum_K.sum())
        return (vector_BK * spectrum_K) @ vector_BK.T


class MaternProcess(AbstractProcess):
    """A function of the place in the graph alone, smooth as its Laplacian says."""

    name = "Matern-GGP"
    Options = MaternOptions

    @property
    def reach(self) -> int:
        """Features are not used."""
        return 0

    def check_limits(self, graph: Graph) -> None:
        """Refuses directed graphs, too, whose Laplacian has no real spectrum.

        Raises:
            GraphError: it is directed, or too large.
        """
        if graph.directed:
            raise GraphError(
                f"{self.name} got the directed graph {graph.name!r}, expected an undirected one: "
                "add the reverse edges or use another model"
            )
        super().check_limits(graph)

    def own_numbers(self, graph: Graph) -> int:
        """Eigenvectors and the space that finding them takes."""
        pairs: int = min(self.options.eigenpairs, graph.num_nodes)
        return 3 * pairs * graph.num_nodes

    def kernel(self) -> nn.Module:  # noqa: D102
        return MaternKernel()

    def covariance(self, view: View, nodes: NodeIds) -> Covariance:  # noqa: D102
        eigenvalue_K, vector_NK = self._spectrum(view)
        vector_BK, kernel = vector_NK[torch.from_numpy(nodes)], self.kernel_module
        return lambda: kernel(eigenvalue_K, vector_BK, len(vector_NK))

    def _spectrum(self, view: View) -> tuple[Tensor, Tensor]:
        if self._known is None or self._known[0] is not view.edges:
            self._known = (view.edges, *laplacian_spectrum(view.graph, self.options.eigenpairs))
        return self._known[1:]

    _known: tuple[Edges, Tensor, Tensor] | None = None


def laplacian_spectrum(graph: Graph, eigenpairs: int) -> tuple[Tensor, Tensor]:
    """Smallest eigenvalues and their vectors of I - D^-1/2 A D^-1/2, (K,) and (N, K).

    Nodes without neighbours have a loop, so that their functions are free.
    """
    matrix = transition_matrix(graph, "sym", self_loops=False)
    shape = (graph.num_nodes, graph.num_nodes)
    similar = scipy.sparse.csr_array((matrix.weight, matrix.indices, matrix.indptr), shape=shape)
    if eigenpairs >= graph.num_nodes - 1:
        value, vector = np.linalg.eigh(similar.toarray())
    else:
        start = np.random.default_rng(0).standard_normal(graph.num_nodes)
        value, vector = eigsh(similar, k=eigenpairs, which="LA", v0=start, tol=1e-6)
    # Round-off may take eigenvalues a little below 0.
    smallest = np.maximum(1.0 - value[::-1], 0.0)
    return torch.from_numpy(smallest), torch.from_numpy(vector[:, ::-1].copy())
