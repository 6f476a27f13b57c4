"""Compiled kernels that select and sort the k largest entries of a row, in place and serially."""

from numba import njit


@njit(cache=True, nogil=True, inline="always")
def precedes(mass_a, id_a, mass_b, id_b):
    """Return whether entry a precedes b: by larger mass, or with equal mass by smaller id.

    >>> precedes(0.5, 7, 0.25, 2), precedes(0.5, 7, 0.5, 2)
    (True, False)
    """
    return mass_a > mass_b or (mass_a == mass_b and id_a < id_b)


@njit(cache=True, nogil=True, inline="always")
def _swap_into(ids, mass, a, b):
    mass[a], mass[b] = mass[b], mass[a]
    ids[a], ids[b] = ids[b], ids[a]


@njit(cache=True, nogil=True, inline="always")
def _order_into(ids, mass, a, b):
    if precedes(mass[b], ids[b], mass[a], ids[a]):
        _swap_into(ids, mass, a, b)


@njit(cache=True, nogil=True)
def partition_top_into(ids, mass, count, k):
    """Move the first k entries by `precedes` to the front, in any order; expected O(count).

    >>> import numpy as np
    >>> ids, mass = np.array([4, 7, 2], np.int32), np.array([0.25, 0.5, 0.125], np.float32)
    >>> partition_top_into(ids, mass, 3, 2)
    >>> sorted(ids[:2].tolist())
    [4, 7]
    """
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) >> 1
        _order_into(ids, mass, low, middle)  # the median of three becomes the pivot
        _order_into(ids, mass, low, high)
        _order_into(ids, mass, middle, high)
        pivot_mass, pivot_id = mass[middle], ids[middle]
        i, j = low, high
        while i <= j:
            while precedes(mass[i], ids[i], pivot_mass, pivot_id):
                i += 1
            while precedes(pivot_mass, pivot_id, mass[j], ids[j]):
                j -= 1
            if i <= j:
                _swap_into(ids, mass, i, j)
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            return


@njit(cache=True, nogil=True)
def sort_row_into(ids, weights, count):
    """Sort the first `count` entries by `precedes` with an in-place heap sort.

    >>> import numpy as np
    >>> ids, weights = np.array([4, 7, 2], np.int32), np.array([0.25, 0.5, 0.125], np.float32)
    >>> sort_row_into(ids, weights, 3)
    >>> ids.tolist()
    [7, 4, 2]
    """
    for start in range(count // 2 - 1, -1, -1):
        _sift_down_into(ids, weights, start, count)
    for end in range(count - 1, 0, -1):
        _swap_into(ids, weights, 0, end)
        _sift_down_into(ids, weights, 0, end)


@njit(cache=True, nogil=True)
def _sift_down_into(ids, weights, start, end):
    root = start
    while True:
        child = 2 * root + 1
        if child >= end:
            return
        right = child + 1
        if right < end and precedes(weights[child], ids[child], weights[right], ids[right]):
            child = right
        if not precedes(weights[root], ids[root], weights[child], ids[child]):
            return
        _swap_into(ids, weights, root, child)
        root = child
