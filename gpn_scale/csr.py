"""Compressed sparse rows: the positions of the entries of selected rows.

Shapes: B selected rows, E entries of these rows.
"""

import numpy as np
from numpy.typing import NDArray


def entries_of(
    indptr: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the row offsets of the selection, (B + 1,), and the positions of its entries, (E,).

    >>> offsets, positions = entries_of(np.array([0, 2, 2, 5]), np.array([2, 0]))
    >>> offsets.tolist(), positions.tolist()
    ([0, 3, 5], [2, 3, 4, 0, 1])
    """
    start_B = np.asarray(indptr[rows])
    count_B = indptr[rows + 1] - start_B
    return np.append(0, np.cumsum(count_B)), ranges(start_B, count_B)


def ranges(start_B: NDArray[np.int64], count_B: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return `start, start + 1, ..., start + count - 1` for each row, concatenated, (E,).

    >>> ranges(np.array([10, 3]), np.array([2, 3])).tolist()
    [10, 11, 3, 4, 5]
    """
    offset_B = np.cumsum(count_B) - count_B
    place_E: NDArray[np.int64] = np.repeat(start_B - offset_B, count_B)
    place_E += np.arange(len(place_E))
    return place_E
