"""What a fitted comparison model says of its graph with other features or edges.

Shapes: B perturbed nodes.
"""

import numpy as np

from gpn_scale.baselines.model import AbstractBaseline
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.evaluation.scored_prediction import ScoredPrediction
from gpn_scale.inference.perturbed import RowsOf


class PerturbedBaseline:
    """A model and a graph, of which something changes; asked as a GPN's `Perturbed` is.

    Args:
        model: Fitted.
        graph: As it is.
    """

    def __init__(self, model: AbstractBaseline, graph: Graph) -> None:
        self._model = model
        self._view = model.view(graph)

    def unchanged(self) -> ScoredPrediction:
        """Of the unchanged graph."""
        return self._model.predict_view(self._view)

    def isolated(self, nodes: NodeIds, rows_of: RowsOf) -> ScoredPrediction:
        """Of each of `nodes` if it alone had other features, (B,): from what it can see alone."""
        reach = self._model.reach
        if reach == 0:
            return self.unchanged().rows(nodes)
        found = []
        for position, node in enumerate(nodes):
            view, place = self._view, int(node)
            if reach is not None:
                view, place = view.around(place, reach)
            rows = rows_of(slice(position, position + 1))
            view = view.with_features(np.array([place]), rows.__getitem__)
            found.append(self._model.predict_nodes(view, np.array([place])))
        return ScoredPrediction.joined(found)

    def with_features(self, nodes: NodeIds, rows_of: RowsOf) -> ScoredPrediction:
        """Of all nodes if `nodes` had other features."""
        return self._model.predict_view(self._view.with_features(nodes, rows_of))

    def with_edges(self, graph: Graph) -> ScoredPrediction:
        """Of all nodes if their edges were those of `graph`."""
        return self._model.predict_view(self._view.with_edges(graph))
