"""Compiled kernels that compare two sparse matrices row by row; columns are sorted within rows."""

import numpy as np
from numba import njit

_ROUND_OFF = 2.0**-50
"""Above the relative error of an entry of S: some operations in float64."""


@njit(cache=True, nogil=True)
def count_row_differences(indptr_a, indices_a, weight_a, indptr_b, indices_b, weight_b):
    """Return, for each row, how many entries only A has, only B has, and differ, (N, 3).

    >>> old = np.array([0, 2]), np.array([1, 2], np.int32), np.array([0.5, 0.5])
    >>> new = np.array([0, 2]), np.array([2, 3], np.int32), np.array([0.75, 0.25])
    >>> count_row_differences(*old, *new).tolist()
    [[1, 1, 1]]
    """
    counts = np.zeros((len(indptr_b) - 1, 3), np.int64)
    for row in range(len(counts)):
        a, b = indptr_a[row], indptr_b[row]
        while a < indptr_a[row + 1] or b < indptr_b[row + 1]:
            if b == indptr_b[row + 1] or (a < indptr_a[row + 1] and indices_a[a] < indices_b[b]):
                counts[row, 0] += 1
                a += 1
            elif a == indptr_a[row + 1] or indices_b[b] < indices_a[a]:
                counts[row, 1] += 1
                b += 1
            else:
                if weight_a[a] != weight_b[b]:
                    counts[row, 2] += 1
                a += 1
                b += 1
    return counts


@njit(cache=True, nogil=True)
def row_differences_into(
    indptr_a, indices_a, weight_a, indptr_b, indices_b, weight_b, indptr, column, value
):
    """Write the columns of the differing entries and bounds on their absolute differences.

    >>> old = np.array([0, 2]), np.array([1, 2], np.int32), np.array([0.5, 0.5])
    >>> new = np.array([0, 2]), np.array([2, 3], np.int32), np.array([0.75, 0.25])
    >>> column, value = np.empty(3, np.int32), np.empty(3)
    >>> row_differences_into(*old, *new, np.array([0, 3]), column, value)
    >>> column.tolist(), value.round(6).tolist()
    ([1, 2, 3], [0.5, 0.25, 0.25])
    """
    for row in range(len(indptr) - 1):
        a, b, place = indptr_a[row], indptr_b[row], indptr[row]
        while a < indptr_a[row + 1] or b < indptr_b[row + 1]:
            if b == indptr_b[row + 1] or (a < indptr_a[row + 1] and indices_a[a] < indices_b[b]):
                column[place] = indices_a[a]
                value[place] = weight_a[a] * (1.0 + _ROUND_OFF)
                a += 1
            elif a == indptr_a[row + 1] or indices_b[b] < indices_a[a]:
                column[place] = indices_b[b]
                value[place] = weight_b[b] * (1.0 + _ROUND_OFF)
                b += 1
            else:
                was, now = weight_a[a], weight_b[b]
                a += 1
                b += 1
                if was == now:
                    continue
                column[place] = indices_b[b - 1]
                value[place] = abs(was - now) + _ROUND_OFF * max(was, now)
            place += 1
