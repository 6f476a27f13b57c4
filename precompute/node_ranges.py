"""Ranges of nodes: the blocks of a sweep, and ranges of about equal cost for ranks."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

BLOCKS = 64
"""Number of blocks that a sweep updates one after the other; more converge a little faster."""
MIN_BLOCK = 1024
"""Smallest number of nodes in a block, if there are several."""


def sweep_blocks(num_nodes: int) -> list[tuple[int, int]]:
    """Return ranges of nodes that cover [0, N).

    They depend on N alone, because the computed rows depend on them.

    >>> sweep_blocks(3000)
    [(0, 1500), (1500, 3000)]
    """
    count = max(1, min(BLOCKS, num_nodes // MIN_BLOCK))
    cuts = np.linspace(0, num_nodes, count + 1).astype(np.int64)
    return [(int(a), int(b)) for a, b in pairwise(cuts)]


def split_by_cost(
    first: int, last: int, indptr: NDArray[np.int64], num_ranges: int
) -> list[tuple[int, int]]:
    """Return ranges of the nodes [first, last) that have about equal cost (edges plus nodes).

    >>> indptr = np.array([0, 6, 7, 8, 9])  # the first node has six edges
    >>> split_by_cost(0, 4, indptr, num_ranges=2)
    [(0, 1), (1, 4)]
    """
    nodes = np.arange(first, last + 1)
    cost = (indptr[first : last + 1] - indptr[first]) + (nodes - first)
    targets = cost[-1] * np.arange(num_ranges + 1) / num_ranges
    cuts = first + np.searchsorted(cost, targets)
    cuts[0], cuts[-1] = first, last
    return [(int(a), int(b)) for a, b in pairwise(cuts)]
