"""Adjacency -> the transition matrix of a diffusion, in compressed rows."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.config import Normalisation
from gpn_scale.data.graph import Graph


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Transition:
    """S: row v holds the shares by which v's neighbours enter its next state.

    Columns are sorted within rows. `symmetric` promises that S equals its transpose.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weight: NDArray[np.float64]
    symmetric: bool

    @property
    def num_nodes(self) -> int:
        """N."""
        return len(self.indptr) - 1


def transition_matrix(graph: Graph, normalisation: Normalisation, self_loops: bool) -> Transition:
    """Normalised adjacency: D^-1/2 A D^-1/2 (`sym`) or D^-1 A (`rw`), A with loops of weight 1.

    A node without out-edges keeps its walk: it gets a loop even when the others do not. For a
    directed graph `sym` divides by the roots of the row's out-weight and the column's in-weight.
    """
    indptr, indices, weight = _with_loops(graph, self_loops)
    row = np.repeat(np.arange(graph.num_nodes, dtype=np.int32), np.diff(indptr))
    out_weight = np.bincount(row, weights=weight, minlength=graph.num_nodes)
    if normalisation == "rw":
        weight /= out_weight[row]
    else:
        in_weight = np.bincount(indices, weights=weight, minlength=graph.num_nodes)
        weight /= np.sqrt(out_weight[row] * in_weight[indices])
    return Transition(
        indptr=indptr,
        indices=indices,
        weight=weight,
        symmetric=not graph.directed and normalisation == "sym",
    )


def steps_to_tolerance(teleport: float, tolerance: float) -> int:
    """Fewest steps K that leave at most `tolerance` of the mass, (1 - teleport)^K, on its way."""
    return math.ceil(math.log(tolerance) / math.log1p(-teleport))


def _with_loops(
    graph: Graph, self_loops: bool
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """A with the loops in their sorted place; the graph itself has none."""
    degree = graph.out_degree
    looped = np.flatnonzero((degree == 0) | self_loops)
    extra = np.zeros(graph.num_nodes + 1, np.int64)
    extra[looped + 1] = 1
    row = np.repeat(np.arange(graph.num_nodes, dtype=np.int32), degree)
    # A row's loop goes before the first column that is larger than the row.
    below = np.bincount(row[graph.indices < row], minlength=graph.num_nodes)
    place = graph.indptr[looped] + below[looped]
    weight = np.ones(graph.num_edges) if graph.edge_weight is None else graph.edge_weight
    indices = np.insert(graph.indices, place, looped.astype(np.int32))
    weights = np.insert(np.asarray(weight, np.float64), place, 1.0)
    return graph.indptr + np.cumsum(extra), indices, weights
