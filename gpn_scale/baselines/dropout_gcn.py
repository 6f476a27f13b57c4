"""VGCN-Dropout: a network that keeps dropout in prediction (Gal & Ghahramani, 2016).

Shapes: N nodes, C classes.
"""

from dataclasses import dataclass

from gpn_scale.baselines.gcn import AbstractGCN
from gpn_scale.baselines.graph_view import GraphView
from gpn_scale.baselines.options import require_positive
from gpn_scale.baselines.predictions import sampled_prediction
from gpn_scale.baselines.training import evaluating
from gpn_scale.evaluation.scored_prediction import ScoredPrediction


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingOptions:
    """Options of models that predict by several random passes."""

    samples: int = 10
    """Number of random passes in a prediction."""

    def __post_init__(self) -> None:
        require_positive("model.samples", self.samples, "random pass")


class AbstractRandomPasses(AbstractGCN):
    """A network that stays random when it predicts; its options have the field `samples`."""

    def predict_view(self, view: GraphView) -> ScoredPrediction:
        """Return mean and variance of random passes."""
        generator = self.generator(2)
        with evaluating(self.module):
            passes = (self.logits(view, generator) for _ in range(self.options.samples))
            return sampled_prediction(self.name, (logits_NC.softmax(1) for logits_NC in passes))


class DropoutGCN(AbstractRandomPasses):
    """VGCN that also drops hidden units in prediction."""

    name = "VGCN-Dropout"
    Options = SamplingOptions
