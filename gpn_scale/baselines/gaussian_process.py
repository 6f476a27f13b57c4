"""Base class of Gaussian processes on graphs, GGP and Matern-GGP.

They are sparse variational classifiers whose inducing nodes are the training nodes. They do not
scale: the memory they need is estimated, and graphs above a limit are refused.

Shapes: B nodes of a block, M inducing nodes, C classes.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from gpn_scale.baselines.graph_view import GraphView
from gpn_scale.baselines.network import AbstractNetwork
from gpn_scale.baselines.options import require_in_range
from gpn_scale.baselines.training import evaluating
from gpn_scale.config import RunConfig
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.errors import GraphError
from gpn_scale.evaluation.scored_prediction import ScoredPrediction
from gpn_scale.extras import check_extra
from gpn_scale.train.task import checked_split

if TYPE_CHECKING:
    from gpn_scale.baselines.gpytorch_process import NodeProcess

BLOCK_NODES = 512
"""Number of nodes that are predicted together."""
_GIB = 1 << 30

VarianceOf = Literal["predictive", "latent"]
"""Variance used as epistemic score: of the predicted class, or of the latent functions."""
Covariance = Callable[[], Tensor]
"""Function that computes covariances from the current parameters of the kernel."""


def check_memory_limit(gib: float) -> None:
    """Refuse a limit that is not positive.

    Raises:
        ConfigError: `gib` is not above 0.
    """
    require_in_range("model.memory_gib", gib, allowed=gib > 0.0, expected="a number above 0")


class AbstractProcess(AbstractNetwork):
    """A Gaussian process whose epistemic score is a variance, summed over classes."""

    def __init__(self, config: RunConfig | None = None, options: Any = None, **_: Any) -> None:
        # Covariances are nearly singular: only the CPU and double precision are used.
        super().__init__(config, options, device="cpu", dtype=torch.float64)

    def check_limits(self, graph: Graph) -> None:
        """Refuse large graphs, and environments without GPyTorch.

        Raises:
            MissingExtraError: GPyTorch is not installed.
            GraphError: training or prediction would need more than `memory_gib`.
        """
        check_extra("gp", self.name)
        split = checked_split(graph)
        num_train, num_val = len(split.train), len(split.val)
        # The posterior's factors with their gradients and the optimiser's moments, and the
        # covariances of validation. Measured peaks were 0.9 to 3.6 times this estimate.
        count = 5 * graph.num_classes * num_train**2 + 3 * (num_train + num_val) ** 2
        need = 8 * (count + self.kernel_numbers(graph)) / _GIB
        limit = self.options.memory_gib
        if need > limit:
            raise GraphError(
                f"{self.name} on graph {graph.name!r} needs about {_rounded(need)} GiB for "
                f"{num_train:,} training nodes, {num_val:,} validation nodes and "
                f"{graph.num_nodes:,} nodes in total, expected at most {limit:g} GiB: use a "
                "smaller graph or another model, or raise model.memory_gib",
                arguments=("model.memory_gib",),
            )

    def build(self, view: GraphView, generator: torch.Generator) -> nn.Module:
        """Return the process and the parameters of its kernel."""
        from gpn_scale.baselines.gpytorch_process import NodeProcess

        process = NodeProcess(len(view.training[0]), view.graph.num_classes)
        self._inducing = view.training[0].cpu().numpy()
        return nn.ModuleDict({"process": process, "kernel": self.kernel()})

    def fit_view(self, view: GraphView, store: Path | None) -> None:  # noqa: D102
        # GPyTorch draws from torch's global generator, whose state must not change for others.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.config.train.rng_seed)
            self._covariances: dict[str, Covariance] = {}
            super().fit_view(view, store)
        self._covariances = {}

    def losses(self, view: GraphView, generator: torch.Generator, epoch: int) -> Iterator[Tensor]:  # noqa: D102
        covariance = self._cached_covariance("training", view, self._inducing)
        yield self.process.loss(covariance, view.training[1])

    def validation_loss(self, view: GraphView) -> float:
        """Return the cross-entropy of the mean functions."""
        nodes, labels = view.validation
        both = np.append(self._inducing, nodes.cpu().numpy())
        covariance = self._cached_covariance("validation", view, both)
        mean_BC = self.process.means(covariance, len(nodes))
        return float(functional.cross_entropy(mean_BC, labels))

    def predict_view(self, view: GraphView) -> ScoredPrediction:  # noqa: D102
        return self.predict_nodes(view, np.arange(view.graph.num_nodes))

    def predict_nodes(self, view: GraphView, nodes: NodeIds) -> ScoredPrediction:
        """Return the expected softmax over drawn functions, with a variance as epistemic score."""
        predictions = []
        with evaluating(self.module):
            for start in range(0, len(nodes), BLOCK_NODES):
                moments = self._moments(view, nodes[start : start + BLOCK_NODES])
                probability_BC = self._expected_softmax(*moments)
                score_B = moments[1].sum(1)
                if self.options.epistemic == "predictive":
                    score_B = (probability_BC * (1.0 - probability_BC)).sum(1)
                predictions.append(self.prediction(probability_BC, score_B))
        return ScoredPrediction.joined(predictions)

    @property
    def process(self) -> "NodeProcess":
        """The trained process."""
        process: Any = self._parts["process"]
        return process  # type: ignore[no-any-return]

    @property
    def kernel_module(self) -> Callable[..., Tensor]:
        """The trained kernel, which `kernel` created."""
        return self._parts["kernel"]

    @property
    def _parts(self) -> nn.ModuleDict:
        assert isinstance(self.module, nn.ModuleDict)
        return self.module

    @abstractmethod
    def kernel_numbers(self, graph: Graph) -> int:
        """Return how many numbers the kernel must hold in memory at once."""

    @abstractmethod
    def kernel(self) -> nn.Module:
        """Return a module with the kernel's parameters."""

    @abstractmethod
    def covariance(self, view: GraphView, nodes: NodeIds) -> Covariance:
        """Return the covariances of `nodes` as a function of the kernel's parameters."""

    def _cached_covariance(self, name: str, view: GraphView, nodes: NodeIds) -> Covariance:
        """Return covariances that every epoch needs, computed in the first one."""
        if name not in self._covariances:
            self._covariances[name] = self.covariance(view, nodes)
        return self._covariances[name]

    def _expected_softmax(self, mean_BC: Tensor, variance_BC: Tensor) -> Tensor:
        """Average the softmax over functions; all blocks use the same draws."""
        probability_BC = torch.zeros_like(mean_BC)
        generator, deviation_BC = self.generator(2), variance_BC.sqrt()
        for _ in range(self.options.samples):
            noise_C = torch.empty_like(mean_BC[0]).normal_(generator=generator)
            probability_BC += (mean_BC + deviation_BC * noise_C).softmax(1)
        return probability_BC.div_(self.options.samples)

    def _moments(self, view: GraphView, nodes: NodeIds) -> tuple[Tensor, Tensor]:
        covariance = self.covariance(view, np.append(self._inducing, nodes))
        return self.process.moments(covariance, len(nodes))


def _rounded(gib: float) -> str:
    return f"{gib:,.1f}" if gib >= 0.1 else f"{gib:.1g}"
