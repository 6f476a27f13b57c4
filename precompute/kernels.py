"""Jitted kernels: sweeps and pushes over arrays. Arrays in, arrays out; nothing raises.

N nodes, E stored transitions, M kept entries per row. Every kernel works for any non-negative S in
compressed rows. All estimates are from below: see docs/certificate.md.

Parallel kernels take what they write as plain arrays: inside `prange`, a write to an array that
came in a tuple may be lost without an error (numba 0.68). They hand tuples on to serial kernels,
where such writes are safe.

A slot of scratch belongs to one thread: `mass` (N,) float32 is zero between calls, `touched` (N,),
`candidate` (N,) int32 and `candidate_mass` (N,) float32 are free to be written.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from precompute.selection_kernels import partition_top_into, sort_row_into

_CHUNK = 16  # nodes that a slot takes at a time: small, since the costs of neighbours differ


class Rows(NamedTuple):
    """Rows with room for M entries each, in no order: the first `sizes[v]` of row v are valid."""

    ids: NDArray[np.int32]
    """(N, M)."""
    weights: NDArray[np.float32]
    """(N, M), positive."""
    sizes: NDArray[np.int32]
    """(N,)."""


class Work(NamedTuple):
    """Scratch of all slots; row s belongs to slot s."""

    mass: NDArray[np.float32]
    """(slots, N), zero between calls."""
    residual: NDArray[np.float32]
    """(slots, N), zero between calls; (slots, 0) for sweeps."""
    touched: NDArray[np.int32]
    """(slots, N)."""
    queue: NDArray[np.int32]
    """(slots, N), (slots, 0) for sweeps."""
    candidate: NDArray[np.int32]
    """(slots, N)."""
    candidate_mass: NDArray[np.float32]
    """(slots, N)."""


@njit(cache=True, nogil=True)
def keep_top_into(num_touched, floor, keep, slot, work, ids, weights):
    """Writes the `keep` largest touched entries of at least `floor`, and clears the slot's mass.

    Returns how many were written; O(num_touched).
    """
    mass, touched = work.mass[slot], work.touched[slot]
    candidate, candidate_mass = work.candidate[slot], work.candidate_mass[slot]
    found = 0
    for i in range(num_touched):
        node = touched[i]
        value = mass[node]
        mass[node] = 0.0
        if value >= floor and value > 0.0:
            candidate[found] = node
            candidate_mass[found] = value
            found += 1
    if found > keep:
        partition_top_into(candidate, candidate_mass, found, keep)
        found = keep
    for i in range(found):
        ids[i] = candidate[i]
        weights[i] = candidate_mass[i]
    return found


@njit(cache=True, nogil=True)
def add_row_into(node, share, rows, num_touched, mass, touched):
    """Adds share * row of `node` to `mass`; returns the new number of touched nodes."""
    for j in range(rows.sizes[node]):
        reached = rows.ids[node, j]
        before = mass[reached]
        after = before + share * rows.weights[node, j]
        if before == 0.0 and after > 0.0:  # a product may underflow to 0, and come again
            touched[num_touched] = reached
            num_touched += 1
        mass[reached] = after
    return num_touched


@njit(cache=True, nogil=True)
def sweep_node_into(node, indptr, indices, weight, teleport, hop, rows, slot, work, ids, weights):
    """One row from its neighbours' rows: t e_v + (1 - t) sum_w S_vw row_w, cut to M entries.

    With `hop` that is all: the next row of a K-step diffusion. Without, the limit K -> infinity is
    sought and two exact identities speed it up: the loop S_vv is solved for, and an entry never
    falls below its former value, since both are bounds from below. The smallest former entry of a
    full row is then a floor for the new ones, which spares most of the selection.
    """
    mass, touched = work.mass[slot], work.touched[slot]
    keep = rows.ids.shape[1]
    start, stop = indptr[node], indptr[node + 1]
    gain = np.float32(1.0)
    if not hop:
        for e in range(start, stop):
            if indices[e] == node:
                gain = np.float32(1.0 / (1.0 - (1.0 - teleport) * weight[e]))
    mass[node] = np.float32(teleport) * gain
    touched[0] = node
    num_touched = 1
    scale = np.float32(1.0 - teleport) * gain
    for e in range(start, stop):
        if hop or indices[e] != node:
            share = scale * weight[e]
            num_touched = add_row_into(indices[e], share, rows, num_touched, mass, touched)
    floor = np.float32(0.0)
    if not hop:
        smallest = np.float32(np.inf)
        for j in range(rows.sizes[node]):
            kept, former = rows.ids[node, j], rows.weights[node, j]
            if mass[kept] == 0.0:
                touched[num_touched] = kept
                num_touched += 1
            mass[kept] = max(mass[kept], former)
            smallest = min(smallest, former)
        if rows.sizes[node] == keep:
            floor = smallest
    return keep_top_into(num_touched, floor, keep, slot, work, ids, weights)


@njit(cache=True, nogil=True, parallel=True)
def sweep_block_into(
    first, last, indptr, indices, weight, teleport, hop, rows, work, ids, weights, sizes
):
    """Rows `first` to `last` from all `rows`, into the last three, whose row 0 is `first`.

    Slot s alone touches row s of `work`. The result does not depend on the number of slots.
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


