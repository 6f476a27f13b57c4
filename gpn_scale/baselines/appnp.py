"""APPNP: a perceptron's logits, diffused over the graph (Klicpera et al., 2019).

Shapes: N nodes, C classes.
"""

import torch
from torch import Tensor

from gpn_scale.baselines.gcn import AbstractLayers
from gpn_scale.baselines.layers import alone
from gpn_scale.baselines.view import View
from gpn_scale.evaluation.scored import ScoredPrediction
from gpn_scale.inference.exact import config_steps
from gpn_scale.nn.diffusion import PowerIteration


class APPNP(AbstractLayers):
    """A perceptron whose logits are diffused by K steps of personalised PageRank."""

    name = "APPNP"

    def logits(self, view: View, generator: torch.Generator | None = None) -> Tensor:  # noqa: D102
        config = self.config.diffusion
        matrix = view.edges.transition(config.normalisation)
        diffuse = PowerIteration(matrix, teleport=config.teleport, steps=config_steps(config))
        return diffuse.linear(self.layers(view, alone, generator))

    def predict_view(self, view: View) -> ScoredPrediction:
        """Softmax."""
        return self.answer(self.final_logits(view).softmax(1))
