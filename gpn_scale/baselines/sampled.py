"""Several networks in the place of one: their disagreement is the epistemic score.

VGCN-Dropout (Gal & Ghahramani, 2016), DropEdge (Rong et al., 2020) and VGCN-Ensemble
(Lakshminarayanan et al., 2017).

Shapes: N nodes, C classes, E stored edges.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from gpn_scale.baselines.gcn import VGCN, AbstractGCN
from gpn_scale.baselines.model import AbstractBaseline, require_positive, sampled_answer
from gpn_scale.baselines.training import evaluating
from gpn_scale.baselines.view import Edges, View
from gpn_scale.data.graph import Graph
from gpn_scale.errors import ConfigError, GraphError
from gpn_scale.evaluation.scored_prediction import ScoredPrediction
from gpn_scale.nn.sparse import SparseMatrix


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingOptions:
    """Of models that are asked several times."""

    samples: int = 10
    """Random passes of a prediction."""

    def __post_init__(self) -> None:
        require_positive("model.samples", self.samples, "random pass")


class AbstractRandomPasses(AbstractGCN):
    """A network that stays random when it predicts; its options have `samples`."""

    def predict_view(self, view: View) -> ScoredPrediction:
        """Mean and variance of random passes."""
        generator = self.generator(2)
        with evaluating(self.module):
            passes = (self.logits(view, generator) for _ in range(self.options.samples))
            return sampled_answer(self, (logits_NC.softmax(1) for logits_NC in passes))


class DropoutGCN(AbstractRandomPasses):
    """VGCN that drops hidden units when it predicts, too."""

    name = "VGCN-Dropout"
    Options = SamplingOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class DropEdgeOptions:
    """Of `DropEdge`."""

    samples: int = 10
    """Random passes of a prediction."""
    edge_dropout: float = 0.5
    """Share of the edges that every pass leaves out."""
    renormalised: bool = True
    """Whether weights follow from the edges that are left (Rong et al., 2020).

    Else they are those of the whole graph, scaled up, which comes nearer to GPN's figures.
    """

    def __post_init__(self) -> None:
        require_positive("model.samples", self.samples, "random pass")
        if not 0.0 <= self.edge_dropout < 1.0:
            raise ConfigError(f"model.edge_dropout is {self.edge_dropout}, expected in [0, 1)")


class DropEdge(AbstractRandomPasses):
    """VGCN that leaves out edges as well as hidden units, in training and in prediction."""

    name = "DropEdge"
    Options = DropEdgeOptions

    def check_limits(self, graph: Graph) -> None:
        """Refuses edges that cannot be left out one by one.

        Raises:
            GraphError: the graph is directed or weighted.
        """
        if not graph.has_plain_edges:
            raise GraphError(
                f"graph {graph.name!r} is directed or weighted, expected plain edges: DropEdge is "
                "defined for these"
            )

    def logits(self, view: View, generator: torch.Generator | None = None) -> Tensor:
        """(N, C); with a generator, on a random part of the edges."""
        matrix = view.edges.transition("sym")
        if generator is not None:
            options = self.options
            renormalised = options.renormalised
            matrix = thinned(view.edges, options.edge_dropout, generator, renormalised=renormalised)
        found: Tensor = self.layers(view, matrix.__matmul__, generator)
        return found


def thinned(
    edges: Edges, share: float, generator: torch.Generator, *, renormalised: bool = True
) -> SparseMatrix:
    """The `sym` matrix of plain edges without a random share of them, both directions at once.

    Weights are those of the graph that is left; if not `renormalised`, those of the whole graph,
    those of kept edges scaled up to stand for the others.
    """
    graph, whole = edges.graph, edges.transition("sym")
    row_E, column_E, pair_E = edges.pairs
    draws = torch.rand(graph.num_edges // 2, generator=generator, device=whole.device)
    # The loops, which are no pair, find the last entry and always stay.
    kept_E = torch.cat([draws >= share, draws.new_ones(1, dtype=torch.bool)])[pair_E]
    row, column = row_E[kept_E], column_E[kept_E]
    degree_N = row.bincount(minlength=graph.num_nodes)
    if renormalised:
        root_N = degree_N.to(whole.dtype).sqrt()
        weight = 1.0 / (root_N[row] * root_N[column])
    else:
        weight = whole.values[kept_E]
        weight = torch.where(row == column, weight, weight / (1.0 - share))
    return SparseMatrix(
        torch.cat([degree_N.new_zeros(1), degree_N.cumsum(0)]),
        column,
        weight,
        graph.num_nodes,
        symmetric=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleOptions:
    """Of `Ensemble`."""

    members: int = 10
    """Networks, each from initial values of its own."""

    def __post_init__(self) -> None:
        require_positive("model.members", self.members, "network")


class Ensemble(AbstractBaseline):
    """Several VGCNs that differ in initial values and dropout."""

    name = "VGCN-Ensemble"
    Options = EnsembleOptions
    Member: ClassVar[type[AbstractGCN]] = VGCN
    """A network of it."""

    @property
    def reach(self) -> int:
        """A hop per layer."""
        return self.config.encoder.layers

    def fit_view(self, view: View, store: Path | None) -> None:  # noqa: D102
        self._members = self._new_members()
        for member in self._members:
            member.fit_on(view, store)

    def predict_view(self, view: View) -> ScoredPrediction:
        """Mean and variance of the members."""
        logits = (member.final_logits(view) for member in self._members)
        return sampled_answer(self, (logits_NC.softmax(1) for logits_NC in logits))

    def state(self) -> dict[str, Tensor]:
        """All members' tensors."""
        return {
            f"member{number}.{name}": tensor
            for number, member in enumerate(self._members)
            for name, tensor in member.state().items()
        }

    def load_state(self, graph: Graph, tensors: dict[str, Tensor], source: Path) -> None:  # noqa: D102
        self._members = self._new_members()
        for number, member in enumerate(self._members):
            prefix = f"member{number}."
            own = {
                name.removeprefix(prefix): tensor
                for name, tensor in tensors.items()
                if name.startswith(prefix)
            }
            member.load(graph, own, source)

    def _new_members(self) -> list[AbstractGCN]:
        # Runs of other seeds share no member.
        seed = 10_007 * self.config.train.rng_seed
        return [
            self.Member(
                replace(self.config, train=replace(self.config.train, rng_seed=seed + number)),
                device=str(self.device),
                dtype=self.dtype,
            )
            for number in range(self.options.members)
        ]
