"""Post-hoc methods: scores computed from the logits of a trained classifier.

Temperature scaling (Guo et al., 2017), GNNSafe (Wu et al., 2023), GEBM (Fuchsgruber et al., 2024),
and EPN of `evidential_probe`.

Shapes: N nodes, C classes.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from gpn_scale.baselines.evidential_probe import EvidentialProbe
from gpn_scale.baselines.gcn import energy
from gpn_scale.baselines.graph_view import GraphView
from gpn_scale.baselines.network import AbstractSoftmaxNetwork
from gpn_scale.baselines.post_hoc_base import AbstractPostHoc
from gpn_scale.data.shifts import without_edges
from gpn_scale.diffusion.power_iteration import PowerIteration
from gpn_scale.errors import ConfigError
from gpn_scale.evaluation.scored_prediction import ScoredPrediction
from gpn_scale.evaluation.temperature import fitted_temperature


class TemperatureScaling(AbstractPostHoc):
    """Logits divided by the temperature with the least validation loss; no epistemic score."""

    temperature: float

    def adjust(self, view: GraphView) -> None:
        """Fit the temperature to the validation nodes."""
        nodes, labels = view.validation
        probability_BC = self.base_logits(view)[nodes].softmax(1)
        self.temperature = fitted_temperature(probability_BC.cpu().numpy(), labels.cpu().numpy())

    def predict_view(self, view: GraphView) -> ScoredPrediction:
        """Return the softmax of the scaled logits."""
        return self.prediction((self.base_logits(view) / self.temperature).softmax(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeOptions:
    """Options of models that average a score over neighbours."""

    steps: int = 2
    """Number of propagation steps."""
    own_fraction: float = 0.5
    """Weight of a node's own score in every step."""

    def __post_init__(self) -> None:
        if self.steps < 0 or not 0.0 <= self.own_fraction <= 1.0:
            raise ConfigError(
                f"model.steps and model.own_fraction are {self.steps} and {self.own_fraction}, "
                "expected at least 0 steps and a weight in [0, 1]",
                arguments=("model.steps", "model.own_fraction"),
            )


class EnergyPropagation(AbstractPostHoc):
    """GNNSafe: energies that are averaged over neighbours, E <- a E + (1 - a) D^-1 A E."""

    Options = SafeOptions

    def adjust(self, view: GraphView) -> None:
        """Do nothing: the method has no parameters to fit."""

    def predict_view(self, view: GraphView) -> ScoredPrediction:
        """Return the softmax of the logits, and propagated energies."""
        logits_NC = self.base_logits(view)
        energy_N = averaged_over_neighbours(energy(logits_NC), view, self.options)
        return self.prediction(logits_NC.softmax(1), energy_N)


def averaged_over_neighbours(score_N: Tensor, view: GraphView, options: SafeOptions) -> Tensor:
    """Return the scores s after steps s <- a s + (1 - a) D^-1 A s, (N,)."""
    score_N1, own = score_N.unsqueeze(1), options.own_fraction
    matrix = view.edges.transition("rw", self_loops=False)
    for _ in range(options.steps):
        score_N1 = own * score_N1 + (1.0 - own) * matrix.multiply(score_N1)
    return score_N1.squeeze(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEnergyOptions:
    """Options of `GraphEnergy`."""

    teleport: float = 0.5
    """Teleport probability of the diffusion."""
    steps: int = 10
    """Number of diffusion steps."""
    regulariser: float = 1.0
    """Weight of the Gaussian log-densities, divided by their dimension; 0 for plain energies."""

    def __post_init__(self) -> None:
        if not 0.0 < self.teleport < 1.0 or self.steps < 0 or self.regulariser < 0.0:
            raise ConfigError(
                f"model.teleport, model.steps and model.regulariser are {self.teleport}, "
                f"{self.steps} and {self.regulariser}, expected a teleport in (0, 1), and the "
                "others at least 0",
                arguments=("model.teleport", "model.steps", "model.regulariser"),
            )


class GraphEnergy(AbstractPostHoc):
    """GEBM: the soft maximum of three energies, of a node alone, its neighbourhood and its cluster.

    With the network's logits f on the graph without its edges and a diffusion P, the energies are
    -lse f (independent), -lse P f (local) and P(-lse f) (group). To give features far from all
    data a high energy, the log-density of a Gaussian, fitted to f of class c's training nodes, is
    added to f_c.

    Deviation: the Gaussians share their variances, so that few training nodes are enough.
    """

    revision = 1
    Options = GraphEnergyOptions

    def adjust(self, view: GraphView) -> None:
        """Compute class means and common variances of the training nodes' logits."""
        nodes, labels = view.training
        logits_BC = self._logits_without_edges(view)[nodes].double()
        num_classes = logits_BC.shape[1]
        sum_CC = logits_BC.new_zeros(num_classes, num_classes).index_add_(0, labels, logits_BC)
        self._mean_CC = sum_CC / labels.bincount(minlength=num_classes).unsqueeze(1)
        spread_C = (logits_BC - self._mean_CC[labels]).square().mean(0)
        self._variance_C = spread_C.clamp_min(1e-6)

    def predict_view(self, view: GraphView) -> ScoredPrediction:
        """Return the softmax of the logits, and the joint energy."""
        evidence_NC = self._regularised(self._logits_without_edges(view))
        matrix = view.edges.transition("sym").to(self.device, torch.float64)
        diffuse = PowerIteration(
            matrix, teleport=self.options.teleport, steps=self.options.steps
        ).linear
        independent_N = energy(evidence_NC)
        local_N = energy(diffuse(evidence_NC))
        group_N = diffuse(independent_N.unsqueeze(1)).squeeze(1)
        joint_N = torch.stack([independent_N, local_N, group_N]).logsumexp(0)
        return self.prediction(self.base_logits(view).softmax(1), joint_N)

    def _logits_without_edges(self, view: GraphView) -> Tensor:
        return self.base_logits(view.with_edges(without_edges(view.graph)))

    def _regularised(self, logits_NC: Tensor) -> Tensor:
        """Return f_c + gamma / C log N(f; mean_c, variance), (N, C), in float64."""
        exact_NC = logits_NC.double()
        weight = self.options.regulariser / exact_NC.shape[1]
        distance_NCC = (exact_NC.unsqueeze(1) - self._mean_CC).square() / self._variance_C
        regularised_NC: Tensor = exact_NC - 0.5 * weight * distance_NCC.sum(2)
        return regularised_NC


POST_HOC: dict[str, type[AbstractPostHoc]] = {
    "temperature": TemperatureScaling,
    "GNNSafe": EnergyPropagation,
    "GEBM": GraphEnergy,
    "EPN": EvidentialProbe,
}
"""Methods by the names that follow the `+` in names of models."""


def on_top_of(base: type[AbstractSoftmaxNetwork], method: str) -> type[AbstractPostHoc]:
    """Return the model `base+method`: a method of `POST_HOC` on top of a network class."""
    name = f"{base.name}+{method}"
    attributes = {"Base": base, "name": name, "mode": base.mode, "needs_rows": base.needs_rows}
    return type(name, (POST_HOC[method],), attributes)
