"""Sparse rows of the diffusion on a grown graph, pushed outwards from each new node.

Work grows with the nodes that the rows reach, not with the graph, and what is left out is bounded.
The kernels of `precompute` push over a finished matrix S; here S changes with every node that joins
and is read row by row on demand (`GrownTransition`).

Shapes: N existing nodes, M new nodes, R roots.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import NodeIds
from gpn_scale.diffusion.growth import GrownTransition, SparseRows, csr_rows, entries_where
from gpn_scale.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PushedRows:
    """Rows of a K-step diffusion, each weight a lower bound on the exact one.

    >>> weight = csr_rows(np.array([0.5, 0.25]), np.array([0, 2]), np.array([0, 2]), width=3)
    >>> rows = PushedRows(weight=weight, dropped=np.array([0.25]))
    >>> rows.weight.sum(axis=1) + rows.dropped  # a bound on the sum of the exact row
    array([1.])
    """

    weight: SparseRows
    """Weights, (R, N + M); no entry is above the exact one."""
    dropped: NDArray[np.float64]
    """Upper bound on what is missing from the sum of each row, (R,); 0 with tolerance 0."""


def push_rows(
    transition: GrownTransition, roots: NodeIds, *, teleport: float, steps: int, tolerance: float
) -> PushedRows:
    """Return rows of t sum_{i<K} (1-t)^i S^i + (1-t)^K S^K: K steps of B <- (1-t) S B + t I.

    Mass moves level by level: of what arrives at a node, the fraction t stays and the rest moves on
    along S; after K levels, all of it stays. An amount x below `tolerance` leaves its fraction t
    and is not pushed on. An exact row then exceeds the computed one by x (1-t) S B, summed over all
    such x, which is non-negative and has a bounded sum (`GrownTransition.largest_sum`). Memory
    grows with the number of roots times the nodes they reach, so pass many roots in blocks.

    >>> from gpn_scale.data.building import build_graph
    >>> from gpn_scale.diffusion.growth import new_nodes
    >>> path = build_graph([0, 1], [1, 2], num_nodes=3)
    >>> new = new_nodes(path, np.empty((1, 0)), [[0]])
    >>> walk = GrownTransition(path, new, "rw", self_loops=False)
    >>> push_rows(walk, new.ids, teleport=0.5, steps=2, tolerance=0.0).weight.toarray()
    array([[0.25 , 0.125, 0.   , 0.625]])

    Raises:
        ConfigError: the tolerance is negative or not a number.
    """
    if not tolerance >= 0.0:
        raise ConfigError(f"tolerance is {tolerance!r}, expected at least 0 (0 drops nothing)")
    offsets = np.arange(len(roots) + 1)
    arrived = csr_rows(np.ones(len(roots)), roots, offsets, transition.num_nodes)
    kept, dropped = 0.0 * arrived, np.zeros(len(roots))
    for _ in range(steps):
        kept = kept + teleport * arrived
        small = arrived.data < tolerance
        if small.any():
            dropped += (1.0 - teleport) * transition.largest_sum(entries_where(arrived, small))
            arrived = entries_where(arrived, ~small)
        if not arrived.nnz:
            break
        arrived = (1.0 - teleport) * transition.step(arrived)
    return PushedRows(weight=kept + arrived, dropped=dropped)
