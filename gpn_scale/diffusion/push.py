"""Rows of the diffusion on a patched graph, pushed outwards from their roots.

Work grows with the nodes that the rows reach, not with the graph, and what is left out is bounded.
The kernels of `precompute` push over a finished matrix S; here S changes with every patch and is
read row by row on demand (`PatchedTransition`).

Shapes: N existing nodes, M new nodes, B nodes of a row.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import NodeIds
from gpn_scale.diffusion.patched_transition import PatchedTransition
from gpn_scale.errors import ConfigError

DENSE_EDGES = 1 << 13
"""Number of edges of a level up to which its nodes are always kept as a list."""
DENSE_FRACTION = 0.25
"""Number of edges of a level, per node of the graph, from which on mass is kept as an array over
all nodes, which is faster than sorting ids. Work still grows with the nodes that are reached."""


@dataclass(frozen=True, slots=True, eq=False)
class PushedRow:
    """A row of a K-step diffusion, each weight a lower bound on the exact one.

    >>> row = PushedRow(np.array([0, 2]), np.array([0.5, 0.25]), dropped=0.25)
    >>> row.weight.sum() + row.dropped <= 1.0  # a bound on the sum of the exact row
    np.True_
    >>> row.of(np.array([1, 2])).tolist(), row.without(np.array([2]), num_nodes=3).nodes.tolist()
    ([0.0, 0.25], [0])
    """

    nodes: NodeIds | None
    """Nodes of the row, sorted, (B,); None for all nodes."""
    weight: NDArray[np.float64]
    """Weights of these nodes; no one is above the exact one."""
    dropped: float
    """Upper bound on what is missing from the sum of the row; 0 with tolerance 0."""

    def listed(self) -> tuple[NodeIds, NDArray[np.float64]]:
        """Return the nodes that have a weight, sorted, and their weights."""
        if self.nodes is not None:
            return self.nodes, self.weight
        nodes = np.flatnonzero(self.weight)
        return nodes, self.weight[nodes]

    def of(self, nodes: NodeIds) -> NDArray[np.float64]:
        """Return the weights of some nodes, 0 where the row has none."""
        if self.nodes is None:
            return self.weight[nodes]
        at = np.minimum(np.searchsorted(self.nodes, nodes), len(self.nodes) - 1)
        return np.where(self.nodes[at] == nodes, self.weight[at], 0.0)

    def without(self, nodes: NodeIds, num_nodes: int) -> "PushedRow":
        """Return the row of other nodes than these, of which the graph has `num_nodes`."""
        if self.nodes is None:
            weight = self.weight[:num_nodes].copy()
            weight[nodes[nodes < num_nodes]] = 0.0
            return PushedRow(None, weight, self.dropped)
        at = np.searchsorted(self.nodes, nodes)
        at = at[at < len(self.nodes)]
        kept = self.nodes < num_nodes
        kept[at[np.isin(self.nodes[at], nodes)]] = False
        return PushedRow(self.nodes[kept], self.weight[kept], self.dropped)

    def sum_of(self, values_N: NDArray[np.floating]) -> float:
        """Return the sum of values of all nodes, (N,), with the weights of the row."""
        return float(self.weight @ (values_N if self.nodes is None else values_N[self.nodes]))


def push_row(
    transition: PatchedTransition, root: int, *, teleport: float, steps: int, tolerance: float
) -> PushedRow:
    """Return a row of t sum_{i<K} (1-t)^i S^i + (1-t)^K S^K: K steps of X <- (1-t) S X + t I.

    Mass moves level by level: of what arrives at a node, the fraction t stays and the rest moves on
    along S; after K levels, all of it stays. An amount x below `tolerance` leaves its fraction t
    and is not pushed on. An exact row then exceeds the computed one by x (1-t) S X, summed over all
    such x, which is non-negative and has a bounded sum (`PatchedTransition.largest_sum`). Where
    most edges are used anyway, a step takes all of them and drops nothing.

    >>> from gpn_scale.data.building import build_graph
    >>> from gpn_scale.diffusion.edge_patch import grown
    >>> from gpn_scale.diffusion.growth import new_nodes
    >>> from gpn_scale.diffusion.patched_transition import GraphTransition
    >>> path = build_graph([0, 1], [1, 2], num_nodes=3)
    >>> new = new_nodes(path, np.empty((1, 0)), [[0]])
    >>> walk = PatchedTransition(GraphTransition(path, "rw", self_loops=False), grown(new))
    >>> push_row(walk, 3, teleport=0.5, steps=2, tolerance=0.0).weight
    array([0.25 , 0.125, 0.625])

    Raises:
        ConfigError: the tolerance is negative or not a number.
    """
    if not tolerance >= 0.0:
        raise ConfigError(
            f"tolerance is {tolerance!r}, expected at least 0 (0 drops nothing)",
            arguments=("tolerance",),
        )
    return _Push(transition, teleport, tolerance).row(root, steps)


class _Push:
    """A push from one root: first over lists of nodes, then over arrays of all nodes."""

    def __init__(self, transition: PatchedTransition, teleport: float, tolerance: float) -> None:
        self.transition, self.teleport, self.tolerance = transition, teleport, tolerance
        self.dropped = 0.0
        self._pieces: list[tuple[NodeIds, NDArray[np.float64]]] = []
        """Nodes where mass has stayed, and how much, for each level."""

    def row(self, root: int, steps: int) -> PushedRow:
        """Push mass 1 from the root for K levels."""
        nodes, mass = np.array([root]), np.ones(1)
        limit = max(DENSE_EDGES, int(DENSE_FRACTION * self.transition.num_nodes))
        for step in range(steps):
            self._pieces.append((nodes, self.teleport * mass))
            large = mass >= self.tolerance
            if self.transition.num_edges(nodes[large]) > limit:
                weight = self._dense_row(nodes, mass, steps - step)
                return PushedRow(None, weight, self.dropped)
            if not large.all():
                self._drop(nodes[~large], mass[~large])
                nodes, mass = nodes[large], mass[large]
            if not len(nodes):
                break
            nodes, mass = self.transition.step(nodes, (1.0 - self.teleport) * mass)
        self._pieces.append((nodes, mass))
        every = np.concatenate([nodes for nodes, _ in self._pieces])
        nodes, inverse = np.unique(every, return_inverse=True)
        kept = np.bincount(inverse, np.concatenate([mass for _, mass in self._pieces]))
        return PushedRow(nodes, kept.astype(np.float64), self.dropped)

    def _dense_row(
        self, nodes: NodeIds, mass: NDArray[np.float64], steps: int
    ) -> NDArray[np.float64]:
        """Push mass on for the remaining steps; return what stays at every node, (N + M,)."""
        kept, arrived = np.zeros((2, self.transition.num_nodes))
        for earlier, amount in self._pieces:
            kept[earlier] += amount
        arrived[nodes] = mass
        drops = self.tolerance > 0.0 and self.transition.base.matrix is None
        for remaining in range(steps, 0, -1):
            if drops:
                small = np.flatnonzero((arrived < self.tolerance) & (arrived > 0.0))
                self._drop(small, arrived[small])
                arrived[small] = 0.0
            arrived *= 1.0 - self.teleport
            arrived = self.transition.step_all(arrived)
            kept += (self.teleport if remaining > 1 else 1.0) * arrived
        return kept

    def _drop(self, nodes: NodeIds, mass: NDArray[np.float64]) -> None:
        """Count mass that is not pushed on."""
        self.dropped += (1.0 - self.teleport) * self.transition.largest_sum(nodes, mass)
