"""Random walks that end where a diffusion puts its mass; S is never stored, only looked up.

Shapes: M walks (or nodes asked for), U distinct nodes, E edges of these.
"""

import numpy as np
from numpy.typing import NDArray

from gpn_scale.config import DiffusionConfig
from gpn_scale.csr import entries_of
from gpn_scale.data.graph import Graph, NodeIds


def out_weight(graph: Graph, self_loops: bool, nodes: NodeIds) -> NDArray[np.float64]:
    """Row sums of A with the loops of `transition_matrix`, for `nodes` only; (M,)."""
    degree_M = graph.indptr[nodes + 1] - graph.indptr[nodes]
    loop_M = (degree_M == 0) | self_loops
    weight_M: NDArray[np.float64] = loop_M.astype(np.float64)
    if graph.edge_weight is None:
        return weight_M + degree_M
    edge_E = entries_of(graph.indptr, nodes)[1]
    row_E = np.repeat(np.arange(len(nodes)), degree_M)
    return weight_M + np.bincount(row_E, graph.edge_weight[edge_E], minlength=len(nodes))


class DiffusionWalks:
    """Walks of the law of B <- (1 - t) S B + t beta: E[weight; end = u] = Pi[start, u].

    A walk stops before each of K steps with probability t, and after K in any case. It steps by the
    rows of A / out-weight, which is S for `rw`, where all weights are 1. For `sym`, S_uw is that
    share times sqrt(out_u / in_w), and the product of these roots is the walk's weight: no row of
    S has to be summed up. An unweighted step costs O(1), a weighted one its node's edges.
    """

    def __init__(self, graph: Graph, diffusion: DiffusionConfig) -> None:
        self._graph, self._diffusion = graph, diffusion
        self._in_weight = None
        if graph.directed and diffusion.normalisation == "sym":
            self._in_weight = _in_weight(graph, diffusion.self_loops)

    def ends(self, start: NodeIds, rng: np.random.Generator) -> tuple[NodeIds, NDArray[np.float64]]:
        """Last node and weight of one walk from each of `start`; (M,) each."""
        at_M = start.astype(np.int64)
        weight_M = np.ones(len(start))
        length_M = rng.geometric(self._diffusion.teleport, len(start)) - 1
        if self._diffusion.steps != "inf":
            length_M = np.minimum(length_M, self._diffusion.steps)
        for step in range(length_M.max(initial=0)):
            walking = np.flatnonzero(length_M > step)
            at_M[walking] = there = self._step(at_M[walking], rng)
            if self._in_weight is not None:
                weight_M[walking] *= np.sqrt(self._out_weight(there) / self._in_weight[there])
        if self._diffusion.normalisation == "sym":
            # out_0/in_1 * out_1/in_2 * ... / in_L is this quotient times out_i/in_i on the way,
            # which is 1 unless the graph is directed.
            weight_M *= np.sqrt(self._out_weight(start) / self._out_weight(at_M))
        return at_M, weight_M

    def _out_weight(self, nodes: NodeIds) -> NDArray[np.float64]:
        return out_weight(self._graph, self._diffusion.self_loops, nodes)

    def _step(self, at_M: NodeIds, rng: np.random.Generator) -> NodeIds:
        """The node after each of `at_M`, which may be itself."""
        if self._graph.edge_weight is not None:
            return self._weighted_step(at_M, rng)
        first_M = self._graph.indptr[at_M]
        degree_M = self._graph.indptr[at_M + 1] - first_M
        loop_M = (degree_M == 0) | self._diffusion.self_loops
        choice_M = rng.integers(degree_M + loop_M)
        moves = choice_M < degree_M
        next_M = at_M.copy()
        next_M[moves] = self._graph.indices[(first_M + choice_M)[moves]]
        return next_M

    def _weighted_step(self, at_M: NodeIds, rng: np.random.Generator) -> NodeIds:
        assert self._graph.edge_weight is not None
        node_U, where_M = np.unique(at_M, return_inverse=True)
        row_ptr, edge_E = entries_of(self._graph.indptr, node_U)
        degree_U = np.diff(row_ptr)
        share_E = self._graph.edge_weight[edge_E] / np.repeat(self._out_weight(node_U), degree_U)
        # Row after row on one line: a row's loop is what its edges leave of its unit.
        reach_E = np.cumsum(share_E, dtype=np.float64)
        begin_U = np.append(0.0, reach_E)[row_ptr[:-1]]
        choice_M = np.searchsorted(reach_E, begin_U[where_M] + rng.random(len(at_M)), side="right")
        last_U = row_ptr[1:] - 1
        loop_U = (degree_U == 0) | self._diffusion.self_loops
        # Without a loop nothing is left but round-off, which is the last edge's.
        choice_M = np.where(loop_U[where_M], choice_M, np.minimum(choice_M, last_U[where_M]))
        moves = choice_M <= last_U[where_M]
        next_M = at_M.copy()
        next_M[moves] = self._graph.indices[edge_E[choice_M[moves]]]
        return next_M


def _in_weight(graph: Graph, self_loops: bool) -> NDArray[np.float64]:
    """Column sums of A with its loops, (all nodes,): a directed graph has no rows to look up."""
    weight: NDArray[np.float64] = ((graph.out_degree == 0) | self_loops).astype(np.float64)
    return weight + np.bincount(graph.indices, graph.edge_weight, minlength=graph.num_nodes)