@njit(cache=True, nogil=True)
def push_node_into(node, indptr, indices, weight, teleport, tolerance, slot, work):
    """Forward push (Andersen et al., 2006) from one root, first in first out.

    Keeps pi_v = mass + sum_x residual_x pi_x, so mass is a bound from below. A node is pushed while
    its residual is at least `tolerance` times its number of out-edges; loops are solved for.
    Leaves `mass` and the touched list for `keep_top_into`, and `residual` clean. Returns how many
    nodes were touched. The queue is a ring: a waiting node is never entered twice.
    """
    mass, residual = work.mass[slot], work.residual[slot]
    touched, queue = work.touched[slot], work.queue[slot]
    waiting = work.candidate[slot]  # 1 for nodes in the queue; zero between calls
    size = len(queue)
    residual[node] = 1.0
    queue[0] = node
    waiting[node] = 1
    head, length = 0, 1
    touched[0] = node
    num_touched = 1
    while length > 0:
        current = queue[head]
        head = head + 1 if head + 1 < size else 0
        length -= 1
        waiting[current] = 0
        amount = residual[current]
        residual[current] = 0.0
        start, stop = indptr[current], indptr[current + 1]
        gain = np.float32(1.0)
        for e in range(start, stop):
            if indices[e] == current:
                gain = np.float32(1.0 / (1.0 - (1.0 - teleport) * weight[e]))
        mass[current] += np.float32(teleport) * gain * amount
        scale = np.float32(1.0 - teleport) * gain * amount
        for e in range(start, stop):
            reached = indices[e]
            if reached == current:
                continue
            before = residual[reached]
            after = before + scale * weight[e]
            if before == 0.0 and mass[reached] == 0.0 and after > 0.0:
                touched[num_touched] = reached
                num_touched += 1
            residual[reached] = after
            degree = indptr[reached + 1] - indptr[reached]
            if waiting[reached] == 0 and after >= tolerance * degree:
                waiting[reached] = 1
                tail = head + length
                queue[tail if tail < size else tail - size] = reached
                length += 1
    for i in range(num_touched):
        residual[touched[i]] = 0.0
    return num_touched


@njit(cache=True, nogil=True)
def walk_node_into(node, indptr, indices, weight, teleport, steps, tolerance, slot, work):
    """K steps of the diffusion from one root, level by level, without amounts below `tolerance`.

    mass = t sum_{i<K} (1-t)^i S^i + (1-t)^K S^K, from below. The levels are kept in `queue`: the
    front holds the present one, the back collects the next.
    """
    mass, amount = work.mass[slot], work.residual[slot]
    touched, level = work.touched[slot], work.queue[slot]
    coming, following = work.candidate_mass[slot], work.candidate[slot]
    amount[node] = 1.0
    level[0] = node
    length = 1
    num_touched = 0
    for step in range(steps + 1):
        num_next = 0
        for i in range(length):
            current = level[i]
            value = amount[current]
            amount[current] = 0.0
            if mass[current] == 0.0:
                touched[num_touched] = current
                num_touched += 1
            mass[current] += value if step == steps else np.float32(teleport) * value
            if step == steps or value < tolerance:
                continue
            scale = np.float32(1.0 - teleport) * value
            for e in range(indptr[current], indptr[current + 1]):
                reached = indices[e]
                before = coming[reached]
                after = before + scale * weight[e]
                if before == 0.0 and after > 0.0:
                    following[num_next] = reached
                    num_next += 1
                coming[reached] = after
        for i in range(num_next):
            reached = following[i]
            level[i] = reached
            amount[reached] = coming[reached]
            coming[reached] = 0.0
        length = num_next
    return num_touched


