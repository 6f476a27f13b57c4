"""Compiled kernels of sweeps and pushes; they take and fill arrays and never raise.

N nodes, E stored transitions, M kept entries per row. Every kernel works for any non-negative S in
compressed rows. All estimates are lower bounds: see docs/certificate.md.

Parallel kernels take their output as plain arrays: inside `prange`, a write to an array that was
passed in a tuple may be lost without an error (numba 0.68). They pass tuples on to serial kernels,
where such writes are safe.

A slot of scratch memory belongs to one thread: `mass` (N,) is zero between calls, while `touched`,
`candidate` and `candidate_mass` (N,) may be overwritten. No node is listed twice in `touched`, even
where a product underflows to 0, so that no list outgrows its array.

Sums are float64. Rows are rounded down to float32, so that they stay lower bounds
(docs/certificate.md).
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from precompute.rounding import rounded_down, sum_rounded_down
from precompute.top_k_kernels import partition_top_into

_CHUNK = 16  # nodes that a slot takes at a time; small, because nearby nodes differ in cost
_TOUCHED, _WAITING = 1, 2  # states of a node in a push


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
    >>> new_work(num_nodes=5, slots=2, push=True).mass.shape
    (2, 5)
    """

    mass: NDArray[np.float64]
    """Mass on each node, (slots, N); zero between calls."""
    residual: NDArray[np.float64]
    """Mass not distributed yet, (slots, N); zero between calls, (slots, 0) for sweeps."""
    touched: NDArray[np.int32]
    """Nodes whose mass is not zero, (slots, N)."""
    queue: NDArray[np.int32]
    """Nodes that wait for a push, (slots, N); (slots, 0) for sweeps."""
    candidate: NDArray[np.int32]
    """Nodes among which the largest are selected, (slots, N)."""
    candidate_mass: NDArray[np.floating[Any]]
    """Mass of the candidates, (slots, N); float64 for pushes, which sum in it, else float32."""


@njit(cache=True, nogil=True, inline="always")
def is_absorbing(node, indptr, indices, weight):
    """Return whether a node's only edge is a loop of weight 1: its row is itself, without rounding.

    >>> alone = np.array([0, 1]), np.array([0], np.int32), np.ones(1, np.float32)
    >>> is_absorbing(0, *alone)
    True
    """
    start = indptr[node]
    return indptr[node + 1] - start == 1 and indices[start] == node and weight[start] == 1.0


@njit(cache=True, nogil=True)
def keep_top_into(num_touched, floor, keep, slot, work, ids, weights):
    """Write the `keep` largest touched entries of at least `floor`, and clear the slot's mass.

    Returns the number of written entries, in O(num_touched).

    >>> from precompute.scratch_memory import new_rows, new_work
    >>> work, rows = new_work(3, 1, push=False), new_rows(1, entries=2)
    >>> work.mass[0], work.touched[0] = [0.25, 0.5, 0.125], [0, 1, 2]
    >>> keep_top_into(3, np.float32(0.0), 2, 0, work, rows.ids[0], rows.weights[0])
    2
    >>> sorted(rows.ids[0].tolist())
    [0, 1]
    """
    mass, touched = work.mass[slot], work.touched[slot]
    candidate, candidate_mass = work.candidate[slot], work.candidate_mass[slot]
    count = 0
    for i in range(num_touched):
        node = touched[i]
        value = rounded_down(mass[node])
        mass[node] = 0.0
        if value >= floor and value > 0.0:
            candidate[count] = node
            candidate_mass[count] = value
            count += 1
    if count > keep:
        partition_top_into(candidate, candidate_mass, count, keep)
        count = keep
    for i in range(count):
        ids[i] = candidate[i]
        weights[i] = candidate_mass[i]
    return count


