"""DropEdge: a network that leaves out random edges (Rong et al., 2020).

Shapes: N nodes, C classes, E stored edges.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from gpn_scale.baselines.dropout_gcn import AbstractRandomPasses
from gpn_scale.baselines.graph_view import EdgeMatrices, GraphView
from gpn_scale.baselines.options import require_in_range, require_positive
from gpn_scale.data.graph import Graph
from gpn_scale.errors import GraphError
from gpn_scale.nn.sparse import SparseMatrix


@dataclass(frozen=True, slots=True, kw_only=True)
class DropEdgeOptions:
    """Options of `DropEdge`."""

    samples: int = 10
    """Number of random passes in a prediction."""
    edge_dropout: float = 0.5
    """Fraction of the edges that every pass leaves out."""
    renormalised: bool = True
    """Whether weights are normalised by the remaining degrees, as in Rong et al. (2020).

    If false, the remaining edges keep their weights in the whole graph, scaled up, which comes
    closer to the figures in GPN's paper.
    """

    def __post_init__(self) -> None:
        require_positive("model.samples", self.samples, "random pass")
        allowed = 0.0 <= self.edge_dropout < 1.0
        require_in_range(
            "model.edge_dropout", self.edge_dropout, allowed=allowed, expected="in [0, 1)"
        )


class DropEdge(AbstractRandomPasses):
    """VGCN that leaves out edges as well as hidden units, in training and in prediction."""

    name = "DropEdge"
    Options = DropEdgeOptions

    def check_limits(self, graph: Graph) -> None:
        """Refuse directed and weighted graphs, for which DropEdge is not defined.

        Raises:
            GraphError: the graph is directed or weighted.
        """
        if not graph.has_plain_edges:
            raise GraphError(
                f"graph {graph.name!r} is directed or weighted, expected undirected, unweighted "
                "edges: DropEdge is defined for these"
            )

    def logits(self, view: GraphView, generator: torch.Generator | None = None) -> Tensor:
        """Return the logits, (N, C); with a generator, on a random part of the edges."""
        matrix = view.edges.transition("sym")
        if generator is not None:
            options = self.options
            renormalised = options.renormalised
            matrix = thinned(view.edges, options.edge_dropout, generator, renormalised=renormalised)
        logits_NC: Tensor = self.layers(view, matrix.__matmul__, generator)
        return logits_NC


def thinned(
    edges: EdgeMatrices, fraction: float, generator: torch.Generator, *, renormalised: bool = True
) -> SparseMatrix:
    """Return the `sym` matrix without a random fraction of the edges.

    Both directions of an edge are left out together.

    Args:
        edges: Undirected, unweighted edges.
        fraction: Probability with which an edge is left out.
        generator: Source of the draws.
        renormalised: Whether weights are computed from the remaining degrees; if false, remaining
            edges keep the weights of the whole graph, scaled up by 1 / (1 - fraction).
    """
    graph, whole = edges.graph, edges.transition("sym")
    row_E, column_E, pair_E = edges.pairs
    draws = torch.rand(graph.num_edges // 2, generator=generator, device=whole.device)
    # Self-loops have pair number -1: they index the appended last entry and always stay.
    kept_E = torch.cat([draws >= fraction, draws.new_ones(1, dtype=torch.bool)])[pair_E]
    row, column = row_E[kept_E], column_E[kept_E]
    degree_N = row.bincount(minlength=graph.num_nodes)
    if renormalised:
        root_N = degree_N.to(whole.dtype).sqrt()
        weight = 1.0 / (root_N[row] * root_N[column])
    else:
        weight = whole.values[kept_E]
        weight = torch.where(row == column, weight, weight / (1.0 - fraction))
    return SparseMatrix(
        torch.cat([degree_N.new_zeros(1), degree_N.cumsum(0)]),
        column,
        weight,
        graph.num_nodes,
        symmetric=True,
    )
