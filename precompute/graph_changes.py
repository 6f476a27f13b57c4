"""Differences between two graphs: their edges, and the rows of their transition matrices.

Shapes: N nodes of the new graph, of which the first ones are the nodes of the old one; Z changed
entries.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph
from gpn_scale.diffusion.transition import Transition
from precompute.difference_kernels import count_row_differences, row_differences_into


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeCounts:
    """Numbers of nodes and edges that were added, removed, or given another weight.

    >>> EdgeCounts(nodes_added=0, added=3, removed=1, reweighted=0).summary
    '3 edges added, 1 edge removed'
    """

    nodes_added: int
    added: int
    removed: int
    reweighted: int
    before: int = 0
    """Number of edges of the earlier graph."""

    @property
    def may_be_renumbered(self) -> bool:
        """Whether more than half of the edges are gone, as if nodes had been numbered anew."""
        return 2 * self.removed > self.before > 0

    @property
    def any(self) -> bool:
        """Whether anything changed."""
        return any((self.nodes_added, self.added, self.removed, self.reweighted))

    @property
    def summary(self) -> str:
        """One line that describes the changes."""
        clauses = [_counted(self.nodes_added, "node", "added")] if self.nodes_added else []
        edges = {"added": self.added, "removed": self.removed, "reweighted": self.reweighted}
        clauses += [_counted(count, "edge", name) for name, count in edges.items() if count]
        return ", ".join(clauses) or "nothing changed"


def _counted(count: int, what: str, how: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'} {how}"


def edge_counts(old: Graph, new: Graph) -> EdgeCounts:
    """Count the changes from `old` to `new`; an undirected edge counts once.

    >>> from gpn_scale import build_graph
    >>> edge_counts(build_graph([0, 1], [1, 2]), build_graph([0, 2], [1, 3]))
    EdgeCounts(nodes_added=1, added=1, removed=1, reweighted=0, before=2)
    """
    only_old, only_new, different = count_row_differences(
        *_grown(np.asarray(old.indptr), new.num_nodes),
        np.asarray(old.indices),
        _weights(old),
        np.asarray(new.indptr),
        np.asarray(new.indices),
        _weights(new),
    ).sum(0)
    listed = 1 if new.directed else 2
    return EdgeCounts(
        nodes_added=new.num_nodes - old.num_nodes,
        added=int(only_new) // listed,
        removed=int(only_old) // listed,
        reweighted=int(different) // listed,
        before=old.num_edges // listed,
    )


def transition_difference(old: Transition, new: Transition) -> scipy.sparse.csr_array:
    """Return upper bounds on the absolute entries of S' - S, (N, N), for S' of the `new` graph.

    Nodes that the old graph does not have count as isolated in it, with a loop of weight 1.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.diffusion.transition import transition_matrix
    >>> old = transition_matrix(build_graph([0], [1]), "rw", self_loops=True)
    >>> new = transition_matrix(build_graph([0, 1], [1, 2]), "rw", self_loops=True)
    >>> transition_difference(old, new).toarray().round(2).tolist()
    [[0.0, 0.0, 0.0], [0.17, 0.17, 0.33], [0.0, 0.5, 0.5]]
    """
    old = with_isolated_nodes(old, new.num_nodes)
    rows = (old.indptr, old.indices, old.weight, new.indptr, new.indices, new.weight)
    counts = count_row_differences(*rows).sum(1)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    column_Z = np.empty(indptr[-1], np.int32)
    value_Z = np.empty(indptr[-1])
    row_differences_into(*rows, indptr, column_Z, value_Z)
    return scipy.sparse.csr_array((value_Z, column_Z, indptr), shape=(new.num_nodes,) * 2)


def with_isolated_nodes(transition: Transition, num_nodes: int) -> Transition:
    """Return a transition matrix with further nodes at its end, each with a loop of weight 1.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.diffusion.transition import transition_matrix
    >>> S = transition_matrix(build_graph([0], [1]), "rw", self_loops=True)
    >>> with_isolated_nodes(S, 3).weight.tolist()
    [0.5, 0.5, 0.5, 0.5, 1.0]
    """
    further = np.arange(transition.num_nodes, num_nodes)
    if not len(further):
        return transition
    return Transition(
        indptr=np.append(transition.indptr, transition.indptr[-1] + 1 + np.arange(len(further))),
        indices=np.append(transition.indices, further.astype(np.int32)),
        weight=np.append(transition.weight, np.ones(len(further))),
        symmetric=transition.symmetric,
    )


def _weights(graph: Graph) -> NDArray[Any]:
    if graph.edge_weight is None:
        return np.broadcast_to(np.float32(1.0), graph.num_edges)
    return np.asarray(graph.edge_weight)


def _grown(indptr: NDArray[np.int64], num_nodes: int) -> tuple[NDArray[np.int64]]:
    """Return row offsets with empty rows at their end."""
    return (np.append(indptr, np.full(num_nodes + 1 - len(indptr), indptr[-1])),)