@njit(cache=True, nogil=True)
def add_row_into(node, factor, rows, num_touched, mass, touched):
    """Add `factor` times the row of `node` to `mass`; return the new number of touched nodes.

    >>> from precompute.scratch_memory import new_rows
    >>> rows, mass, touched = new_rows(1, entries=2), np.zeros(3), np.zeros(3, np.int32)
    >>> rows.ids[0], rows.weights[0], rows.sizes[0] = [2, 1], [0.5, 0.25], 2
    >>> add_row_into(0, 2.0, rows, 0, mass, touched), mass.tolist()
    (2, [0.0, 0.5, 1.0])
    """
    for j in range(rows.sizes[node]):
        reached = rows.ids[node, j]
        before = mass[reached]
        after = before + factor * rows.weights[node, j]
        if before == 0.0 and after > 0.0:  # after an underflow to 0, the node may be added later
            touched[num_touched] = reached
            num_touched += 1
        mass[reached] = after
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
    mass, touched = work.mass[slot], work.touched[slot]
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
    mass[node] = teleport * gain
    touched[0], num_touched = node, 1 if mass[node] > 0.0 else 0
    scale = (1.0 - teleport) * gain
    for e in range(start, stop):
        if hop or indices[e] != node:
            factor = scale * weight[e]
            num_touched = add_row_into(indices[e], factor, rows, num_touched, mass, touched)
    floor = np.float32(0.0)
    if not hop:
        smallest = np.float32(np.inf)
        for j in range(rows.sizes[node]):
            kept, former = rows.ids[node, j], rows.weights[node, j]
            if mass[kept] == 0.0 and former > 0.0:
                touched[num_touched] = kept
                num_touched += 1
            mass[kept] = max(mass[kept], np.float64(former))
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


@njit(cache=True, nogil=True)
def push_node_into(node, indptr, indices, weight, teleport, tolerance, slot, work):
    """Push forward from one root (Andersen et al., 2006), in first-in, first-out order.

    The invariant pi_v = mass + sum_x residual_x pi_x makes `mass` a lower bound. A node is pushed
    while its residual is at least `tolerance` times its number of out-edges; loops are solved for.
    Leaves `mass` and the touched nodes for `keep_top_into`, and `residual` zero. Returns the number
    of touched nodes. The queue is a ring in which a node waits at most once.

    >>> from precompute.scratch_memory import new_work
    >>> pair = np.array([0, 1, 2]), np.array([1, 0], np.int32), np.ones(2, np.float32)
    >>> work = new_work(2, 1, push=True)
    >>> push_node_into(0, *pair, 0.5, 1e-6, 0, work), work.mass[0].round(2)
    (2, array([0.67, 0.33]))
    """
    mass, residual = work.mass[slot], work.residual[slot]
    touched, queue = work.touched[slot], work.queue[slot]
    if is_absorbing(node, indptr, indices, weight):
        mass[node] = 1.0
        touched[0] = node
        return 1
    state = work.candidate[slot]  # of each node: 0 until it is touched; zero between calls
    size = len(queue)
    residual[node] = 1.0
    queue[0] = node
    state[node] = _WAITING
    head, length = 0, 1
    touched[0] = node
    num_touched = 1
    while length > 0:
        current = queue[head]
        head = head + 1 if head + 1 < size else 0
        length -= 1
        state[current] = _TOUCHED
        amount = residual[current]
        residual[current] = 0.0
        start, stop = indptr[current], indptr[current + 1]
        gain = 1.0
        for e in range(start, stop):
            if indices[e] == current:
                gain = 1.0 / (1.0 - (1.0 - teleport) * weight[e])
        mass[current] = sum_rounded_down(mass[current], teleport * gain * amount)
        scale = (1.0 - teleport) * gain * amount
        for e in range(start, stop):
            reached = indices[e]
            if reached == current:
                continue
            after = residual[reached] + scale * weight[e]
            if state[reached] == 0 and after > 0.0:
                state[reached] = _TOUCHED
                touched[num_touched] = reached
                num_touched += 1
            residual[reached] = after
            degree = indptr[reached + 1] - indptr[reached]
            if state[reached] == _TOUCHED and after >= tolerance * degree:
                state[reached] = _WAITING
                tail = head + length
                queue[tail if tail < size else tail - size] = reached
                length += 1
    for i in range(num_touched):
        residual[touched[i]] = 0.0
        state[touched[i]] = 0
    return num_touched


