"""The transition matrix S of a diffusion, from the adjacency of a graph; NumPy only.

`transition_matrix` returns S with a weight per edge, for implementations that keep it in memory.
`transition_factors` returns vectors from which S follows, for those that read the graph from disk.
`precompute` uses this module and must not load torch.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.config import Normalisation
from gpn_scale.data.graph import Graph

_BLOCK_ENTRIES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Transition:
    """The matrix S: row v holds the weights of v's neighbours in its next state.

    Columns are sorted within rows. `symmetric` promises that S equals its transpose.

    >>> from gpn_scale import build_graph
    >>> S = transition_matrix(build_graph([0, 1], [1, 2]), "sym", self_loops=True)
    >>> S.num_nodes, len(S.indices), S.symmetric
    (3, 7, True)
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weight: NDArray[np.float64]
    symmetric: bool

    @property
    def num_nodes(self) -> int:
        """Number N of nodes."""
        return len(self.indptr) - 1


def transition_matrix(graph: Graph, normalisation: Normalisation, self_loops: bool) -> Transition:
    """Return S = D^-1/2 A D^-1/2 (`sym`) or D^-1 A (`rw`), where A has loops of weight 1.

    A node without out-edges gets a loop even if the others do not, so that walks stay there. For a
    directed graph, `sym` divides by the square roots of the row's out-weight and the column's
    in-weight.

    >>> from gpn_scale import build_graph
    >>> S = transition_matrix(build_graph([0, 1], [1, 2]), "rw", self_loops=False)
    >>> S.indices, S.weight
    (array([1, 0, 2, 1], dtype=int32), array([1. , 0.5, 0.5, 1. ]))
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TransitionFactors:
    """Vectors with S = diag(row) (A + diag(loop)) diag(column).

    A product with S needs only the graph's own arrays and these vectors, so that a graph on disk
    needs no copy in memory.

    >>> factors = TransitionFactors(
    ...     row_N=np.array([1.0, 0.5]), column_N=np.ones(2), loop_N=np.array([False, True])
    ... )
    >>> adjacency = np.array([[0.0, 1.0], [1.0, 0.0]]) + np.diag(factors.loop_N)
    >>> factors.row_N[:, None] * adjacency * factors.column_N
    array([[0. , 1. ],
           [0.5, 0.5]])
    """

    row_N: NDArray[np.float64]
    column_N: NDArray[np.float64]
    loop_N: NDArray[np.bool_]


def transition_factors(
    graph: Graph, normalisation: Normalisation, self_loops: bool
) -> TransitionFactors:
    """Return the factors of `transition_matrix`; memory grows with nodes, not with edges.

    >>> from gpn_scale import build_graph
    >>> transition_factors(build_graph([0, 1], [1, 2]), "rw", self_loops=False).row_N
    array([1. , 0.5, 1. ])
    """
    loop_N = (graph.out_degree == 0) | self_loops
    out_weight = loop_N.astype(np.float64)
    in_weight = out_weight.copy() if graph.directed and normalisation == "sym" else out_weight
    if graph.edge_weight is None:
        out_weight += graph.out_degree
    for start, stop in row_blocks(graph.indptr, _BLOCK_ENTRIES):
        indptr = graph.indptr[start : stop + 1]
        weight: float | NDArray[np.float32] = 1.0
        if graph.edge_weight is not None:
            weight = graph.edge_weight[indptr[0] : indptr[-1]]
            row = np.repeat(np.arange(stop - start), np.diff(indptr))
            out_weight[start:stop] += np.bincount(row, weight, minlength=stop - start)
        if in_weight is not out_weight:
            np.add.at(in_weight, graph.indices[indptr[0] : indptr[-1]], weight)
    if normalisation == "rw":
        row_N, column_N = 1.0 / out_weight, np.ones(graph.num_nodes)
    else:
        # A column without in-weight is empty, so its factor does not matter.
        in_weight[in_weight == 0.0] = 1.0
        row_N, column_N = 1.0 / np.sqrt(out_weight), 1.0 / np.sqrt(in_weight)
    return TransitionFactors(row_N=row_N, column_N=column_N, loop_N=loop_N)


def row_blocks(indptr: NDArray[np.int64], entries: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows with at most `entries` entries, in order; a longer row stays alone.

    >>> list(row_blocks(np.array([0, 1, 3, 4]), entries=3))
    [(0, 2), (2, 3)]
    """
    start, num_rows = 0, len(indptr) - 1
    while start < num_rows:
        last = int(np.searchsorted(indptr, indptr[start] + entries, side="right")) - 1
        stop = min(max(last, start + 1), num_rows)
        yield start, stop
        start = stop


def steps_to_tolerance(teleport: float, tolerance: float) -> int:
    """Return the smallest K whose undistributed mass, (1 - teleport)^K, is at most `tolerance`.

    >>> steps_to_tolerance(teleport=0.5, tolerance=0.01)  # 0.5^6 is still above it
    7
    """
    return math.ceil(math.log(tolerance) / math.log1p(-teleport))


def _with_loops(
    graph: Graph, self_loops: bool
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Return A with loops at their sorted places; the graph itself has none."""
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
