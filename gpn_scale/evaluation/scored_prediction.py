"""`ScoredPrediction`: a comparison model's prediction of nodes.

Shapes: N nodes, C classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpn_scale.errors import MissingScoreError
from gpn_scale.evaluation.prediction import AbstractPrediction, FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoredPrediction(AbstractPrediction):
    """Class probabilities of a comparison model, and its epistemic score if it has one.

    >>> prediction = ScoredPrediction(
    ...     model="GCN", probabilities=np.array([[0.75, 0.25]]), epistemic_score=np.array([3.0])
    ... )
    >>> prediction.score("aleatoric").tolist(), prediction.epistemic.tolist()
    ([-0.75], [3.0])
    """

    model: str
    """Name of the model, for messages."""
    epistemic_score: FloatArray | None = None
    """Epistemic uncertainty on any scale, (N,); None if the model has no such score."""

    def score(self, name: str) -> FloatArray | None:
        """Return the score called `name` of every node, (N,); None if the model has none."""
        if name == "aleatoric":
            return self.aleatoric
        return self.epistemic_score if name == "epistemic" else None

    @property
    def epistemic(self) -> FloatArray:
        """Epistemic score, large if node and neighbourhood do not resemble training data; (N,).

        Raises:
            MissingScoreError: the model has no such score.
        """
        if self.epistemic_score is None:
            raise MissingScoreError(
                f"{self.model} has no epistemic score, only class probabilities: use `aleatoric`, "
                "or a model that has one"
            )
        return self.epistemic_score

    @property
    def epistemic_no_network(self) -> FloatArray:
        """Not available: only a GPN scores a node without its network.

        Raises:
            MissingScoreError: always.
        """
        raise MissingScoreError(
            f"{self.model} has no score without network: use a GPN for `epistemic_no_network`"
        )

    @classmethod
    def joined(cls, predictions: Sequence["ScoredPrediction"]) -> "ScoredPrediction":
        """Return the nodes of all predictions, one after the other; there is at least one."""
        scores = [each.epistemic_score for each in predictions if each.epistemic_score is not None]
        return cls(
            model=predictions[0].model,
            probabilities=np.concatenate([each.probabilities for each in predictions]),
            epistemic_score=np.concatenate(scores) if scores else None,
        )
