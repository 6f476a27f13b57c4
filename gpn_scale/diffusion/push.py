"""Sparse rows of the diffusion on a patched graph, pushed outwards from a few roots.

Work grows with the nodes that the rows reach, not with the graph, and what is left out is bounded.
The kernels of `precompute` push over a finished matrix S; here S changes with every patch and is
read row by row on demand (`PatchedTransition`).

Shapes: N existing nodes, M new nodes, R roots.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import NodeIds
from gpn_scale.diffusion.growth import SparseRows, csr_rows
from gpn_scale.diffusion.patched_transition import PatchedTransition
from gpn_scale.errors import ConfigError

DENSE_NODES = 1 << 10
"""Number of nodes up to which mass is always kept as a list."""
DENSE_FRACTION = 1 / 16
"""Fraction of all nodes with mass from which on it is kept as an array over all nodes, which is
faster than sorting ids. Work still grows with the nodes that are reached."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PushedRows:
    """Rows of a K-step diffusion, each weight a lower bound on the exact one.

    >>> weight = csr_rows(np.array([0.5, 0.25]), np.array([0, 2]), np.array([0, 2]), width=3)
    >>> rows = PushedRows(weight=weight, dropped=np.array([0.25]))
    >>> rows.weight.sum(axis=1) + rows.dropped  # a bound on the sum of the exact row
    array([1.])
    """

    weight: SparseRows
    """Weights, (R, N + M), columns sorted; no entry is above the exact one."""
    dropped: NDArray[np.float64]
    """Upper bound on what is missing from the sum of each row, (R,); 0 with tolerance 0."""


def push_rows(
    transition: PatchedTransition, roots: NodeIds, *, teleport: float, steps: int, tolerance: float
) -> PushedRows:
    """Return rows of t sum_{i<K} (1-t)^i S^i + (1-t)^K S^K: K steps of B <- (1-t) S B + t I.

    Mass moves level by level: of what arrives at a node, the fraction t stays and the rest moves on
    along S; after K levels, all of it stays. An amount x below `tolerance` leaves its fraction t
    and is not pushed on. An exact row then exceeds the computed one by x (1-t) S B, summed over all
    such x, which is non-negative and has a bounded sum (`PatchedTransition.largest_sum`).

    >>> from gpn_scale.data.building import build_graph
    >>> from gpn_scale.diffusion.edge_patch import grown
    >>> from gpn_scale.diffusion.growth import new_nodes
    >>> from gpn_scale.diffusion.patched_transition import GraphTransition
    >>> path = build_graph([0, 1], [1, 2], num_nodes=3)
    >>> new = new_nodes(path, np.empty((1, 0)), [[0]])
    >>> walk = PatchedTransition(GraphTransition(path, "rw", self_loops=False), grown(new))
    >>> push_rows(walk, new.ids, teleport=0.5, steps=2, tolerance=0.0).weight.toarray()
    array([[0.25 , 0.125, 0.   , 0.625]])

    Raises:
        ConfigError: the tolerance is negative or not a number.
    """
    if not tolerance >= 0.0:
        raise ConfigError(
            f"tolerance is {tolerance!r}, expected at least 0 (0 drops nothing)",
            arguments=("tolerance",),
        )
    pushes = [_Push(transition, int(root), teleport, tolerance) for root in roots]
    for push in pushes:
        push.run(steps)
    offsets = np.cumsum([0, *(len(push.nodes) for push in pushes)])
    nodes = np.concatenate([np.empty(0, np.int64), *(push.nodes for push in pushes)])
    kept = np.concatenate([np.empty(0), *(push.kept for push in pushes)])
    return PushedRows(
        weight=csr_rows(kept, nodes, offsets, transition.num_nodes),
        dropped=np.array([push.dropped for push in pushes]),
    )


class _Push:
    """The push from one root: first over lists of nodes, then over arrays of all nodes."""

    def __init__(
        self, transition: PatchedTransition, root: int, teleport: float, tolerance: float
    ) -> None:
        self.transition, self.teleport, self.tolerance = transition, teleport, tolerance
        self.nodes: NodeIds = np.array([root])
        self.kept: NDArray[np.float64] = np.zeros(1)
        """Nodes of the row, sorted, and what has stayed there; complete after `run`."""
        self.dropped = 0.0
        self._pieces: list[tuple[NodeIds, NDArray[np.float64]]] = []

    def run(self, steps: int) -> None:
        """Push mass 1 from the root for K levels."""
        nodes, mass = self.nodes, np.ones(1)
        limit = max(DENSE_NODES, int(DENSE_FRACTION * self.transition.num_nodes))
        for step in range(steps):
            if len(nodes) > limit:
                self._run_dense(nodes, mass, steps - step)
                return
            self._pieces.append((nodes, self.teleport * mass))
            large = mass >= self.tolerance
            if not large.all():
                self._drop(nodes[~large], mass[~large])
                nodes, mass = nodes[large], mass[large]
            if not len(nodes):
                break
            nodes, mass = self.transition.step(nodes, (1.0 - self.teleport) * mass)
        self._pieces.append((nodes, mass))
        every = np.concatenate([nodes for nodes, _ in self._pieces])
        self.nodes, inverse = np.unique(every, return_inverse=True)
        kept = np.bincount(inverse, np.concatenate([mass for _, mass in self._pieces]))
        self.kept = kept.astype(np.float64)

    def _run_dense(self, nodes: NodeIds, mass: NDArray[np.float64], steps: int) -> None:
        """Push on for the remaining levels."""
        kept, arrived = np.zeros((2, self.transition.num_nodes))
        for earlier, amount in self._pieces:
            kept[earlier] += amount
        arrived[nodes] = mass
        for _ in range(steps):
            kept += self.teleport * arrived
            if self.tolerance > 0.0:
                small = np.flatnonzero((arrived < self.tolerance) & (arrived > 0.0))
                self._drop(small, arrived[small])
                arrived[small] = 0.0
            if not arrived.any():
                break
            arrived *= 1.0 - self.teleport
            arrived = self.transition.step_all(arrived)
        kept += arrived
        self.nodes = np.flatnonzero(kept)
        self.kept = kept[self.nodes]

    def _drop(self, nodes: NodeIds, mass: NDArray[np.float64]) -> None:
        """Count mass that is not pushed on."""
        self.dropped += (1.0 - self.teleport) * self.transition.largest_sum(nodes, mass)
