"""What a trained model says of its graph with other features or edges; no node is encoded twice.

Features act on a node's own evidence alone, and edges on the diffusion alone. So evidence of the
graph as it is, computed once, serves every perturbation.

Shapes: N nodes, C classes, B perturbed nodes.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpn_scale.config import DiffusionConfig, FeatureScaling
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.diffusion.exact import exact_diffusion
from gpn_scale.diffusion.power_iteration import from_logs
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference.encoder_inputs import as_inputs, required_features
from gpn_scale.inference.evidence import CHUNK_ROWS, FeatureEvidence, evaluating
from gpn_scale.nn.model import GPN, GPNOutput
from gpn_scale.nn.posterior import DirichletPosterior
from gpn_scale.ppr.store import PPRRows
from gpn_scale.ppr.tails import row_of_entry

RowsOf = Callable[[slice], NDArray[np.float32]]
"""Positions among the perturbed nodes -> their feature rows, as the encoder takes them."""

_COLUMNS = 32  # of a block of nodes whose own weight in the diffusion is computed together


class Perturbed:
    """A model and a graph, of which something changes.

    Args:
        model: Trained.
        graph: As it is.
        scaling: Of its feature rows.
        diffusion: Whose rows aggregate evidence.
        device: Where tensors are.
        dtype: Of all real numbers.
    """

    @torch.no_grad()
    def __init__(
        self,
        model: GPN,
        graph: Graph,
        *,
        scaling: FeatureScaling,
        diffusion: DiffusionConfig,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self._model, self._graph, self._config = model, graph, diffusion
        self._device, self._dtype = device, dtype
        evidence_of = FeatureEvidence(model, required_features(graph), scaling, device, dtype)
        with evaluating(model):
            self.evidence_NC = evidence_of(np.arange(graph.num_nodes))
        self._diffuse = exact_diffusion(graph, diffusion, device, dtype)
        self.aggregated_NC = self._diffuse(self.evidence_NC)

    def unchanged(self) -> Prediction:
        """Of the unchanged graph."""
        return _prediction(self.aggregated_NC, self.evidence_NC)

    def local_score(
        self, nodes: NodeIds, rows: PPRRows, isolated: Prediction | None
    ) -> NDArray[np.float32] | None:
        """Return `epistemic_local`, (B,): minus the evidence in the nodes' stored rows.

        Nothing stands in for what the rows cut. With `isolated`, the prediction of `nodes` with
        other features, their own evidence is that of these features.
        """
        total_N = self.evidence_NC.sum(1).double().cpu().numpy()
        row, evidence = row_of_entry(rows), total_N[rows.ids]
        if isolated is not None:
            own = isolated.alpha_0_no_network - self.evidence_NC.shape[1]
            evidence = np.where(rows.ids == nodes[row], own[row], evidence)
        local = np.bincount(row, rows.weights * evidence, minlength=len(nodes))
        return -local.astype(np.float32)

    @torch.no_grad()
    def isolated(self, nodes: NodeIds, rows_of: RowsOf) -> Prediction:
        """Of each of `nodes` if it alone had other features, (B,).

        A node's aggregated evidence then changes by that of its own, times its weight in its own
        row; all other rows stay as they are.
        """
        new_BC, place = self._evidence(rows_of, len(nodes)), self._ids(nodes)
        old_BC, around_BC = self.evidence_NC[place], self.aggregated_NC[place]
        weight_B1 = self._own_weight(nodes).unsqueeze(1)
        if self._diffuse.in_logs:
            changed_BC = around_BC.log() + weight_B1 * (new_BC.log() - old_BC.log())
            return _prediction(from_logs(changed_BC), new_BC)
        # The round-off of a large evidence that vanished must not make the rest negative.
        aggregated_BC = (around_BC + weight_B1 * (new_BC - old_BC)).clamp_min(0.0)
        return _prediction(aggregated_BC, new_BC)

    @torch.no_grad()
    def with_features(self, nodes: NodeIds, rows_of: RowsOf) -> Prediction:
        """Of all nodes if `nodes` had other features, (N,)."""
        evidence_NC = self.evidence_NC.clone()
        evidence_NC[self._ids(nodes)] = self._evidence(rows_of, len(nodes))
        return _prediction(self._diffuse(evidence_NC), evidence_NC)

    @torch.no_grad()
    def with_edges(self, graph: Graph) -> Prediction:
        """Of all nodes if their edges were those of `graph`, (N,)."""
        diffuse = exact_diffusion(graph, self._config, self._device, self._dtype)
        return _prediction(diffuse(self.evidence_NC), self.evidence_NC)

    def _evidence(self, rows_of: RowsOf, count: int) -> Tensor:
        """Evidence of rows that are made in chunks, (B, C)."""
        parts = [self.evidence_NC.new_empty(0, self.evidence_NC.shape[1])]
        with evaluating(self._model):
            for start in range(0, count, CHUNK_ROWS):
                rows = rows_of(slice(start, min(start + CHUNK_ROWS, count)))
                inputs = as_inputs(rows, self._device, self._dtype)
                parts.append(self._model.feature_evidence(inputs))
        return torch.cat(parts)

    def _own_weight(self, nodes: NodeIds) -> Tensor:
        """The diffusion's diagonal at `nodes`, (B,), from columns of the identity."""
        weights = [self.evidence_NC.new_empty(0)]
        for start in range(0, len(nodes), _COLUMNS):
            place = self._ids(nodes[start : start + _COLUMNS])
            column = torch.arange(len(place), device=self._device)
            unit_NB = self.evidence_NC.new_zeros(len(self.evidence_NC), len(place))
            unit_NB[place, column] = 1.0
            weights.append(self._diffuse.linear(unit_NB)[place, column])
        return torch.cat(weights)

    def _ids(self, nodes: NodeIds) -> Tensor:
        return torch.from_numpy(np.array(nodes, np.int64)).to(self._device)


def _prediction(aggregated_NC: Tensor, evidence_NC: Tensor) -> Prediction:
    return Prediction.from_output(
        GPNOutput(
            with_network=DirichletPosterior.from_evidence(aggregated_NC),
            without_network=DirichletPosterior.from_evidence(evidence_NC),
        )
    )
