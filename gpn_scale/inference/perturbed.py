"""What a trained model predicts for its graph with other features or edges.

Features act on a node's own evidence alone, and edges on the diffusion alone. So the evidence of
the unchanged graph, computed once, serves every perturbation, and no node is encoded twice.

Shapes: N nodes, C classes, B perturbed nodes, E entries of rows.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.diffusion.power_iteration import PowerIteration, exact_diffusion, from_logs
from gpn_scale.evaluation.prediction import FloatArray, Prediction
from gpn_scale.inference.encoder_inputs import as_inputs, required_features
from gpn_scale.inference.trained_model import CHUNK_ROWS, TrainedModel
from gpn_scale.nn.model import GPNOutput
from gpn_scale.nn.posterior import DirichletPosterior
from gpn_scale.ppr.rows import Rows

FeaturesOf = Callable[[slice], NDArray[np.float32]]
"""Maps positions among the perturbed nodes to their new feature rows, already scaled."""

_COLUMNS = 32  # nodes whose own weight in the diffusion is computed together


class Perturbed:
    """A model and a graph that is changed in one respect at a time.

    >>> from gpn_scale import GPNClassifier, load_graph
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> graph = load_graph("synthetic:nodes=100,classes=2")
    >>> trained = GPNClassifier(RunConfig(model="GPN", train=TrainConfig(epochs=5))).fit(graph).trained
    >>> nodes, perturbed = np.array([3, 5]), Perturbed(trained, graph)
    >>> same = perturbed.isolated(nodes, lambda part: graph.features[nodes[part]])
    >>> np.allclose(same.alpha_0, perturbed.unchanged().alpha_0[nodes], rtol=1e-3)
    True

    Args:
        trained: The model.
        graph: The unchanged graph.
    """

    @torch.no_grad()
    def __init__(self, trained: TrainedModel, graph: Graph) -> None:
        self._trained = trained
        self.evidence_NC = trained.evidence(required_features(graph), np.arange(graph.num_nodes))
        self._diffuse = self._diffusion(graph)
        self.aggregated_NC = self._diffuse(self.evidence_NC)

    def unchanged(self) -> Prediction:
        """Return the prediction of the unchanged graph, (N,)."""
        return _prediction(self.aggregated_NC, self.evidence_NC)

    @torch.no_grad()
    def isolated(self, nodes: NodeIds, rows_of: FeaturesOf) -> Prediction:
        """Return the prediction of each of `nodes` if it alone had other features, (B,).

        A node's aggregated evidence then changes as much as its own evidence, times its weight in
        its own row; the rows themselves do not depend on features.
        """
        new_BC, place = self._evidence(rows_of, len(nodes)), self._ids(nodes)
        old_BC, around_BC = self.evidence_NC[place], self.aggregated_NC[place]
        weight_B1 = self._own_weight(nodes).unsqueeze(1)
        if self._diffuse.in_logs:
            changed_BC = around_BC.log() + weight_B1 * (new_BC.log() - old_BC.log())
            return _prediction(from_logs(changed_BC), new_BC)
        # Round-off of a large evidence that has vanished must not make the rest negative.
        aggregated_BC = (around_BC + weight_B1 * (new_BC - old_BC)).clamp_min(0.0)
        return _prediction(aggregated_BC, new_BC)

    @torch.no_grad()
    def with_features(self, nodes: NodeIds, rows_of: FeaturesOf) -> Prediction:
        """Return the prediction of all nodes if `nodes` had other features, (N,)."""
        evidence_NC = self.evidence_NC.clone()
        evidence_NC[self._ids(nodes)] = self._evidence(rows_of, len(nodes))
        return _prediction(self._diffuse(evidence_NC), evidence_NC)

    @torch.no_grad()
    def with_edges(self, graph: Graph) -> Prediction:
        """Return the prediction of all nodes if their edges were those of `graph`, (N,)."""
        return _prediction(self._diffusion(graph)(self.evidence_NC), self.evidence_NC)

    def local_score(
        self, nodes: NodeIds, rows: Rows, isolated: Prediction | None = None
    ) -> FloatArray | None:
        """Return the score `epistemic_local`: minus the evidence in the nodes' own rows, (B,).

        What the rows cut is not estimated, so evidence from far away does not count.

        Args:
            nodes: Nodes to score, (B,).
            rows: Their stored rows, in this order.
            isolated: Prediction of `isolated` for these nodes, if their changed features count.
        """
        total_N = self.evidence_NC.sum(1).double().cpu().numpy()
        row_E, evidence_E = rows.row_of_entry(), total_N[rows.ids]
        if isolated is not None:
            own_B = isolated.alpha_0_no_network - self.evidence_NC.shape[1]
            evidence_E = np.where(rows.ids == nodes[row_E], own_B[row_E], evidence_E)
        local_B = np.bincount(row_E, rows.weights * evidence_E, minlength=len(nodes))
        return -local_B.astype(np.float32)

    def _diffusion(self, graph: Graph) -> PowerIteration:
        trained = self._trained
        return exact_diffusion(graph, trained.diffusion, trained.device, trained.dtype)

    def _evidence(self, rows_of: FeaturesOf, count: int) -> Tensor:
        """Return the evidence of rows that are made in chunks, (B, C)."""
        trained = self._trained
        parts = [self.evidence_NC.new_empty(0, self.evidence_NC.shape[1])]
        with trained.evaluating():
            for start in range(0, count, CHUNK_ROWS):
                rows = rows_of(slice(start, min(start + CHUNK_ROWS, count)))
                inputs = as_inputs(rows, trained.device, trained.dtype)
                parts.append(trained.network.feature_evidence(inputs))
        return torch.cat(parts)

    def _own_weight(self, nodes: NodeIds) -> Tensor:
        """Return the diffusion's diagonal at `nodes`, (B,), from columns of the identity."""
        weights = [self.evidence_NC.new_empty(0)]
        for start in range(0, len(nodes), _COLUMNS):
            place = self._ids(nodes[start : start + _COLUMNS])
            column = torch.arange(len(place), device=self._trained.device)
            unit_NB = self.evidence_NC.new_zeros(len(self.evidence_NC), len(place))
            unit_NB[place, column] = 1.0
            weights.append(self._diffuse.linear(unit_NB)[place, column])
        return torch.cat(weights)

    def _ids(self, nodes: NodeIds) -> Tensor:
        return torch.from_numpy(np.array(nodes, np.int64)).to(self._trained.device)


def _prediction(aggregated_NC: Tensor, evidence_NC: Tensor) -> Prediction:
    return Prediction.from_output(
        GPNOutput(
            with_network=DirichletPosterior.from_evidence(aggregated_NC),
            without_network=DirichletPosterior.from_evidence(evidence_NC),
        )
    )
