"""The matrix S of a graph whose edges change at a few nodes: one base, many patches.

`GraphTransition` keeps what all patches share, so that a patch costs work that grows with its
entries and not with the graph. `transition` makes all of S at once instead.

Shapes: N existing nodes, M new nodes, K nodes of a patch, B nodes, P entries of a patch.
"""

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from gpn_scale.config import Normalisation
from gpn_scale.csr import entries_of
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.diffusion.edge_patch import EdgePatch, patched_degree
from gpn_scale.diffusion.transition import row_blocks

_BLOCK_ENTRIES = 1 << 20
WHOLE_STEP_EDGES = 1 << 25
"""Number of edges above which no matrix for whole steps is kept: it takes 8 bytes per edge."""


class GraphTransition:
    """State that all patches of a graph share: node weights, and a matrix for whole steps.

    >>> from gpn_scale import build_graph
    >>> base = GraphTransition(build_graph([0, 1], [1, 2]), "rw", self_loops=False)
    >>> base.row_N
    array([1. , 0.5, 1. ])

    Args:
        graph: The graph; may be memory-mapped. Its edges are read once, if they have weights or
            directions.
        normalisation: `sym` or `rw`.
        self_loops: Whether every node also counts as its own neighbour.
    """

    def __init__(self, graph: Graph, normalisation: Normalisation, self_loops: bool) -> None:
        self.graph, self.normalisation, self.self_loops = graph, normalisation, self_loops
        self.degree_N = graph.out_degree
        self.out_weight_N = _out_weights(graph)
        """Sums of the weights of the edges that leave each node, without loops, (N,)."""
        self.in_weight_N = in_weights(graph) if graph.directed else self.out_weight_N
        """Sums of the weights of the edges into each node, without loops, (N,)."""
        self.loop_N = (self.degree_N == 0) | self_loops
        self.row_N, self.column_N = self.factors(self.out_weight_N, self.in_weight_N, self.loop_N)

    def factors(
        self,
        out_weight: NDArray[np.float64],
        in_weight: NDArray[np.float64],
        loop: NDArray[np.bool_],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the factors of rows and columns of nodes, such that S = row (A + loop) column."""
        if self.normalisation == "rw":
            return 1.0 / (out_weight + loop), np.ones(len(loop))
        row = 1.0 / np.sqrt(out_weight + loop)
        if in_weight is out_weight:
            return row, row
        total = in_weight + loop
        # A column without in-weight is empty, so its factor does not matter.
        return row, 1.0 / np.sqrt(np.where(total > 0.0, total, 1.0))

    @cached_property
    def least_weight(self) -> float:
        """Smallest weight of a node, with its loop."""
        return float((self.in_weight_N + self.loop_N).min())

    @cached_property
    def matrix(self) -> scipy.sparse.csr_array | None:
        """The transposed adjacency matrix, (N, N); None if it would take too much memory."""
        graph = self.graph
        if graph.num_edges > WHOLE_STEP_EDGES:
            return None
        weight = np.ones(graph.num_edges) if graph.edge_weight is None else graph.edge_weight
        arrays = (weight.astype(np.float64), graph.indices, graph.indptr)
        adjacency = scipy.sparse.csr_array(arrays, shape=(graph.num_nodes, graph.num_nodes))
        return adjacency.T if graph.directed else adjacency


class PatchedTransition:
    """The matrix S of a graph with a patch; its rows are read on demand.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.diffusion.edge_patch import rewired
    >>> path = build_graph([0, 1], [1, 2], num_nodes=4)
    >>> base = GraphTransition(path, "rw", self_loops=False)
    >>> patched = PatchedTransition(base, rewired(path, 1, add=[3], remove=[0]))
    >>> patched.step(np.array([0, 1]), np.array([1.0, 1.0]))  # node 0 has lost its only edge
    (array([0, 2, 3]), array([1. , 0.5, 0.5]))

    Args:
        base: The unchanged graph.
        patch: Edges that it gains and loses.
    """

    def __init__(self, base: GraphTransition, patch: EdgePatch) -> None:
        self.base, self.patch = base, patch
        self.num_existing = base.graph.num_nodes
        self.num_nodes = self.num_existing + patch.num_new
        new = np.arange(self.num_existing, self.num_nodes)
        self.nodes_K = np.unique(np.concatenate([patch.source, patch.target, new]))
        existing = self.nodes_K[self.nodes_K < self.num_existing]
        degree_K = patched_degree(base.graph, patch, self.nodes_K)
        self._loop_K = (degree_K == 0) | base.self_loops
        out_weight_K = _changed(base.out_weight_N[existing], self.nodes_K, patch.source, patch)
        out_weight_K[degree_K == 0] = 0.0  # exactly, where round-off would leave something
        in_weight_K = out_weight_K
        if base.graph.directed:
            in_weight_K = _changed(base.in_weight_N[existing], self.nodes_K, patch.target, patch)
        self._row_K, self._column_K = base.factors(out_weight_K, in_weight_K, self._loop_K)
        self._least_weight = float((in_weight_K + self._loop_K).min(initial=np.inf))

    def num_edges(self, nodes: NodeIds) -> int:
        """Return the number of edges of nodes, without those of the patch."""
        return int(self.base.degree_N[nodes[nodes < self.num_existing]].sum())

    def step(
        self, nodes: NodeIds, mass: NDArray[np.float64]
    ) -> tuple[NodeIds, NDArray[np.float64]]:
        """Return `mass @ S`: the nodes that are reached, sorted, and the mass that each gets.

        Args:
            nodes: Nodes with mass, sorted, (B,).
            mass: Their mass, (B,); none elsewhere.
        """
        scaled = mass * self._of(self.base.row_N, self._row_K, nodes)
        looped = self._of(self.base.loop_N, self._loop_K, nodes)
        existing = int(np.searchsorted(nodes, self.num_existing))
        reached, amount = self._along_edges(nodes[:existing], scaled[:existing])
        at = np.minimum(np.searchsorted(nodes, self.patch.source), len(nodes) - 1)
        active = nodes[at] == self.patch.source
        more = scaled[at[active]] * self.patch.weight[active]
        columns = np.concatenate([reached, nodes[looped], self.patch.target[active]])
        columns, inverse = np.unique(columns, return_inverse=True)
        # The patch comes last: what a lost edge takes off has been added before.
        amounts = np.concatenate([amount, scaled[looped], more])
        sums = np.bincount(inverse, amounts).astype(np.float64)
        sums *= self._of(self.base.column_N, self._column_K, columns)
        kept = sums > 0.0
        return columns[kept], sums[kept]

    def step_all(self, mass: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `mass @ S` for the mass of all nodes, (N + M,) -> (N + M,)."""
        base, existing = self.base, slice(0, self.num_existing)
        scaled = np.empty_like(mass)
        np.multiply(mass[existing], base.row_N, out=scaled[existing])
        scaled[self.nodes_K] = mass[self.nodes_K] * self._row_K
        sums = np.zeros(self.num_nodes)
        sums[existing] = self._product(scaled[existing])
        if base.self_loops:
            sums += scaled
        else:
            alone = base.loop_N.copy()
            alone[self.nodes_K[self.nodes_K < self.num_existing]] = False
            sums[existing][alone] += scaled[existing][alone]
            looped = self.nodes_K[self._loop_K]
            sums[looped] += scaled[looped]
        np.add.at(sums, self.patch.target, scaled[self.patch.source] * self.patch.weight)
        patched = np.maximum(sums[self.nodes_K], 0.0) * self._column_K
        sums[existing] *= base.column_N
        sums[self.nodes_K] = patched
        return sums

    def largest_sum(self, nodes: NodeIds, mass: NDArray[np.float64]) -> float:
        """Return a bound on the sum of `mass @ S^j` that holds for every j >= 1.

        With `rw`, S preserves sums. With `sym`, S has no singular value above 1 (Cauchy-Schwarz),
        so a sum is at most sqrt(N + M) |mass|_2. If the graph is undirected, S also preserves
        d^1/2, the square roots of the weights, so e_u S^j sums to at most (d_u / min d)^1/2.

        Args:
            nodes: Nodes with mass, sorted, (B,).
            mass: Their mass, (B,); none elsewhere.
        """
        if self.base.normalisation == "rw":
            return float(mass.sum())
        by_norm = float(np.sqrt(self.num_nodes * (mass @ mass)))
        if self.base.graph.directed:
            return by_norm
        least = min(self.base.least_weight, self._least_weight)
        root = 1.0 / self._of(self.base.column_N, self._column_K, nodes)
        return min(by_norm, float(mass @ root) / float(np.sqrt(least)))

    def _along_edges(
        self, nodes: NodeIds, scaled: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the ends of all unpatched edges of existing nodes, and what goes there."""
        graph = self.base.graph
        row_ptr, at = entries_of(graph.indptr, nodes)
        amount = np.repeat(scaled, np.diff(row_ptr))
        if graph.edge_weight is not None:
            amount *= graph.edge_weight[at]
        return graph.indices[at], amount

    def _product(self, scaled_N: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `scaled @ A` for the unpatched edges, (N,)."""
        matrix = self.base.matrix
        if matrix is not None:
            product: NDArray[np.float64] = matrix @ scaled_N
            return product
        active = np.flatnonzero(scaled_N)
        reached, amount = self._along_edges(active, scaled_N[active])
        sums = np.bincount(reached, amount, minlength=self.num_existing)
        return sums.astype(np.float64)

    def _of(
        self, base_N: NDArray[np.generic], own_K: NDArray[np.generic], nodes: NodeIds
    ) -> NDArray[Any]:
        """Return values of nodes: those of the patch where it has the node, else of the graph."""
        values = np.asarray(base_N[np.minimum(nodes, self.num_existing - 1)])
        at = np.searchsorted(nodes, self.nodes_K)
        inside = at < len(nodes)
        inside[inside] = nodes[at[inside]] == self.nodes_K[inside]
        values[at[inside]] = own_K[inside]
        return values


def in_weights(graph: Graph) -> NDArray[np.float64]:
    """Return the summed weights of the edges into every node, (N,), without loops.

    >>> from gpn_scale import build_graph
    >>> in_weights(build_graph([0, 1], [1, 2], edge_weight=[3.0, 4.0]))
    array([3., 7., 4.])
    """
    total = np.zeros(graph.num_nodes)
    for start in range(0, graph.num_edges, _BLOCK_ENTRIES):
        chunk = slice(start, start + _BLOCK_ENTRIES)
        given = 1.0 if graph.edge_weight is None else graph.edge_weight[chunk]
        np.add.at(total, graph.indices[chunk], given)
    return total


def _out_weights(graph: Graph) -> NDArray[np.float64]:
    if graph.edge_weight is None:
        return graph.out_degree.astype(np.float64)
    total = np.zeros(graph.num_nodes)
    for start, stop in row_blocks(graph.indptr, _BLOCK_ENTRIES):
        indptr = graph.indptr[start : stop + 1]
        row = np.repeat(np.arange(stop - start), np.diff(indptr))
        weight = graph.edge_weight[indptr[0] : indptr[-1]]
        total[start:stop] = np.bincount(row, weight, minlength=stop - start)
    return total


def _changed(
    weight: NDArray[np.float64], nodes_K: NodeIds, ends_P: NodeIds, patch: EdgePatch
) -> NDArray[np.float64]:
    """Return weights of the patch's nodes, of which the existing ones come first, (K,)."""
    place_P = np.searchsorted(nodes_K, ends_P)
    changed_K = np.zeros(len(nodes_K))
    changed_K[: len(weight)] = weight
    np.add.at(changed_K, place_P, patch.weight)
    return np.maximum(changed_K, 0.0)
