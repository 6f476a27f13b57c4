"""Compiled kernels of sweeps and pushes; they take and fill arrays and never raise.

N nodes, E stored transitions, M kept entries per row. Every kernel works for any non-negative S in
compressed rows. All estimates are lower bounds: see docs/certificate.md.

Parallel kernels take their output as plain arrays: inside `prange`, a write to an array that was
passed in a tuple may be lost without an error (numba 0.68). They pass tuples on to serial kernels,
where such writes are safe.

A slot of scratch memory belongs to one thread. A sweep lists each node that it touches once and
sums its mass beside the list, at the position that `place` (N,) holds; `place` is zero between
calls. This list stays in the cache, unlike float64 sums for all nodes, and it cannot outgrow its
array.

Sums are float64. Rows are rounded down to float32, so that they stay lower bounds
(docs/certificate.md).
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from precompute.rounding import rounded_down
from precompute.top_k_kernels import partition_top_into

_CHUNK = 16  # nodes that a slot takes at a time; small, because nearby nodes differ in cost


class PaddedRows(NamedTuple):
    """Rows with room for M entries each; the first `sizes[v]` of row v are valid, in any order.

    >>> rows = PaddedRows(
    ...     ids=np.array([[4, 7], [2, 0]], np.int32),
    ...     weights=np.array([[0.5, 0.25], [1.0, 0.0]], np.float32),
    ...     sizes=np.array([2, 1], np.int32),
    ... )
    >>> rows.ids[1, : rows.sizes[1]]
    array([2], dtype=int32)
    """

    ids: NDArray[np.int32]
    """Nodes, (N, M)."""
    weights: NDArray[np.float32]
    """Positive weights of the nodes, (N, M)."""
    sizes: NDArray[np.int32]
    """Number of valid entries of each row, (N,)."""


class Work(NamedTuple):
    """Scratch memory of all slots; row s of each array belongs to slot s.

    >>> from precompute.scratch_memory import new_work
    >>> new_work(num_nodes=5, slots=2, push=True).place.shape
    (2, 5)
    """

    touched: NDArray[np.int32]
    """Nodes that a row reaches, each once, (slots, N)."""
    value: NDArray[np.float64]
    """Mass of the touched nodes in this order, (slots, N); zero between calls of pushes."""
    place: NDArray[np.int32]
    """1 + place of a node in `touched`, or its state in a push, (slots, N); zero between calls."""
    mass: NDArray[np.float64]
    """Mass on each node, (slots, N); zero between calls, (slots, 0) for sweeps."""
    residual: NDArray[np.float64]
    """Mass not distributed yet, like `mass`."""
    queue: NDArray[np.int32]
    """Nodes that wait for a push, (slots, N); (slots, 0) for sweeps."""


@njit(cache=True, nogil=True, inline="always")
def is_absorbing(node, indptr, indices, weight):
    """Return whether a node's only edge is a loop of weight 1, so that its row is exact.

    >>> alone = np.array([0, 1]), np.array([0], np.int32), np.ones(1, np.float32)
    >>> is_absorbing(0, *alone)
    True
    """
    start = indptr[node]
    return indptr[node + 1] - start == 1 and indices[start] == node and weight[start] == 1.0


@njit(cache=True, nogil=True)
def keep_top_into(num_touched, floor, keep, slot, work, ids, weights):
    """Write the `keep` largest touched entries of at least `floor`, and clear their places.

    Returns the number of written entries, in O(num_touched).

    >>> from precompute.scratch_memory import new_rows, new_work
    >>> work, rows = new_work(3, 1, push=False), new_rows(1, entries=2)
    >>> work.value[0], work.touched[0] = [0.25, 0.5, 0.125], [0, 1, 2]
    >>> keep_top_into(3, np.float32(0.0), 2, 0, work, rows.ids[0], rows.weights[0])
    2
    >>> sorted(rows.ids[0].tolist())
    [0, 1]
    """
    touched, value, place = work.touched[slot], work.value[slot], work.place[slot]
    count = 0
    for i in range(num_touched):
        node, mass = touched[i], rounded_down(value[i])
        place[node] = 0
        if mass >= floor and mass > 0.0:  # these move to the front of both lists
            touched[count] = node
            value[count] = mass
            count += 1
    if count > keep:
        partition_top_into(touched, value, count, keep)
        count = keep
    for i in range(count):
        ids[i] = touched[i]
        weights[i] = value[i]
    return count


@njit(cache=True, nogil=True)
def add_row_into(node, factor, rows, num_touched, touched, value, place):
    """Add `factor` times the row of `node` to `value`; return the new number of touched nodes.

    >>> from precompute.scratch_memory import new_rows
    >>> rows, value = new_rows(1, entries=2), np.zeros(3)
    >>> touched, place = np.zeros(3, np.int32), np.zeros(3, np.int32)
    >>> rows.ids[0], rows.weights[0], rows.sizes[0] = [2, 1], [0.5, 0.25], 2
    >>> add_row_into(0, 2.0, rows, 0, touched, value, place), touched[:2], value[:2]
    (2, array([2, 1], dtype=int32), array([1. , 0.5]))
    """
    for j in range(rows.sizes[node]):
        reached = rows.ids[node, j]
        added = factor * rows.weights[node, j]
        at = place[reached]
        if at == 0:
            touched[num_touched] = reached
            value[num_touched] = added
            num_touched += 1
            place[reached] = num_touched
        else:
            value[at - 1] += added
    return num_touched


@njit(cache=True, nogil=True)
def sweep_node_into(node, indptr, indices, weight, teleport, hop, rows, slot, work, ids, weights):
    """Compute t e_v + (1 - t) sum_w S_vw row_w from the neighbours' rows, cut to M entries.

    With `hop`, this is the next row of a K-step diffusion. Without, it approaches the limit K ->
    infinity, and two exact identities speed it up: the loop S_vv is solved for, and an entry never
    falls below its former value, because both are lower bounds. The smallest former entry of a full
    row is then a floor for the new ones, which saves most of the selection. Returns the number of
    written entries.

    >>> from precompute.scratch_memory import new_rows, new_work
    >>> pair = np.array([0, 1, 2]), np.array([1, 0], np.int32), np.ones(2, np.float32)
    >>> rows, new, work = new_rows(2, entries=2), new_rows(1, entries=2), new_work(2, 1, push=False)
    >>> rows.ids[:, 0], rows.weights[:, 0], rows.sizes[:] = [0, 1], 1.0, 1
    >>> sweep_node_into(0, *pair, 0.75, True, rows, 0, work, new.ids[0], new.weights[0])
    2
    >>> new.ids.tolist(), new.weights.tolist()  # one step from node 0
    ([[0, 1]], [[0.75, 0.25]])
    """
    touched, value, place = work.touched[slot], work.value[slot], work.place[slot]
    keep = rows.ids.shape[1]
    start, stop = indptr[node], indptr[node + 1]
    if is_absorbing(node, indptr, indices, weight):
        ids[0] = node
        weights[0] = 1.0
        return 1
    gain = 1.0
    if not hop:
        for e in range(start, stop):
            if indices[e] == node:
                gain = 1.0 / (1.0 - (1.0 - teleport) * weight[e])
    touched[0], value[0], place[node], num_touched = node, teleport * gain, 1, 1
    scale = (1.0 - teleport) * gain
    for e in range(start, stop):
        if hop or indices[e] != node:
            factor = scale * weight[e]
            num_touched = add_row_into(indices[e], factor, rows, num_touched, touched, value, place)
    floor = np.float32(0.0)
    if not hop:
        smallest = np.float32(np.inf)
        for j in range(rows.sizes[node]):
            kept, former = rows.ids[node, j], rows.weights[node, j]
            if place[kept] == 0:
                touched[num_touched], value[num_touched] = kept, former
                num_touched += 1
                place[kept] = num_touched
            else:
                value[place[kept] - 1] = max(value[place[kept] - 1], np.float64(former))
            smallest = min(smallest, former)
        if rows.sizes[node] == keep:
            floor = smallest
    return keep_top_into(num_touched, floor, keep, slot, work, ids, weights)


@njit(cache=True, nogil=True, parallel=True)
def sweep_block_into(
    first, last, indptr, indices, weight, teleport, hop, rows, work, ids, weights, sizes
):
    """Compute the rows [first, last) from `rows` into `ids`, `weights` and `sizes`.

    Row 0 of the output is that of `first`. Only slot s uses row s of `work`. The result does not
    depend on the number of slots.

    >>> from precompute.scratch_memory import new_rows, new_work
    >>> pair = np.array([0, 1, 2]), np.array([1, 0], np.int32), np.ones(2, np.float32)
    >>> rows, new, work = new_rows(2, entries=2), new_rows(2, entries=2), new_work(2, 1, push=False)
    >>> rows.ids[:, 0], rows.weights[:, 0], rows.sizes[:] = [0, 1], 1.0, 1
    >>> sweep_block_into(0, 2, *pair, 0.75, True, rows, work, *new)
    >>> new.ids.tolist(), new.weights.tolist()
    ([[0, 1], [1, 0]], [[0.75, 0.25], [0.75, 0.25]])
    """
    slots = work.mass.shape[0]
    num_chunks = (last - first + _CHUNK - 1) // _CHUNK
    for slot in prange(slots):
        for chunk in range(slot, num_chunks, slots):
            begin = first + chunk * _CHUNK
            for node in range(begin, min(begin + _CHUNK, last)):
                at = node - first
                sizes[at] = sweep_node_into(
                    node,
                    indptr,
                    indices,
                    weight,
                    teleport,
                    hop,
                    rows,
                    slot,
                    work,
                    ids[at],
                    weights[at],
                )
