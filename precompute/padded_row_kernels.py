"""Compiled kernels that copy, cut, sum and pack the arrays of `PaddedRows`; they never raise.

As in `row_kernels`, parallel kernels take their output as plain arrays.
"""

import numpy as np
from numba import njit, prange

from precompute.top_k_kernels import partition_top_into, sort_row_into


@njit(cache=True, nogil=True, parallel=True)
def copy_rows_into(first, from_ids, from_weights, from_sizes, ids, weights, sizes):
    """Copy the `from_` rows over the target rows that start at `first`.

    >>> from precompute.scratch_memory import new_rows
    >>> one, three = new_rows(1, entries=2), new_rows(3, entries=2)
    >>> one.ids[0], one.sizes[0] = [4, 7], 2
    >>> copy_rows_into(1, *one, *three)
    >>> three.ids.tolist()
    [[0, 0], [4, 7], [0, 0]]
    """
    for at in prange(len(from_sizes)):
        entries = from_sizes[at]
        sizes[first + at] = entries
        for j in range(entries):
            ids[first + at, j] = from_ids[at, j]
            weights[first + at, j] = from_weights[at, j]


@njit(cache=True, nogil=True, parallel=True)
def finish_rows_into(k, ids, weights, sizes):
    """Cut every row to its k largest entries and sort it.

    >>> ids, weights = np.array([[4, 7, 2]], np.int32), np.array([[0.25, 0.5, 0.1]], np.float32)
    >>> sizes = np.array([3], np.int32)
    >>> finish_rows_into(2, ids, weights, sizes)
    >>> ids[0, : sizes[0]]
    array([7, 4], dtype=int32)
    """
    for at in prange(len(sizes)):
        count = sizes[at]
        if count > k:
            partition_top_into(ids[at], weights[at], count, k)
            count = k
        sort_row_into(ids[at], weights[at], count)
        sizes[at] = count


@njit(cache=True, nogil=True, parallel=True)
def subtract_clusters_into(ids, weights, sizes, cluster_of_node, mass_by_cluster):
    """Subtract every row's kept entries from its mass by cluster, (rows, P), but not below 0.

    >>> ids, weights = np.array([[0, 3]], np.int32), np.array([[0.5, 0.25]], np.float32)
    >>> sizes, cluster_of_node = np.array([2], np.int32), np.array([0, 0, 0, 1], np.int32)
    >>> mass = np.array([[0.75, 0.25]])
    >>> subtract_clusters_into(ids, weights, sizes, cluster_of_node, mass)
    >>> mass.tolist()
    [[0.25, 0.0]]
    """
    for at in prange(len(sizes)):
        for j in range(sizes[at]):
            mass_by_cluster[at, cluster_of_node[ids[at, j]]] -= weights[at, j]
        for cluster in range(mass_by_cluster.shape[1]):
            mass_by_cluster[at, cluster] = max(mass_by_cluster[at, cluster], 0.0)


@njit(cache=True, nogil=True, parallel=True)
def sum_rows_into(weights, sizes, sums):
    """Write the sum of every row to `sums` (float64).

    >>> weights, sums = np.array([[0.5, 0.25]], np.float32), np.empty(1)
    >>> sum_rows_into(weights, np.array([2], np.int32), sums)
    >>> sums
    array([0.75])
    """
    for at in prange(len(sizes)):
        total = 0.0
        for j in range(sizes[at]):
            total += weights[at, j]
        sums[at] = total


@njit(cache=True, nogil=True, parallel=True)
def pack_rows_into(ids, weights, sizes, row_ptr, packed_ids, packed_weights):
    """Copy padded rows into compressed rows with the offsets `row_ptr`.

    >>> ids, weights = np.array([[4, 7], [2, 0]], np.int32), np.ones((2, 2), np.float32)
    >>> packed = np.empty(3, np.int32), np.empty(3, np.float32)
    >>> pack_rows_into(ids, weights, np.array([2, 1], np.int32), np.array([0, 2, 3]), *packed)
    >>> packed[0]
    array([4, 7, 2], dtype=int32)
    """
    for at in prange(len(sizes)):
        for j in range(sizes[at]):
            packed_ids[row_ptr[at] + j] = ids[at, j]
            packed_weights[row_ptr[at] + j] = weights[at, j]


@njit(cache=True, nogil=True)
def find_whole_rows_into(roots, steps, indptr, indices, ids, sizes, state, whole):
    """Write to `whole` whether each row keeps every node within `steps` steps of its root.

    `state` (N,) is zero before and after. The cost is that of the edges of kept nodes, and much
    less for a row that lacks a neighbour of its root.

    >>> path = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1], np.int32)
    >>> ids, sizes = np.array([[0, 1, 0], [1, 0, 0]], np.int32), np.array([2, 2], np.int32)
    >>> whole = np.empty(2, np.bool_)
    >>> find_whole_rows_into(np.array([0, 1]), 1, *path, ids, sizes, np.zeros(3, np.int8), whole)
    >>> whole  # node 0 has one neighbour, node 1 has two
    array([ True, False])
    """
    queue = np.empty(ids.shape[1], np.int32)
    for at in range(len(sizes)):
        for j in range(sizes[at]):
            state[ids[at, j]] = 1  # kept
        level_start, level_stop, complete = 0, 0, state[roots[at]] == 1
        if complete:
            queue[0] = roots[at]
            state[roots[at]] = 2  # in the queue
            level_stop = 1
        for _ in range(steps):
            end = level_stop
            for place in range(level_start, level_stop):
                if not complete:
                    break
                for e in range(indptr[queue[place]], indptr[queue[place] + 1]):
                    reached = indices[e]
                    if state[reached] == 0:
                        complete = False
                        break
                    if state[reached] == 1:
                        state[reached] = 2
                        queue[end] = reached
                        end += 1
            level_start, level_stop = level_stop, end
            if not complete or level_start == level_stop:
                break
        whole[at] = complete
        for j in range(sizes[at]):
            state[ids[at, j]] = 0
