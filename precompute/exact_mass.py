"""Exact sums of diffusion rows: the mass of each row per cluster, and of all rows per node.

Shapes: N nodes, P columns or clusters, B columns diffused at a time.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from gpn_scale.data.graph import NodeIds
from precompute.mpi import AbstractComm
from precompute.rounding import round_up_to_single

COLUMNS_AT_A_TIME = 8
"""B: one cache line of float64 per node; limits scratch memory to 2 N B numbers."""

_NUM_TASKS = 256  # row ranges of equal cost for the threads; any number gives the same bytes


def diffused_columns(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weight: NDArray[np.floating[Any]],
    columns: NDArray[np.floating[Any]],
    *,
    teleport: float,
    steps: int,
) -> NDArray[np.float64]:
    """Iterate Y <- (1 - t) S Y + t X from Y = X for K steps; return Y, (N, P), stored by column.

    Sums run in float64, in the order of each row's edges: the bytes depend neither on the number of
    threads nor on the other columns.

    >>> pair = np.array([0, 1, 2]), np.array([1, 0], np.int32), np.ones(2)
    >>> columns = np.array([[4.0], [0.0]])
    >>> diffused_columns(*pair, columns, teleport=0.75, steps=1).tolist()
    [[3.0], [1.0]]

    Args:
        indptr: Row offsets of S, (N + 1,).
        indices: Columns of S, (E,).
        weight: Entries of S, (E,).
        columns: X, (N, P).
        teleport: t, in (0, 1).
        steps: K, at least 0; K -> infinity is personalised PageRank.
    """
    result_PN = np.array(columns.T, np.float64, order="C")
    _diffuse_rows(indptr, indices, weight, result_PN, teleport, steps)
    return result_PN.T


def mass_by_cluster(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weight: NDArray[np.floating[Any]],
    cluster_of_node: NDArray[np.int32],
    num_clusters: int,
    *,
    teleport: float,
    steps: int,
    comm: AbstractComm,
    nodes: NodeIds | None = None,
) -> NDArray[np.float32]:
    """Return the mass of every node's full row on each cluster; (N, P), stored by cluster.

    This is `diffused_columns` of the one-hot cluster matrix, rounded up to float32. The columns are
    divided among the ranks. All ranks must call it and get the same numbers, in memory that the
    ranks of a machine share. Each row sums to the total mass of the node's diffusion row, which is
    1 for a row-stochastic S.

    With `nodes`, which only a single process may pass, only their R rows are kept, (R, P). All rows
    are diffused in any case, since they depend on each other within a few steps.

    >>> from precompute.mpi import SingleProcess
    >>> pair = np.array([0, 1, 2]), np.array([1, 0], np.int32), np.ones(2)
    >>> options = {"teleport": 0.75, "steps": 1, "comm": SingleProcess()}
    >>> mass_by_cluster(*pair, np.array([0, 1], np.int32), 2, **options).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    num_nodes = len(indptr) - 1
    assert cluster_of_node.shape == (num_nodes,)
    if nodes is not None:
        assert comm.size == 1
        kept_PR = np.empty((num_clusters, len(nodes)), np.float32)
        for first in range(0, num_clusters, COLUMNS_AT_A_TIME):
            cluster_B = np.arange(first, min(first + COLUMNS_AT_A_TIME, num_clusters))
            block_BN = (cluster_of_node == cluster_B[:, None]).astype(np.float32)
            _diffuse_rows(indptr, indices, weight, block_BN, teleport, steps)
            kept_PR[cluster_B] = block_BN[:, nodes]
        return kept_PR.T
    masses_PN: NDArray[np.float32] = comm.shared_zeros((num_clusters, num_nodes), np.float32)
    cuts = [num_clusters * rank // comm.size for rank in range(comm.size + 1)]
    bounds = list(pairwise(cuts))
    start, stop = bounds[comm.rank]
    own = np.flatnonzero((cluster_of_node >= start) & (cluster_of_node < stop))
    masses_PN[cluster_of_node[own], own] = 1.0
    _diffuse_rows(indptr, indices, weight, masses_PN[start:stop], teleport, steps)
    comm.share_rows(masses_PN, bounds)
    return masses_PN.T


def summed_columns(columns: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the sum of each row of (N, P) numbers, added in the order of the columns.

    NumPy's own sum adds in a different order for a single row than for several.

    >>> summed_columns(np.array([[0.5, 0.25], [1.0, 2.0]], np.float32))
    array([0.75, 3.  ])
    """
    sums = np.zeros(len(columns))
    for column in columns.T:
        sums += column
    return sums


def arriving_mass(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weight: NDArray[np.floating[Any]],
    start: NDArray[np.float64],
    *,
    teleport: float,
    steps: int,
) -> NDArray[np.float64]:
    """Return the sum over v of start[v] times the diffusion row of v; (N,).

    This is `diffused_columns` with the transpose of S, which is not built: mass moves along the
    edges, in one thread, so that the order of additions is always the same.

    >>> pair = np.array([0, 1, 2]), np.array([1, 0], np.int32), np.ones(2, np.float32)
    >>> arriving_mass(*pair, np.array([4.0, 0.0]), teleport=0.75, steps=1)
    array([3., 1.])
    """
    matrix = (np.asarray(indptr), np.asarray(indices), np.asarray(weight))  # numba takes no memmap
    now = start.astype(np.float64)
    for _ in range(steps):
        arrived = teleport * start
        _send_into(*matrix, 1.0 - teleport, now, arrived)
        now = arrived
    return now


def _diffuse_rows(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weight: NDArray[np.floating[Any]],
    columns_PN: NDArray[np.floating[Any]],
    teleport: float,
    steps: int,
) -> None:
    """Diffuse each row of `columns_PN` (a column of X) in place, `COLUMNS_AT_A_TIME` at once."""
    num_columns, num_nodes = columns_PN.shape
    matrix = (np.asarray(indptr), np.asarray(indices), np.asarray(weight))  # numba takes no memmap
    cost = matrix[0] + np.arange(num_nodes + 1)
    cuts = np.searchsorted(cost, np.linspace(0, cost[-1], _NUM_TASKS + 1).astype(np.int64))
    for first in range(0, num_columns, COLUMNS_AT_A_TIME):
        start_BN = columns_PN[first : first + COLUMNS_AT_A_TIME]
        now_NB = np.array(start_BN.T, np.float64, order="C")
        next_NB = np.empty_like(now_NB)
        for _ in range(steps):
            _step_into(*matrix, cuts, teleport, start_BN, now_NB, next_NB)
            now_NB, next_NB = next_NB, now_NB
        start_BN[:] = now_NB.T if start_BN.dtype == np.float64 else round_up_to_single(now_NB.T)


@njit(parallel=True, cache=True, nogil=True, fastmath=False)
def _step_into(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weight: NDArray[np.floating[Any]],
    cuts: NDArray[np.int64],
    teleport: float,
    start_BN: NDArray[np.floating[Any]],
    now_NB: NDArray[np.float64],
    next_NB: NDArray[np.float64],
) -> None:
    """Compute one step, (1 - t) S now + t start, into `next_NB`.

    Only task i writes the rows from cuts[i] to cuts[i + 1].
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
    weight: NDArray[np.floating[Any]],
    first: int,
    last: int,
    teleport: float,
    start_BN: NDArray[np.floating[Any]],
    now_NB: NDArray[np.float64],
    next_NB: NDArray[np.float64],
) -> None:
    """Compute one step for the rows [first, last); the cost is B times their edges."""
    num_columns = now_NB.shape[1]
    total_B = np.empty(num_columns, np.float64)
    for row in range(first, last):
        total_B[:] = 0.0
        for edge in range(indptr[row], indptr[row + 1]):
            transition = np.float64(weight[edge])
            neighbour = indices[edge]
            for column in range(num_columns):
                total_B[column] += transition * now_NB[neighbour, column]
        for column in range(num_columns):
            arrived = (1.0 - teleport) * total_B[column]
            next_NB[row, column] = arrived + teleport * start_BN[column, row]


@njit(cache=True, nogil=True, fastmath=False)
def _send_into(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weight: NDArray[np.floating[Any]],
    factor: float,
    now: NDArray[np.float64],
    arrived: NDArray[np.float64],
) -> None:
    """Add factor * S^T now to `arrived`; the cost is the number of edges."""
    for row in range(len(now)):
        sent = factor * now[row]
        for edge in range(indptr[row], indptr[row + 1]):
            arrived[indices[edge]] += sent * weight[edge]
