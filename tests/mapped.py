"""Whether an array lies in a mapped file."""

import mmap

import numpy as np


def is_mapped(array: np.ndarray) -> bool:
    """Whether the memory of an array, or of what it is a view of, is a map."""
    base = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, mmap.mmap)
