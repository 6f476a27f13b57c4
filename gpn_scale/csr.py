"""Compressed rows: where the entries of some of them stand.

Shapes: B rows, E entries of theirs.
"""

import numpy as np
from numpy.typing import NDArray


def entries_of(
    indptr: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets of `rows` when they stand alone, (B + 1,), and positions of their entries, (E,)."""
    start_B = np.asarray(indptr[rows])
    count_B = indptr[rows + 1] - start_B
    return np.append(0, np.cumsum(count_B)), ranges(start_B, count_B)


def ranges(start_B: NDArray[np.int64], count_B: NDArray[np.int64]) -> NDArray[np.int64]:
    """`count` positions from `start` on, row after row, (E,)."""
    offset_B = np.cumsum(count_B) - count_B
    place_E: NDArray[np.int64] = np.repeat(start_B - offset_B, count_B)
    place_E += np.arange(len(place_E))
    return place_E