@njit(cache=True, nogil=True, parallel=True)
def push_roots_into(
    roots, indptr, indices, weight, teleport, steps, tolerance, work, ids, weights, sizes
):
    """Rows of `roots` by push (`steps` < 0) or by K-step walks, cut to M entries each.

    Slot s alone touches row s of `work`; all of `work.mass` and `work.residual` is zero on return,
    and for pushes `work.candidate` too. The result does not depend on the number of slots.
    """
    slots = work.mass.shape[0]
    keep = ids.shape[1]
    num_chunks = (len(roots) + _CHUNK - 1) // _CHUNK
    for slot in prange(slots):
        for chunk in range(slot, num_chunks, slots):
            for i in range(chunk * _CHUNK, min((chunk + 1) * _CHUNK, len(roots))):
                if steps < 0:
                    found = push_node_into(
                        roots[i], indptr, indices, weight, teleport, tolerance, slot, work
                    )
                else:
                    found = walk_node_into(
                        roots[i], indptr, indices, weight, teleport, steps, tolerance, slot, work
                    )
                sizes[i] = keep_top_into(
                    found, np.float32(0.0), keep, slot, work, ids[i], weights[i]
                )
                clear_into(work.candidate[slot], work.candidate_mass[slot], found)


@njit(cache=True, nogil=True)
def clear_into(candidate, candidate_mass, count):
    """Zeroes what `keep_top_into` has written to the first `count` candidates."""
    candidate[:count] = 0
    candidate_mass[:count] = 0.0


@njit(cache=True, nogil=True, parallel=True)
def copy_rows_into(first, from_ids, from_weights, from_sizes, ids, weights, sizes):
    """Copies rows over those from row `first` on."""
    for at in prange(len(from_sizes)):
        entries = from_sizes[at]
        sizes[first + at] = entries
        for j in range(entries):
            ids[first + at, j] = from_ids[at, j]
            weights[first + at, j] = from_weights[at, j]


@njit(cache=True, nogil=True, parallel=True)
def finish_rows_into(k, ids, weights, sizes):
    """Cuts every row to its k largest entries and sorts it."""
    for at in prange(len(sizes)):
        count = sizes[at]
        if count > k:
            partition_top_into(ids[at], weights[at], count, k)
            count = k
        sort_row_into(ids[at], weights[at], count)
        sizes[at] = count


@njit(cache=True, nogil=True, parallel=True)
def subtract_clusters_into(ids, weights, sizes, cluster_of_node, cluster_mass):
    """Takes every row's kept entries out of its cluster masses, (rows, P), not below 0."""
    for at in prange(len(sizes)):
        for j in range(sizes[at]):
            cluster_mass[at, cluster_of_node[ids[at, j]]] -= weights[at, j]
        for cluster in range(cluster_mass.shape[1]):
            cluster_mass[at, cluster] = max(cluster_mass[at, cluster], np.float32(0.0))


@njit(cache=True, nogil=True, parallel=True)
def sum_rows_into(weights, sizes, sums):
    """Sums every row into `sums` (float64)."""
    for at in prange(len(sizes)):
        total = 0.0
        for j in range(sizes[at]):
            total += weights[at, j]
        sums[at] = total


@njit(cache=True, nogil=True, parallel=True)
def pack_rows_into(ids, weights, sizes, row_ptr, packed_ids, packed_weights):
    """Rows with room to spare -> compressed rows with the given offsets."""
    for at in prange(len(sizes)):
        for j in range(sizes[at]):
            packed_ids[row_ptr[at] + j] = ids[at, j]
            packed_weights[row_ptr[at] + j] = weights[at, j]
