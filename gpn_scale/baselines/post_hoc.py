"""What may be put on top of a trained classifier: its weights stay, its scores change.

Temperature scaling (Guo et al., 2017), GNNSafe (Wu et al., 2023) and GEBM (Fuchsgruber et al.,
2024).

Shapes: N nodes, C classes.
"""

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from gpn_scale.baselines.gcn import AbstractLogits, energy
from gpn_scale.baselines.model import AbstractBaseline
from gpn_scale.baselines.view import View
from gpn_scale.data.graph import Graph
from gpn_scale.data.shifts import without_edges
from gpn_scale.diffusion.power_iteration import PowerIteration
from gpn_scale.errors import ConfigError
from gpn_scale.evaluation.scored_prediction import ScoredPrediction
from gpn_scale.evaluation.temperature import fitted_temperature


class AbstractPostHoc(AbstractBaseline):
    """A classifier with logits, and what is made of them."""

    Base: ClassVar[type[AbstractLogits]]
    """The classifier."""

    def fit_view(self, view: View, store: Path | None) -> None:
        """Trains the classifier, then adjusts to it."""
        self._base = self._new_base()
        self._base.fit_on(view, store)
        self.adjust(view)

    def state(self) -> dict[str, Tensor]:
        """The classifier's tensors; the rest is quickly found again."""
        return self._base.state()

    def load_state(self, graph: Graph, tensors: dict[str, Tensor], source: Path) -> None:  # noqa: D102
        self._base = self._new_base()
        self._base.load(graph, tensors, source)
        self.adjust(self.view(graph))

    def base_logits(self, view: View) -> Tensor:
        """Those of the classifier, (N, C)."""
        return self._base.final_logits(view)

    @abstractmethod
    def adjust(self, view: View) -> None:
        """What is found from the trained classifier and the graph's labels."""

    def _new_base(self) -> AbstractLogits:
        return self.Base(self.config, device=str(self.device), dtype=self.dtype)


class TemperatureScaling(AbstractPostHoc):
    """Logits divided by the number that suits the validation nodes best; no epistemic score."""

    temperature: float

    def adjust(self, view: View) -> None:
        """To the validation nodes."""
        nodes, labels = view.validation
        probability_BC = self.base_logits(view)[nodes].softmax(1)
        self.temperature = fitted_temperature(probability_BC.cpu().numpy(), labels.cpu().numpy())

    def predict_view(self, view: View) -> ScoredPrediction:
        """Softmax of the cooler logits."""
        return self.answer((self.base_logits(view) / self.temperature).softmax(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeOptions:
    """Of `EnergyPropagation`."""

    steps: int = 2
    """Of propagation."""
    own_share: float = 0.5
    """Of a node's own energy in every step."""

    def __post_init__(self) -> None:
        if self.steps < 0 or not 0.0 <= self.own_share <= 1.0:
            raise ConfigError(
                f"model.steps and model.own_share are {self.steps} and {self.own_share}, expected "
                "at least 0 steps and a share in [0, 1]"
            )


class EnergyPropagation(AbstractPostHoc):
    """GNNSafe: energies averaged with those of neighbours, E <- a E + (1 - a) D^-1 A E."""

    Options = SafeOptions

    def adjust(self, view: View) -> None:
        """Nothing is needed."""

    def predict_view(self, view: View) -> ScoredPrediction:
        """Softmax, and propagated energies."""
        logits_NC = self.base_logits(view)
        energy_N1 = energy(logits_NC).unsqueeze(1)
        matrix, own = view.edges.transition("rw", self_loops=False), self.options.own_share
        for _ in range(self.options.steps):
            energy_N1 = own * energy_N1 + (1.0 - own) * matrix.multiply(energy_N1)
        return self.answer(logits_NC.softmax(1), energy_N1.squeeze(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEnergyOptions:
    """Of `GraphEnergy`."""

    teleport: float = 0.5
    """Of the diffusion."""
    steps: int = 10
    """Of the diffusion."""
    regulariser: float = 1.0
    """Of the Gaussian log-densities, divided by their dimension; 0 for plain energies."""

    def __post_init__(self) -> None:
        if not 0.0 < self.teleport < 1.0 or self.steps < 0 or self.regulariser < 0.0:
            raise ConfigError(
                f"model.teleport, model.steps and model.regulariser are {self.teleport}, "
                f"{self.steps} and {self.regulariser}, expected in (0, 1), and at least 0"
            )


class GraphEnergy(AbstractPostHoc):
    """GEBM: energies of a node alone, of what it and its neighbours say, and of all of them.

    f are the classifier's logits on the graph without its edges, P is a diffusion: -lse f
    (independent), -lse P f (local) and P(-lse f) (group), joined by a soft maximum, since doubt of
    any kind is doubt. So that noise far away gets no low energy, the log-density of class c's
    Gaussian, fitted to f of the training nodes, joins f_c.

    Deviation: the Gaussians have common variances, which few training nodes suffice for.
    """

    revision = 1
    Options = GraphEnergyOptions

    def adjust(self, view: View) -> None:
        """Means of the training nodes' logits by class, and their common variances."""
        nodes, labels = view.training
        logits_BC = self._logits_alone(view)[nodes].double()
        num_classes = logits_BC.shape[1]
        sum_CC = logits_BC.new_zeros(num_classes, num_classes).index_add_(0, labels, logits_BC)
        self._mean_CC = sum_CC / labels.bincount(minlength=num_classes).unsqueeze(1)
        spread_C = (logits_BC - self._mean_CC[labels]).square().mean(0)
        self._variance_C = spread_C.clamp_min(1e-6)

    def predict_view(self, view: View) -> ScoredPrediction:
        """Softmax, and the joint energy."""
        evidence_NC = self._regularised(self._logits_alone(view))
        matrix = view.edges.transition("sym").to(self.device, torch.float64)
        diffuse = PowerIteration(
            matrix, teleport=self.options.teleport, steps=self.options.steps
        ).linear
        independent_N = energy(evidence_NC)
        local_N = energy(diffuse(evidence_NC))
        group_N = diffuse(independent_N.unsqueeze(1)).squeeze(1)
        joint_N = torch.stack([independent_N, local_N, group_N]).logsumexp(0)
        return self.answer(self.base_logits(view).softmax(1), joint_N)

    def _logits_alone(self, view: View) -> Tensor:
        return self.base_logits(view.with_edges(without_edges(view.graph)))

    def _regularised(self, logits_NC: Tensor) -> Tensor:
        """f_c + gamma / C log N(f; mean_c, variance), (N, C), in float64."""
        exact_NC = logits_NC.double()
        share = self.options.regulariser / exact_NC.shape[1]
        distance_NCC = (exact_NC.unsqueeze(1) - self._mean_CC).square() / self._variance_C
        regularised_NC: Tensor = exact_NC - 0.5 * share * distance_NCC.sum(2)
        return regularised_NC


POST_HOC: dict[str, type[AbstractPostHoc]] = {
    "temperature": TemperatureScaling,
    "GNNSafe": EnergyPropagation,
    "GEBM": GraphEnergy,
}


def on_top_of(base: type[AbstractLogits], method: str) -> type[AbstractPostHoc]:
    """The model that puts a method of `POST_HOC` on a classifier, by the name `base+method`."""
    name = f"{base.name}+{method}"
    facts = {"Base": base, "name": name, "mode": base.mode, "needs_rows": base.needs_rows}
    return type(name, (POST_HOC[method],), facts)
