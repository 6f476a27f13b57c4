"""`ScoredPrediction`: what any classifier says of nodes; scores that it has not are refused.

Shapes: N nodes, C classes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import NodeIds
from gpn_scale.errors import MissingScoreError
from gpn_scale.evaluation.prediction import SCORES, FloatArray


class AnyPrediction(Protocol):
    """What experiments ask of a prediction, be it of a GPN or of a comparison model."""

    @property
    def probabilities(self) -> FloatArray:
        """Class probabilities, (N, C)."""

    @property
    def predicted_class(self) -> NDArray[np.int64]:
        """Most probable class, (N,)."""

    def scores(self, nodes: NodeIds) -> Mapping[str, FloatArray | None]:
        """Each of `SCORES` for `nodes`; None for those that the model has not."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoredPrediction:
    """Class probabilities and the scores that a comparison model has; they grow with doubt."""

    model: str
    """Its name, for messages."""
    probabilities: FloatArray
    """(N, C)."""
    epistemic_score: FloatArray | None = None
    """How little is known of the node, on any scale, (N,); None where the model cannot say."""

    @property
    def predicted_class(self) -> NDArray[np.int64]:
        """Most probable class, (N,)."""
        return np.asarray(self.probabilities.argmax(1))

    @property
    def aleatoric(self) -> FloatArray:
        """-max p: doubt between classes; (N,)."""
        return -np.asarray(self.probabilities.max(1))

    @property
    def epistemic(self) -> FloatArray:
        """How little is known of the node and its neighbourhood; (N,).

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
        """Refused: only GPN knows a node without its network.

        Raises:
            MissingScoreError: always.
        """
        raise MissingScoreError(
            f"{self.model} has no score without network, expected GPN for `epistemic_no_network`"
        )

    @classmethod
    def joined(cls, parts: Sequence["ScoredPrediction"]) -> "ScoredPrediction":
        """One after the other; at least one."""
        scores = [part.epistemic_score for part in parts if part.epistemic_score is not None]
        return cls(
            model=parts[0].model,
            probabilities=np.concatenate([part.probabilities for part in parts]),
            epistemic_score=np.concatenate(scores) if scores else None,
        )

    def rows(self, rows: NodeIds) -> "ScoredPrediction":
        """That of some nodes."""
        score = self.epistemic_score
        return ScoredPrediction(
            model=self.model,
            probabilities=self.probabilities[rows],
            epistemic_score=None if score is None else score[rows],
        )

    def scores(self, nodes: NodeIds) -> dict[str, FloatArray | None]:
        """Each of `SCORES` for `nodes`; None for those that the model has not."""
        own = self.rows(nodes)
        found: dict[str, FloatArray | None] = dict.fromkeys(SCORES)
        return found | {"aleatoric": own.aleatoric, "epistemic": own.epistemic_score}
