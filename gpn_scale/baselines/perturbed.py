"""Predictions of a fitted comparison model for variants of its graph.

Shapes: N nodes, B perturbed nodes.
"""

from typing import TYPE_CHECKING

import numpy as np

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.evaluation.scored_prediction import ScoredPrediction
from gpn_scale.inference.perturbed import FeaturesOf
from gpn_scale.ppr.rows import Rows

if TYPE_CHECKING:
    from gpn_scale.baselines.baseline import AbstractBaseline


class PerturbedBaseline:
    """A fitted model and a graph whose features or edges are changed.

    It has the methods of GPN's `gpn_scale.inference.perturbed.Perturbed`.

    Args:
        model: A fitted model.
        graph: The unchanged graph.
    """

    def __init__(self, model: "AbstractBaseline", graph: Graph) -> None:
        self._model = model
        self._view = model.view(graph)

    def unchanged(self) -> ScoredPrediction:
        """Predict all nodes of the unchanged graph, (N,)."""
        return self._model.predict_view(self._view)

    def isolated(self, nodes: NodeIds, rows_of: FeaturesOf) -> ScoredPrediction:
        """Predict each of `nodes` as if it alone had other features, (B,).

        Only the part of the graph that a node's prediction depends on is evaluated.
        """
        reach = self._model.reach
        if reach == 0:
            return self.unchanged().rows(nodes)
        predictions = []
        for index, node in enumerate(nodes):
            view, position = self._view, int(node)
            if reach is not None:
                view, position = view.around(position, reach)
            rows = rows_of(slice(index, index + 1))
            view = view.with_features(np.array([position]), rows.__getitem__)
            predictions.append(self._model.predict_nodes(view, np.array([position])))
        return ScoredPrediction.joined(predictions)

    def with_features(self, nodes: NodeIds, rows_of: FeaturesOf) -> ScoredPrediction:
        """Predict all nodes as if `nodes` had other features, (N,)."""
        return self._model.predict_view(self._view.with_features(nodes, rows_of))

    def with_edges(self, graph: Graph) -> ScoredPrediction:
        """Predict all nodes as if their edges were those of `graph`, (N,)."""
        return self._model.predict_view(self._view.with_edges(graph))

    def local_score(self, nodes: NodeIds, rows: Rows, isolated: ScoredPrediction | None) -> None:
        """Return None: only GPN has evidence per node, from which `epistemic_local` is summed."""
        return
