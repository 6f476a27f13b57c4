"""Clusters of nodes, and the exact mass that every root's diffusion puts on each of them.

Shapes: N nodes, P columns or clusters, B columns diffused at a time.
"""

import logging
from itertools import pairwise

import numpy as np
import scipy.sparse
from numba import njit, prange
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph
from gpn_scale.errors import ConfigError
from precompute.coarsening import fill_up, multilevel_partition
from precompute.mpi import AbstractComm

COLUMNS_AT_A_TIME = 16
"""B: one cache line of float32 per node; fixes the scratch memory at 2 N B floats."""

_ROWS_AT_A_TIME = 1 << 18
_NUM_TASKS = 256  # row ranges of equal cost handed to threads; any number gives the same bytes

logger = logging.getLogger(__name__)


def partition_nodes(graph: Graph, parts: int) -> NDArray[np.int32]:
    """Cluster of every node, in [0, parts), few edges cut; shape (N,).

    METIS makes twice as many balanced parts, and those with the densest ties are merged: clusters
    may differ in size, which costs nothing here, and are not glued together of far blobs, as METIS
    must do for balance (on AmazonPhotos the rank correlation of alpha_0 from two-level rows rose
    from .993 to .996). Graphs that are too large for it are coarsened first. Edge weights and
    directions are ignored. Isolated nodes fill up the smaller clusters, and some clusters may stay
    empty. The same graph gives the same clusters. Without pymetis the clusters are blocks of
    consecutive nodes, and a warning is logged.

    Raises:
        ConfigError: `parts` is below 1.
    """
    if parts < 1:
        raise ConfigError(f"clusters is {parts}, expected at least 1")
    if parts == 1 or graph.num_nodes == 0:
        return np.zeros(graph.num_nodes, np.int32)
    indptr, indices = _undirected(graph)
    cluster = multilevel_partition(indptr, indices, 2 * parts)
    if cluster is None:
        logger.warning(
            "pymetis is not installed: clusters are blocks of consecutive nodes, which makes "
            "the estimate of cut mass coarser (pip install pymetis)"
        )
        nodes = np.arange(graph.num_nodes, dtype=np.int64)
        return (nodes * parts // graph.num_nodes).astype(np.int32)
    # No other root's mass lies on an isolated node, so clusters are better spent on the rest.
    isolated = cluster < 0
    cluster[~isolated] = _merged_parts(indptr, indices, cluster, parts)[cluster[~isolated]]
    fill_up(cluster, np.broadcast_to(np.int32(1), graph.num_nodes), parts)
    return cluster


def _merged_parts(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], part: NDArray[np.int32], wanted: int
) -> NDArray[np.int32]:
    """New number, in [0, wanted), of every part: the pairs with the densest ties become one.

    The tie of two parts is the sum of 1 / sqrt(d_u d_v) over the edges between them, per pair of
    nodes.
    """
    num_parts = int(part.max(initial=-1)) + 1
    degree = np.diff(indptr)
    root_N = 1.0 / np.sqrt(np.maximum(degree, 1))
    tie = np.zeros(num_parts * num_parts)
    for start in range(0, len(degree), _ROWS_AT_A_TIME):
        stop = min(start + _ROWS_AT_A_TIME, len(degree))
        row = np.repeat(np.arange(start, stop), degree[start:stop])
        column = indices[indptr[start] : indptr[stop]]
        pair = part[row].astype(np.int64) * num_parts + part[column]
        tie += np.bincount(pair, root_N[row] * root_N[column], minlength=len(tie))
    tie_PP = tie.reshape(num_parts, num_parts)
    size = np.bincount(part[part >= 0], minlength=num_parts).astype(float)
    number = np.arange(num_parts)
    for _ in range(num_parts - wanted):
        density_PP = tie_PP / np.maximum(np.outer(size, size), 1.0)
        np.fill_diagonal(density_PP, -1.0)
        density_PP[:, size == 0] = density_PP[size == 0] = -0.5  # merged ones, after all others
        into, gone = divmod(int(density_PP.argmax()), num_parts)
        tie_PP[into] += tie_PP[gone]
        tie_PP[:, into] += tie_PP[:, gone]
        tie_PP[gone] = tie_PP[:, gone] = 0.0
        size[into] += size[gone]
        size[gone] = 0.0
        number[number == gone] = into
    return np.unique(number, return_inverse=True)[1].astype(np.int32)


def diffused_columns(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weight: NDArray[np.float32],
    columns: NDArray[np.float32],
    *,
    teleport: float,
    steps: int,
) -> NDArray[np.float32]:
    """X after `steps` times Y <- (1 - t) S Y + t X, from Y = X; (N, P), stored by column.

    Sums run in float64, in the order of each row's edges, and are rounded to float32 once a step:
    the bytes depend neither on the number of threads nor on the other columns.

    Args:
        indptr: row offsets of S, (N + 1,).
        indices: columns of S, (E,).
        weight: entries of S, (E,).
        columns: X, (N, P).
        teleport: t, in (0, 1).
        steps: K, at least 0; K -> infinity is personalised PageRank.
    """
    result_PN = np.array(columns.T, np.float32, order="C")
    _diffuse_rows(indptr, indices, weight, result_PN, teleport, steps)
    return result_PN.T


