"""Predictions of a trained model for its graph with changed features or edges.

Features only affect a node's own evidence, and edges only the diffusion. So the evidence of the
unchanged graph is computed once for all perturbations, and no node is encoded twice.

Shapes: N nodes, C classes, B perturbed nodes, E entries of rows, S values of an opinion.
"""

from collections.abc import Callable
from functools import cached_property, partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.diffusion.power_iteration import PowerIteration, exact_diffusion, from_logs
from gpn_scale.evaluation.prediction import FloatArray, Prediction
from gpn_scale.inference.encoder_inputs import as_inputs, required_features
from gpn_scale.inference.opinion_values import OpinionValues
from gpn_scale.inference.trained_model import CHUNK_ROWS, AbstractTrainedPart, TrainedModel
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
    >>> trained = GPNClassifier(RunConfig(train=TrainConfig(epochs=5))).fit(graph).trained
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
        self._opinion = None
        if trained.opinion is not None:
            self._opinion = OpinionValues.of_graph(trained.opinion, graph)
            self._value_NS = self._opinion.of(np.arange(graph.num_nodes))
            self._diffused_NS = self._diffuse.linear(self._value_NS)

    def unchanged(self) -> Prediction:
        """Return the prediction of the unchanged graph, (N,)."""
        prediction = _prediction(self.aggregated_NC, self.evidence_NC)
        if self._opinion is None:
            return prediction
        explained = self._opinion.explained(prediction, self._diffused_NS)
        return self._trained.finished(explained, partial(_averaged, self._diffuse))

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
        # When a large evidence vanishes, round-off must not make the rest negative.
        aggregated_BC = (around_BC + weight_B1 * (new_BC - old_BC)).clamp_min(0.0)
        prediction = _prediction(aggregated_BC, new_BC)
        if self._opinion is None:
            return prediction
        change_BS = self._opinion_values(rows_of, nodes) - self._value_NS[place]
        diffused_BS = self._diffused_NS[place] + weight_B1 * change_BS
        explained = self._opinion.explained(prediction, diffused_BS)
        fraction_B = (weight_B1 / self._row_sum_N1[place])[:, 0].cpu().numpy()
        average = partial(self._isolated_average, nodes, fraction_B)
        return self._trained.finished(explained, average)

    @torch.no_grad()
    def with_features(self, nodes: NodeIds, rows_of: FeaturesOf) -> Prediction:
        """Return the prediction of all nodes if `nodes` had other features, (N,)."""
        evidence_NC = self.evidence_NC.clone()
        evidence_NC[self._ids(nodes)] = self._evidence(rows_of, len(nodes))
        prediction = _prediction(self._diffuse(evidence_NC), evidence_NC)
        if self._opinion is None:
            return prediction
        value_NS = self._value_NS.clone()
        value_NS[self._ids(nodes)] = self._opinion_values(rows_of, nodes)
        diffused_NS = self._diffuse.linear(value_NS)
        explained = self._opinion.explained(prediction, diffused_NS)
        return self._trained.finished(explained, partial(_averaged, self._diffuse))

    @torch.no_grad()
    def with_edges(self, graph: Graph) -> Prediction:
        """Return the prediction of all nodes if their edges were those of `graph`, (N,)."""
        diffuse = self._diffusion(graph)
        prediction = _prediction(diffuse(self.evidence_NC), self.evidence_NC)
        if self._opinion is None:
            return prediction
        diffused_NS = diffuse.linear(self._value_NS)
        explained = self._opinion.explained(prediction, diffused_NS)
        return self._trained.finished(explained, partial(_averaged, diffuse))

    def local_score(
        self, nodes: NodeIds, rows: Rows, isolated: Prediction | None = None
    ) -> FloatArray | None:
        """Return the score `epistemic_local`: minus the evidence in the nodes' own rows, (B,).

        The cut part of rows is not estimated, so evidence from far away does not count.

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
        return _values(self._trained, rows_of, count)

    def _opinion_values(self, rows_of: FeaturesOf, nodes: NodeIds) -> Tensor:
        """Return logits of rows that are made in chunks, and where the labels are, (B, S)."""
        assert self._opinion is not None
        value_BS = self._value_NS[self._ids(nodes)].clone()
        value_BS[:, :-1] = _values(self._opinion.opinion, rows_of, len(nodes))
        return value_BS

    def _isolated_average(
        self, nodes: NodeIds, fraction_B: NDArray[np.float32], surprise_B1: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Return the mean surprise over the rows of nodes of which each alone has changed, (B, 1).

        The surprise of all others is that of the unchanged graph.
        """
        before = self._unchanged
        assert before.surprise is not None
        around_N1 = _averaged(self._diffuse, before.surprise[:, None])
        change_B1 = surprise_B1 - before.surprise[nodes, None]
        return np.asarray(around_N1[nodes] + fraction_B[:, None] * change_B1)

    @cached_property
    def _unchanged(self) -> Prediction:
        return self.unchanged()

    @cached_property
    def _row_sum_N1(self) -> Tensor:
        """Sums of the rows of the diffusion, (N, 1)."""
        return self._diffuse.linear(torch.ones_like(self.evidence_NC[:, :1]))

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


def _averaged(diffuse: PowerIteration, values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the means of values over every node's row of the diffusion, (N, M) -> (N, M)."""
    matrix = diffuse.transition.values
    values_NM = torch.from_numpy(values).to(matrix)
    diffused_NM = diffuse.linear(torch.cat([values_NM, torch.ones_like(values_NM[:, :1])], 1))
    return (diffused_NM[:, :-1] / diffused_NM[:, -1:]).float().cpu().numpy()


def _values(trained: AbstractTrainedPart, rows_of: FeaturesOf, count: int) -> Tensor:
    """Return what a part of the model diffuses, of rows that are made in chunks, (B, C)."""
    empty = torch.empty(0, trained.num_classes, device=trained.device, dtype=trained.dtype)
    parts = [empty]
    with trained.evaluating():
        for start in range(0, count, CHUNK_ROWS):
            rows = rows_of(slice(start, min(start + CHUNK_ROWS, count)))
            parts.append(trained.finite_values(as_inputs(rows, trained.device, trained.dtype)))
    return torch.cat(parts)


def _prediction(aggregated_NC: Tensor, evidence_NC: Tensor) -> Prediction:
    return Prediction.from_output(
        GPNOutput(
            with_network=DirichletPosterior.from_evidence(aggregated_NC),
            without_network=DirichletPosterior.from_evidence(evidence_NC),
        )
    )
