"""LP: densities of labelled nodes, diffused, as Dirichlet evidence (GPN's appendix).

Shapes: N nodes, C classes.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from gpn_scale.baselines.model import AbstractBaseline, counted_answer
from gpn_scale.baselines.view import View
from gpn_scale.diffusion.power_iteration import PowerIteration, config_steps
from gpn_scale.evaluation.scored_prediction import ScoredPrediction


@dataclass(frozen=True, slots=True, kw_only=True)
class PropagationOptions:
    """Of `LabelPropagation`."""

    class_prior: bool = True
    """Whether densities are weighted by their class's share of the training nodes.

    Deviation: the appendix's formula has no such weight, but its figures have it (CoraML 78.4 and
    AmazonPhotos 85.9 % accuracy; we get 79.0 and 86.6 with it, about 3 and 1 less without).
    """


class LabelPropagation(AbstractBaseline):
    """alpha_c = 1 + the diffused density of class c's training nodes; nothing is learned."""

    name = "LP"
    revision = 2
    Options = PropagationOptions

    @property
    def reach(self) -> int:
        """Features are not used."""
        return 0

    def fit_view(self, view: View, store: Path | None) -> None:
        """Remembers the training nodes."""
        self._training, self._num_classes = view.training, view.graph.num_classes

    def predict_view(self, view: View) -> ScoredPrediction:
        """Of densities over the view's edges."""
        return counted_answer(self, self.density(view), self._training[1])

    def density(self, view: View) -> Tensor:
        """rho(v | c) [p(c)], (N, C), in float64: densities of many nodes are small."""
        nodes, labels = self._training
        config = self.config.diffusion
        start_NC = torch.zeros(
            view.graph.num_nodes, self._num_classes, dtype=torch.float64, device=self.device
        )
        sizes_C = labels.bincount(minlength=self._num_classes).double()
        per_node = 1.0 / (sizes_C.sum() if self.options.class_prior else sizes_C[labels])
        start_NC[nodes, labels] = per_node
        matrix = view.edges.transition(config.normalisation).to(self.device, torch.float64)
        diffuse = PowerIteration(matrix, teleport=config.teleport, steps=config_steps(config))
        return diffuse.linear(start_NC)
