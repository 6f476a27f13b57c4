"""Compiled kernels that compute the row of one root from its edges; they never raise.

As in `row_kernels`, parallel kernels take their output as plain arrays and pass tuples on to serial
ones. No node is listed twice in `touched`, even where a product underflows to 0.
"""

import numpy as np
from numba import njit, prange

from precompute.rounding import sum_rounded_down
from precompute.row_kernels import is_absorbing, keep_top_into

_CHUNK = 16  # roots that a slot takes at a time; small, because nearby nodes differ in cost
_TOUCHED, _WAITING = 1, 2  # states of a node in a push


@njit(cache=True, nogil=True)
def push_node_into(node, indptr, indices, weight, teleport, tolerance, slot, work):
    """Push forward from one root (Andersen et al., 2006), in first-in, first-out order.

    The invariant pi_v = mass + sum_x residual_x pi_x makes `mass` a lower bound. A node is pushed
    while its residual is at least `tolerance` times its number of out-edges; loops are solved for.
    Leaves `mass` and the list of touched nodes, and `residual` zero. Returns the number of touched
    nodes. The queue is a ring in which a node waits at most once.

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
    state = work.place[slot]  # of each node: 0 until it is touched; zero between calls
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
    """Compute K diffusion steps from one root, level by level.

    A node passes its amount on if that is at least `tolerance` times its number of out-edges, as in
    `push_node_into`. `mass` is a lower bound on the root's row of t sum_{i<K} (1-t)^i S^i +
    (1-t)^K S^K. `queue` holds the nodes of the current level; `place` collects those of the next.
    Returns the number of touched nodes.

    >>> from precompute.scratch_memory import new_work
    >>> pair = np.array([0, 1, 2]), np.array([1, 0], np.int32), np.ones(2, np.float32)
    >>> work = new_work(2, 1, push=True)
    >>> walk_node_into(0, *pair, 0.75, 1, 0.0, 0, work), work.mass[0].tolist()
    (2, [0.75, 0.25])
    """
    mass, amount = work.mass[slot], work.residual[slot]
    touched, level = work.touched[slot], work.queue[slot]
    coming, following = work.value[slot], work.place[slot]
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
            start, stop = indptr[current], indptr[current + 1]
            if step == steps or value < tolerance * (stop - start):
                continue
            scale = (1.0 - teleport) * value
            for e in range(start, stop):
                reached = indices[e]
                before = coming[reached]
                after = before + scale * weight[e]
                if before == 0.0 and after > 0.0:
                    following[num_next] = reached
                    num_next += 1
                coming[reached] = after
        for i in range(num_next):
            reached = following[i]
            following[i] = 0
            level[i] = reached
            amount[reached] = coming[reached]
            coming[reached] = 0.0
        length = num_next
    return num_touched


@njit(cache=True, nogil=True)
def keep_pushed_into(num_touched, keep, slot, work, ids, weights):
    """Write the `keep` largest entries of a pushed row, and clear the slot; return their number.

    >>> from precompute.scratch_memory import new_rows, new_work
    >>> work, rows = new_work(3, 1, push=True), new_rows(1, entries=2)
    >>> work.mass[0], work.touched[0] = [0.25, 0.5, 0.125], [0, 1, 2]
    >>> keep_pushed_into(3, 2, 0, work, rows.ids[0], rows.weights[0])
    2
    >>> sorted(rows.ids[0].tolist()), bool(work.mass.any())
    ([0, 1], False)
    """
    mass, touched, value = work.mass[slot], work.touched[slot], work.value[slot]
    for i in range(num_touched):
        value[i] = mass[touched[i]]
        mass[touched[i]] = 0.0
    count = keep_top_into(num_touched, np.float32(0.0), keep, slot, work, ids, weights)
    value[:num_touched] = 0.0
    return count


@njit(cache=True, nogil=True, parallel=True)
def push_roots_into(
    roots, indptr, indices, weight, teleport, steps, tolerance, work, ids, weights, sizes
):
    """Compute rows of `roots` by push (`steps` < 0) or in K steps, cut to M entries each.

    Only slot s uses row s of `work`, in which `mass`, `residual`, `value` and `place` are zero on
    return. The result does not depend on the number of slots.

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
                sizes[i] = keep_pushed_into(count, keep, slot, work, ids[i], weights[i])
