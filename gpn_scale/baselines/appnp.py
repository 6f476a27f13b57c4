"""APPNP: the logits of a perceptron, diffused over the graph (Klicpera et al., 2019).

Shapes: N nodes, C classes.
"""

import torch
from torch import Tensor

from gpn_scale.baselines.graph_view import GraphView
from gpn_scale.baselines.layers import no_mixing
from gpn_scale.baselines.network import AbstractLayeredNetwork
from gpn_scale.diffusion.power_iteration import PowerIteration, config_steps
from gpn_scale.evaluation.scored_prediction import ScoredPrediction


class AbstractDiffusedNetwork(AbstractLayeredNetwork):
    """A perceptron whose logits are diffused by K steps of personalised PageRank."""

    def logits(self, view: GraphView, generator: torch.Generator | None = None) -> Tensor:  # noqa: D102
        return self._diffusion(view).linear(self.layers(view, no_mixing, generator))

    def representation(self, view: GraphView) -> Tensor:  # noqa: D102
        hidden_NH = self.layers.hidden(view.project(self.layers.first), no_mixing)
        return self._diffusion(view).linear(hidden_NH)

    def predict_view(self, view: GraphView) -> ScoredPrediction:
        """Return the softmax of the diffused logits."""
        return self.prediction(self.final_logits(view).softmax(1))

    def _diffusion(self, view: GraphView) -> PowerIteration:
        config = self.config.diffusion
        matrix = view.edges.transition(config.normalisation)
        return PowerIteration(matrix, teleport=config.teleport, steps=config_steps(config))


class APPNP(AbstractDiffusedNetwork):
    """APPNP, which diffuses over the whole graph in every training step."""

    name = "APPNP"
