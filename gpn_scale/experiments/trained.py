"""`Trained`: a trained model together with its graph, for experiments."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.errors import NumericalError
from gpn_scale.evaluation.prediction import AbstractPrediction, FloatArray
from gpn_scale.evaluation.scores import EPISTEMIC_LOCAL
from gpn_scale.models.protocol import NodeClassifier, PerturbedClassifier
from gpn_scale.ppr.store import PPRStore

FRACTIONS = (0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.99)
"""Fractions of nodes or edges that the shifts change."""


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model, the graph it was trained on, and what several experiments use."""

    classifier: NodeClassifier
    graph: Graph
    """The graph, with its split."""
    rng_seed: int
    """Seed of the experiments' random choices."""
    store: Path | None = None
    """PPR store with the rows of all nodes, for the score `epistemic_local`."""
    fractions: tuple[float, ...] = FRACTIONS
    """Fractions of nodes or edges that the shifts change."""

    @cached_property
    def perturbed(self) -> PerturbedClassifier:
        """The model with changed graphs; a GPN's evidence of all nodes is computed once."""
        return self.classifier.perturbed(self.graph)

    @cached_property
    def prediction(self) -> AbstractPrediction:
        """Prediction of the unchanged graph.

        Raises:
            NumericalError: a probability or score is not finite.
        """
        prediction = self.perturbed.unchanged()
        is_finite = np.isfinite(prediction.probabilities).all(1)
        for score in prediction.scores(np.arange(self.graph.num_nodes)).values():
            is_finite &= True if score is None else np.isfinite(score)
        if count := np.count_nonzero(~is_finite):
            raise NumericalError(
                f"the model's prediction of {count} of {self.graph.num_nodes} nodes is not finite, "
                "expected finite probabilities and scores: train it with other settings, or leave "
                "it out"
            )
        return prediction

    @property
    def test_nodes(self) -> NodeIds:
        """Ids of the test nodes."""
        assert self.graph.split is not None
        return self.graph.split.test

    def local_score(
        self, nodes: NodeIds, isolated: AbstractPrediction | None = None
    ) -> dict[str, FloatArray | None]:
        """Return the score `epistemic_local` of `nodes`; {} without a store or without evidence.

        Args:
            nodes: Nodes to score.
            isolated: Their prediction with other features, if they are to be scored with those.
        """
        if self.store is None:
            return {}
        score = self.perturbed.local_score(nodes, self._opened_store.rows(nodes), isolated)
        return {} if score is None else {EPISTEMIC_LOCAL.name: score}

    @cached_property
    def _opened_store(self) -> PPRStore:
        assert self.store is not None
        fingerprint = self.graph.structure_fingerprint()
        return PPRStore.open(self.store, graph_fingerprint=fingerprint)