def cluster_masses(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weight: NDArray[np.float32],
    cluster_of_node: NDArray[np.int32],
    parts: int,
    *,
    teleport: float,
    steps: int,
    comm: AbstractComm,
) -> NDArray[np.float32]:
    """Mass that the diffusion from every root puts on each cluster; (N, P), stored by cluster.

    `diffused_columns` of the one-hot cluster matrix, its columns shared out over the ranks. All
    ranks call it and get the same numbers; within a machine, the same memory. A row sums to the
    root's total mass, which is 1 for a row-stochastic S.
    """
    num_nodes = len(indptr) - 1
    assert cluster_of_node.shape == (num_nodes,)
    masses_PN: NDArray[np.float32] = comm.shared_zeros((parts, num_nodes), np.float32)
    cuts = [parts * rank // comm.size for rank in range(comm.size + 1)]
    bounds = list(pairwise(cuts))
    start, stop = bounds[comm.rank]
    own = np.flatnonzero((cluster_of_node >= start) & (cluster_of_node < stop))
    masses_PN[cluster_of_node[own], own] = 1.0
    _diffuse_rows(indptr, indices, weight, masses_PN[start:stop], teleport, steps)
    comm.share_rows(masses_PN, bounds)
    return masses_PN.T


def arriving_mass(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weight: NDArray[np.float32],
    start: NDArray[np.float64],
    *,
    teleport: float,
    steps: int,
) -> NDArray[np.float64]:
    """The sum of all rows of the diffusion, row v times start[v]; (N,).

    `diffused_columns` with the transpose of S, which is not built: mass goes along the edges. By
    one thread, so that the order of additions is always the same.
    """
    matrix = (np.asarray(indptr), np.asarray(indices), np.asarray(weight))  # no memmap for numba
    now = start.astype(np.float64)
    for _ in range(steps):
        arrived = teleport * start
        _send_into(*matrix, 1.0 - teleport, now, arrived)
        now = arrived
    return now


def _undirected(graph: Graph) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Offsets and neighbours with both directions of every edge."""
    if not graph.directed:
        return graph.indptr, graph.indices
    shape = (graph.num_nodes, graph.num_nodes)
    ones = np.ones(graph.num_edges, np.int8)
    adjacency = scipy.sparse.csr_array((ones, graph.indices, graph.indptr), shape=shape)
    both = (adjacency + adjacency.T).tocsr()
    return both.indptr.astype(np.int64), both.indices.astype(np.int32)


def _diffuse_rows(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weight: NDArray[np.float32],
    columns_PN: NDArray[np.float32],
    teleport: float,
    steps: int,
) -> None:
    """Diffuse each row of `columns_PN` (a column of X) in place, `COLUMNS_AT_A_TIME` together."""
    num_columns, num_nodes = columns_PN.shape
    matrix = (np.asarray(indptr), np.asarray(indices), np.asarray(weight))  # no memmap for numba
    cost = matrix[0] + np.arange(num_nodes + 1)
    cuts = np.searchsorted(cost, np.linspace(0, cost[-1], _NUM_TASKS + 1).astype(np.int64))
    for first in range(0, num_columns, COLUMNS_AT_A_TIME):
        start_BN = columns_PN[first : first + COLUMNS_AT_A_TIME]
        now_NB = np.array(start_BN.T, order="C")
        next_NB = np.empty_like(now_NB)
        for _ in range(steps):
            _step_into(*matrix, cuts, teleport, start_BN, now_NB, next_NB)
            now_NB, next_NB = next_NB, now_NB
        start_BN[:] = now_NB.T


@njit(parallel=True, cache=True, nogil=True, fastmath=False)
def _step_into(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weight: NDArray[np.float32],
    cuts: NDArray[np.int64],
    teleport: float,
    start_BN: NDArray[np.float32],
    now_NB: NDArray[np.float32],
    next_NB: NDArray[np.float32],
) -> None:
    """One step, (1 - t) S now + t start, into `next_NB`.

    Task i alone writes the rows from cuts[i] to cuts[i + 1].
    """
    for task in prange(len(cuts) - 1):
        _step_rows_into(
            indptr,
            indices,
            weight,
            cuts[task],
            cuts[task + 1],
            teleport,
            start_BN,
            now_NB,
            next_NB,
        )


@njit(cache=True, nogil=True, fastmath=False)
def _step_rows_into(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weight: NDArray[np.float32],
    first: int,
    last: int,
    teleport: float,
    start_BN: NDArray[np.float32],
    now_NB: NDArray[np.float32],
    next_NB: NDArray[np.float32],
) -> None:
    """One step for the rows from `first` to before `last`; cost: B times their edges."""
    num_columns = now_NB.shape[1]
    total_B = np.empty(num_columns, np.float64)
    for row in range(first, last):
        total_B[:] = 0.0
        for edge in range(indptr[row], indptr[row + 1]):
            share = np.float64(weight[edge])
            neighbour = indices[edge]
            for column in range(num_columns):
                total_B[column] += share * now_NB[neighbour, column]
        for column in range(num_columns):
            arrived = (1.0 - teleport) * total_B[column]
            next_NB[row, column] = arrived + teleport * start_BN[column, row]


@njit(cache=True, nogil=True, fastmath=False)
def _send_into(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weight: NDArray[np.float32],
    share: float,
    now: NDArray[np.float64],
    arrived: NDArray[np.float64],
) -> None:
    """Adds share * S^T now to `arrived`; cost: the edges."""
    for row in range(len(now)):
        sent = share * now[row]
        for edge in range(indptr[row], indptr[row + 1]):
            arrived[indices[edge]] += sent * weight[edge]