@njit(cache=True, nogil=True)
def walk_node_into(node, indptr, indices, weight, teleport, steps, tolerance, slot, work):
    """Compute K diffusion steps from one root, level by level; amounts below `tolerance` stop.

    `mass` is a lower bound on the root's row of t sum_{i<K} (1-t)^i S^i + (1-t)^K S^K. `queue`
    holds the nodes of the current level; `candidate` collects those of the next. Returns the number
    of touched nodes.

    >>> from precompute.scratch_memory import new_work
    >>> pair = np.array([0, 1, 2]), np.array([1, 0], np.int32), np.ones(2, np.float32)
    >>> work = new_work(2, 1, push=True)
    >>> walk_node_into(0, *pair, 0.75, 1, 0.0, 0, work), work.mass[0].tolist()
    (2, [0.75, 0.25])
    """
    mass, amount = work.mass[slot], work.residual[slot]
    touched, level = work.touched[slot], work.queue[slot]
    coming, following = work.candidate_mass[slot], work.candidate[slot]
    if is_absorbing(node, indptr, indices, weight):
        mass[node] = 1.0
        touched[0] = node
        return 1
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
            before = mass[current]
            after = before + (value if step == steps else teleport * value)
            if before == 0.0 and after > 0.0:
                touched[num_touched] = current
                num_touched += 1
            mass[current] = after
            if step == steps or value < tolerance:
                continue
            scale = (1.0 - teleport) * value
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
    """Compute rows of `roots` by push (`steps` < 0) or in K steps, cut to M entries each.

    Only slot s uses row s of `work`; `work.mass`, `work.residual` and, for pushes, `work.candidate`
    are zero on return. The result does not depend on the number of slots.

    >>> from precompute.scratch_memory import new_rows, new_work
    >>> pair = np.array([0, 1, 2]), np.array([1, 0], np.int32), np.ones(2, np.float32)
    >>> rows, work = new_rows(1, entries=2), new_work(2, 1, push=True)
    >>> push_roots_into(np.array([1]), *pair, 0.75, 1, 0.0, work, *rows)
    >>> rows.ids.tolist(), rows.weights.tolist()
    ([[1, 0]], [[0.75, 0.25]])
    """
    slots = work.mass.shape[0]
    keep = ids.shape[1]
    num_chunks = (len(roots) + _CHUNK - 1) // _CHUNK
    for slot in prange(slots):
        for chunk in range(slot, num_chunks, slots):
            for i in range(chunk * _CHUNK, min((chunk + 1) * _CHUNK, len(roots))):
                if steps < 0:
                    count = push_node_into(
                        roots[i], indptr, indices, weight, teleport, tolerance, slot, work
                    )
                else:
                    count = walk_node_into(
                        roots[i], indptr, indices, weight, teleport, steps, tolerance, slot, work
                    )
                sizes[i] = keep_top_into(
                    count, np.float32(0.0), keep, slot, work, ids[i], weights[i]
                )
                clear_into(work.candidate[slot], work.candidate_mass[slot], count)


@njit(cache=True, nogil=True)
def clear_into(candidate, candidate_mass, count):
    """Set the first `count` candidates, which `keep_top_into` has used, to zero.

    >>> candidate, candidate_mass = np.array([4, 7, 2], np.int32), np.ones(3, np.float32)
    >>> clear_into(candidate, candidate_mass, 2)
    >>> candidate.tolist(), candidate_mass.tolist()
    ([0, 0, 2], [0.0, 0.0, 1.0])
    """
    candidate[:count] = 0
    candidate_mass[:count] = 0.0
