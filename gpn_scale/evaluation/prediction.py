"""Predictions: class probabilities and uncertainty scores of nodes, by any model or by a GPN.

The (N, C) arrays may be memory maps larger than memory, so they are processed in blocks of rows.

Shapes: N nodes, C classes.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.errors import GraphError, MissingScoreError
from gpn_scale.evaluation.node_facts import NodeFacts
from gpn_scale.evaluation.p_values import PValues
from gpn_scale.evaluation.scores import DETECTION_SCORES, P_SCORES, PAGE_SCORES, SCORES
from gpn_scale.nn.model import GPNOutput
from gpn_scale.nn.posterior import DirichletPosterior

ROW_BLOCK = 1 << 17
"""Number of nodes whose rows are in memory at a time."""

FloatArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AbstractPrediction(ABC):
    """Class probabilities and uncertainty scores of nodes, by a GPN or a comparison model.

    >>> from gpn_scale.evaluation.scored_prediction import ScoredPrediction
    >>> probabilities = np.array([[0.75, 0.25], [0.5, 0.5], [0.0, 1.0]])
    >>> prediction = ScoredPrediction(model="GCN", probabilities=probabilities)
    >>> prediction.predicted_class.tolist(), prediction.aleatoric.tolist()
    ([0, 0, 1], [-0.75, -0.5, -1.0])
    >>> prediction.rows(np.array([2])).probabilities.tolist()
    [[0.0, 1.0]]
    >>> prediction.scores(np.array([1]), ["aleatoric", "epistemic"])
    {'aleatoric': array([-0.5]), 'epistemic': None}
    """

    probabilities: FloatArray
    """Class probabilities, (N, C)."""

    @property
    def predicted_class(self) -> NDArray[np.int64]:
        """Most probable class, (N,)."""
        return np.asarray(self.probabilities.argmax(1))

    @property
    def aleatoric(self) -> FloatArray:
        """-max p, the uncertainty about which of the known classes a node has; (N,)."""
        return -np.asarray(self.probabilities.max(1))

    @abstractmethod
    def score(self, name: str) -> FloatArray | None:
        """Return the score called `name` of every node, (N,); None if the model has none."""

    def rows(self, rows: slice | NodeIds) -> Self:
        """Return the prediction of some nodes: a view for a slice, a copy for ids."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        some: dict[str, Any] = {
            name: value[rows] for name, value in values.items() if isinstance(value, np.ndarray)
        }
        nested = {name: v for name, v in values.items() if isinstance(v, PValues | NodeFacts)}
        some |= {name: value.rows(rows) for name, value in nested.items()}
        return replace(self, **some)

    def scores(
        self, nodes: NodeIds, names: Iterable[str] = tuple(SCORES)
    ) -> dict[str, FloatArray | None]:
        """Return scores of `nodes`; None for a score that the model does not have.

        Only the rows of `nodes` are read, one block at a time.
        """
        names = tuple(names)
        parts: dict[str, list[FloatArray | None]] = {name: [] for name in names}
        for block in row_blocks(len(nodes)):
            prediction = self.rows(nodes[block])
            for name in names:
                parts[name].append(prediction.score(name))
        return {name: _joined(arrays) for name, arrays in parts.items()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prediction(AbstractPrediction):
    """A prediction of nodes by GPN or GPN+; all scores grow with uncertainty.

    The posterior of GPN is Dirichlet(1 + evidence), and `probabilities` are its mean. The posterior
    of GPN+ is Dirichlet(1 + B0 p), where B0 is GPN's total evidence and `probabilities` are p, the
    calibrated opinion.

    >>> prediction = Prediction(
    ...     probabilities=np.array([[0.75, 0.25]]),
    ...     probabilities_no_network=np.array([[0.5, 0.5]]),
    ...     alpha_0=np.array([8.0]),
    ...     alpha_0_no_network=np.array([2.0]),
    ... )
    >>> prediction.epistemic.tolist(), prediction.epistemic_no_network.tolist()
    ([-8.0], [-2.0])
    >>> prediction.vacuity.tolist()
    [0.25]
    >>> prediction.alpha.tolist(), prediction.dirichlet().mean.tolist()
    ([[6.0, 2.0]], [[0.75, 0.25]])
    >>> prediction.to_frame()[["node", "predicted_class", "alpha_0"]]
       node  predicted_class  alpha_0
    0     0                0      8.0
    """

    probabilities_no_network: FloatArray
    """Expected class probabilities from each node's own features alone, (N, C)."""
    alpha_0: FloatArray
    """Total concentration with network, C plus all pseudo-counts, (N,)."""
    alpha_0_no_network: FloatArray
    """Total concentration from each node's own features alone, (N,)."""
    energy: FloatArray | None = None
    """-logsumexp of the opinion's logits, large if no class gets support, (N,); GPN+ only."""
    label_evidence: FloatArray | None = None
    """Diffusion weight of the training nodes in each node's row, (N,); GPN+ with labels only."""
    surprise: FloatArray | None = None
    """Surprise of the node itself, the sum of mean -log p over parts, (N,); GPN+ only."""
    p: PValues | None = None
    """P-values of the nodes; None for GPN, and if there are too few validation nodes."""
    facts: NodeFacts | None = None
    """Names, labels and split of the nodes; None if the prediction was not made by a classifier."""

    def __repr__(self) -> str:
        nodes, classes = self.probabilities.shape
        return f"Prediction(nodes={nodes}, classes={classes}, p_values={self.p is not None})"

    def to_frame(self, graph: Graph | None = None) -> Any:
        """Return a pandas DataFrame with one row per node and the columns of predictions.parquet.

        Args:
            graph: Graph whose names, labels and split are shown; None for the predicted graph,
                with the names of the model's classes.

        Raises:
            GraphError: the graph does not have the predicted nodes.
        """
        from gpn_scale.evaluation.prediction_table import prediction_frame  # builds on this module

        facts = self.facts or NodeFacts()
        if graph is not None:
            facts = NodeFacts.of(graph, facts.nodes)
            ids = facts.ids(len(self.probabilities))
            if (facts.nodes is None and len(ids) != graph.num_nodes) or (
                len(ids) and ids.max() >= graph.num_nodes
            ):
                raise GraphError(
                    f"graph {graph.name!r} has {graph.num_nodes} nodes, which are not the "
                    f"{len(ids)} predicted ones: pass the predicted graph, or no graph",
                    arguments=("graph",),
                )
        return prediction_frame(self, facts)

    @classmethod
    def from_output(cls, output: GPNOutput) -> "Prediction":
        """Return both posteriors of a model's output as NumPy arrays."""
        with_network, without = output.with_network, output.without_network
        return cls(
            probabilities=with_network.mean_NC.float().cpu().numpy(),
            probabilities_no_network=without.mean_NC.float().cpu().numpy(),
            alpha_0=with_network.alpha_0_N.float().cpu().numpy(),
            alpha_0_no_network=without.alpha_0_N.float().cpu().numpy(),
        )

    def score(self, name: str) -> FloatArray | None:
        """Return the score called `name` of every node, (N,); None if the model has none.

        GPN has all scores but those of p-values; the score of a p-value is 1 - p.
        """
        if name in P_SCORES:
            p: FloatArray | None = getattr(self.p, name.removeprefix("p_"), None)
            return None if p is None else np.float32(1.0) - p
        score: FloatArray | None = None
        if name in PAGE_SCORES or name in DETECTION_SCORES:
            score = getattr(self, name)
        return score

    def p_value(self, name: str) -> FloatArray:
        """Return a p-value of every node, (N,).

        Args:
            name: `known`, or one of the parts `features`, `neighbourhood`, `opinion` and `labels`.

        Raises:
            MissingScoreError: the prediction has no such p-value.
        """
        p: FloatArray | None = getattr(self.p, name, None)
        if p is None:
            available = "none" if self.p is None else ", ".join((*self.p.parts, "known"))
            raise MissingScoreError(
                f"this prediction has no p-value {name!r}, only {available}: a GPN+ with enough "
                "validation nodes has p-values, and its labels part needs a graph with a split"
            )
        return p

    @property
    def aleatoric_entropy(self) -> FloatArray:
        """Entropy of p in nats, the uncertainty between all classes; (N,)."""
        blocks = row_blocks(len(self.probabilities))
        return np.concatenate([_entropy(self.probabilities[block]) for block in blocks])

    @property
    def aleatoric_no_network(self) -> FloatArray:
        """-max p from own features alone; (N,)."""
        return -np.asarray(self.probabilities_no_network.max(1))

    @property
    def epistemic(self) -> FloatArray:
        """-alpha_0, large if the neighbourhood does not resemble the training data; (N,)."""
        return -self.alpha_0

    @property
    def epistemic_no_network(self) -> FloatArray:
        """-alpha_0 from own features alone, large if these do not resemble training data; (N,)."""
        return -self.alpha_0_no_network

    @property
    def entropy(self) -> FloatArray:
        """Differential entropy of the posterior with network, (N,)."""
        return self._entropies(self.probabilities, self.alpha_0, mean=self._has_mean)

    @property
    def entropy_no_network(self) -> FloatArray:
        """Differential entropy of the posterior from own features alone, (N,)."""
        return self._entropies(self.probabilities_no_network, self.alpha_0_no_network, mean=True)

    @property
    def alpha(self) -> FloatArray:
        """Concentrations of the posterior with network, at least 1, (N, C)."""
        probability_NC, alpha_0_N, mean = self.probabilities, self.alpha_0, self._has_mean
        blocks = row_blocks(len(probability_NC))
        parts = [_evidence(probability_NC[b], alpha_0_N[b], mean=mean) for b in blocks]
        return np.concatenate([(1.0 + part).float().numpy() for part in parts])

    def dirichlet(self) -> torch.distributions.Dirichlet:
        """Return the posterior with network of every node, a batch of N distributions."""
        return torch.distributions.Dirichlet(torch.from_numpy(self.alpha))

    @property
    def vacuity(self) -> FloatArray:
        """C / alpha_0 in (0, 1], the fraction of belief without evidence; (N,)."""
        return np.asarray(self.probabilities.shape[1] / self.alpha_0)

    @staticmethod
    def _entropies(probability_NC: FloatArray, alpha_0_N: FloatArray, *, mean: bool) -> FloatArray:
        """Return entropies of Dirichlets of mean p, or else of Dirichlet(1 + B0 p), (N,)."""
        blocks = row_blocks(len(probability_NC))
        return np.concatenate(
            [_dirichlet_entropy(probability_NC[b], alpha_0_N[b], mean=mean) for b in blocks]
        )

    @property
    def dissonance(self) -> FloatArray:
        """Conflict of the evidence, in [0, 1]: large if it is spread evenly over classes; (N,).

        As in subjective logic (Josang et al., 2018): the belief (alpha_c - 1) / alpha_0 of each
        class times its mean balance with the other classes, weighted by their beliefs.
        """
        blocks = row_blocks(len(self.probabilities))
        return np.concatenate(
            [
                _dissonance(self.probabilities[block], self.alpha_0[block], mean=self._has_mean)
                for block in blocks
            ]
        )

    @property
    def _has_mean(self) -> bool:
        """Whether `probabilities` are the posterior mean, as for GPN, and not the p of GPN+."""
        return self.energy is None


def row_blocks(num_rows: int) -> Iterator[slice]:
    """Yield slices of `ROW_BLOCK` rows that cover all rows; one empty slice for no rows.

    >>> list(row_blocks(200_000))
    [slice(0, 131072, None), slice(131072, 262144, None)]
    """
    return (slice(start, start + ROW_BLOCK) for start in range(0, max(num_rows, 1), ROW_BLOCK))


def _joined(parts: list[FloatArray | None]) -> FloatArray | None:
    present = [part for part in parts if part is not None]
    return np.concatenate(present) if present else None


def _entropy(probability_NC: FloatArray) -> FloatArray:
    log_NC = np.log(np.maximum(probability_NC, np.finfo(np.float32).tiny))
    return -np.asarray((probability_NC * log_NC).sum(1))


def _evidence(probability_NC: FloatArray, alpha_0_N: FloatArray, *, mean: bool) -> torch.Tensor:
    """Return pseudo-counts of Dirichlets of mean p, or else B0 p, (N, C), in float64."""
    alpha_0_N1 = torch.from_numpy(alpha_0_N.astype(np.float64)).unsqueeze(1)
    probability = torch.from_numpy(probability_NC.astype(np.float64))
    evidence_NC = alpha_0_N1 * probability - 1.0
    if not mean:
        evidence_NC = (alpha_0_N1 - probability.shape[1]) * probability
    # Round-off of a large alpha_0 must not make evidence negative.
    return evidence_NC.clamp_min(0.0)


def _dirichlet_entropy(
    probability_NC: FloatArray, alpha_0_N: FloatArray, *, mean: bool
) -> FloatArray:
    evidence_NC = _evidence(probability_NC, alpha_0_N, mean=mean)
    posterior = DirichletPosterior.from_evidence(evidence_NC)
    return posterior.entropy().float().numpy()


def _dissonance(probability_NC: FloatArray, alpha_0_N: FloatArray, *, mean: bool) -> FloatArray:
    alpha_0_N1 = alpha_0_N[:, None]
    if mean:
        belief_NC = np.maximum(probability_NC - 1.0 / alpha_0_N1, 0.0)
    else:
        believed_N1 = np.maximum(1.0 - probability_NC.shape[1] / alpha_0_N1, 0.0)
        belief_NC = believed_N1 * probability_NC
    dissonance_N = np.zeros(len(belief_NC), np.float32)
    for label in range(belief_NC.shape[1]):
        own_N1 = belief_NC[:, label : label + 1]
        others_NC = np.delete(belief_NC, label, axis=1)
        # Balance is 1 - |a - b| / (a + b), which is 2 min(a, b) / (a + b).
        both_NC = np.maximum(own_N1 + others_NC, np.finfo(np.float32).tiny)
        balance_NC = 2.0 * np.minimum(own_N1, others_NC) / both_NC
        total_N = np.maximum(others_NC.sum(1), np.finfo(np.float32).tiny)
        dissonance_N += own_N1[:, 0] * (others_NC * balance_NC).sum(1) / total_N
    return dissonance_N
