"""Upper bounds on the mass of full rows, from sums that are rounded and truncated.

docs/certificate.md proves them. Shapes: N nodes, R rows, P clusters.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.diffusion.transition import transition_factors
from precompute.row_engine import UNLIMITED, RowEngine

_ROUND_OFF = 2.0**-52
"""Twice the largest relative error of one float64 operation."""
_FURTHER_OPERATIONS = 16
"""Operations per sum besides the additions: products, divisions and the last subtraction."""
_SLACK = 1e-6
"""Far above the rounding errors of weights and degrees, of which the largest mass is computed."""
_WORD = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MassBounds:
    """Bounds on how far exact sums may lie above the computed ones.

    >>> bounds = MassBounds(
    ...     relative=0.0,
    ...     absolute_N=np.array([0.25, 0.0]),
    ...     largest_N=np.ones(2),
    ...     absorbing_N=np.array([False, True]),
    ...     within_reach=None,
    ... )
    >>> bounds.totals(np.array([0, 1]), np.array([0.5, 1.0]))
    array([0.75, 1.  ])
    """

    relative: float
    """Relative error of every sum."""
    absolute_N: NDArray[np.float64]
    """Additional mass that the sums of an unlimited diffusion may lack, (N,)."""
    largest_N: NDArray[np.float64]
    """Mass that no row exceeds, (N,); at most sqrt(N), so that float16 can hold it."""
    absorbing_N: NDArray[np.bool_]
    """Nodes whose row has all its mass on the node itself, (N,)."""
    within_reach: "ClustersInReach | None"
    """Clusters that the lacking mass may reach; None without clusters or without such mass."""

    def totals(self, nodes: NodeIds, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return bounds on the mass of the full rows of `nodes`, (R,), from their computed mass."""
        bound = totals * (1.0 + self.relative) + self.absolute_N[nodes]
        bound = np.minimum(bound, self.largest_N[nodes])
        return np.where(self.absorbing_N[nodes], 1.0, bound)

    def by_cluster(self, nodes: NodeIds, masses: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return bounds on the mass of full rows per cluster, (R, P), from their computed mass."""
        bound = masses.astype(np.float64)
        absorbing = self.absorbing_N[nodes]
        bound[~absorbing] *= 1.0 + self.relative
        bound[absorbing] = np.rint(bound[absorbing])  # 1 in the node's own cluster, 0 elsewhere
        if self.within_reach is not None:
            bound += self.within_reach.of(nodes) * self.absolute_N[nodes, None]
        return np.minimum(bound, self.largest_N[nodes, None])


@dataclass(frozen=True, slots=True, eq=False)
class ClustersInReach:
    """The clusters that each connected component has nodes of, as bits.

    >>> reach = ClustersInReach(np.array([0, 0, 1]), np.array([[3], [2]], np.uint64), 2)
    >>> reach.of(np.array([1, 2]))
    array([[ True,  True],
           [False,  True]])
    """

    component_N: NDArray[np.int64]
    bits: NDArray[np.uint64]
    """(components, words of 64 clusters)."""
    num_clusters: int

    def of(self, nodes: NodeIds) -> NDArray[np.bool_]:
        """Return which clusters have nodes in the components of `nodes`, (R, P)."""
        cluster = np.arange(self.num_clusters)
        packed = self.bits[self.component_N[nodes]][:, cluster // _WORD]
        return np.asarray((packed >> (cluster % _WORD).astype(np.uint64)) % np.uint64(2) == 1)


def mass_bounds(
    engine: RowEngine,
    graph: Graph,
    *,
    steps: int,
    cluster_of_node: NDArray[np.int32] | None,
) -> MassBounds:
    """Return the bounds for sums over `steps` steps of an engine's diffusion on `graph`.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.config import PPRConfig
    >>> from gpn_scale.diffusion.transition import transition_matrix
    >>> from precompute.mpi import SingleProcess
    >>> graph = build_graph([0], [1], num_nodes=3)
    >>> S = transition_matrix(graph, "sym", self_loops=True)
    >>> engine = RowEngine(S, PPRConfig(k=2), SingleProcess(), threads=1)
    >>> bounds = mass_bounds(engine, graph, steps=10, cluster_of_node=None)
    >>> bounds.absorbing_N.tolist(), bounds.relative < 1e-12
    ([False, False, True], True)
    """
    config, num_nodes = engine.config, engine.num_nodes
    most_terms = max(
        int(np.diff(engine.indptr).max(initial=0)),
        int(np.bincount(engine.indices, minlength=1).max()),
    )
    per_step = _ROUND_OFF * (most_terms + config.k + _FURTHER_OPERATIONS)
    absorbing_N = _absorbing(engine)
    largest_N = largest_row_mass(graph, engine) * (1.0 + _SLACK)
    absolute_N = np.zeros(num_nodes)
    within_reach = None
    if engine.steps == UNLIMITED:
        teleport = config.diffusion.teleport
        undistributed = (1.0 - teleport) ** steps
        absolute_N = (undistributed + per_step / teleport) * largest_N
        absolute_N[absorbing_N] = 0.0
        if cluster_of_node is not None:
            within_reach = clusters_in_reach(engine, cluster_of_node, config.clusters)
    return MassBounds(
        relative=per_step * (steps + 2),
        absolute_N=absolute_N,
        largest_N=largest_N,
        absorbing_N=absorbing_N,
        within_reach=within_reach,
    )


def largest_row_mass(graph: Graph, engine: RowEngine) -> NDArray[np.float64]:
    """Return a bound on the sum of every node's row of S^i for all i, (N,).

    Rows of `rw` sum to 1. For `sym`, S has the norm 1, so that no row sums to more than sqrt(N); of
    an undirected graph, the sum is also that of `rw` with factors sqrt(d_v / d_u).

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.config import PPRConfig
    >>> from gpn_scale.diffusion.transition import transition_matrix
    >>> from precompute.mpi import SingleProcess
    >>> graph = build_graph([0, 0, 0], [1, 2, 3])
    >>> S = transition_matrix(graph, "sym", self_loops=True)
    >>> largest_row_mass(graph, RowEngine(S, PPRConfig(k=2), SingleProcess(), threads=1))
    array([1.41421356, 1.        , 1.        , 1.        ])
    """
    diffusion = engine.config.diffusion
    if diffusion.normalisation == "rw":
        return np.ones(engine.num_nodes)
    of_norm_N = np.full(engine.num_nodes, np.sqrt(engine.num_nodes))
    if graph.directed:
        return of_norm_N
    inverse_root_N = transition_factors(graph, "sym", diffusion.self_loops).row_N
    return np.asarray(np.minimum(of_norm_N, inverse_root_N.max(initial=0.0) / inverse_root_N))


def clusters_in_reach(
    engine: RowEngine, cluster_of_node: NDArray[np.int32], num_clusters: int
) -> ClustersInReach:
    """Return the clusters that have nodes in each connected component, edges taken both ways.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.config import PPRConfig
    >>> from gpn_scale.diffusion.transition import transition_matrix
    >>> from precompute.mpi import SingleProcess
    >>> S = transition_matrix(build_graph([0, 2], [1, 3]), "sym", self_loops=True)
    >>> engine = RowEngine(S, PPRConfig(k=2), SingleProcess(), threads=1)
    >>> clusters_in_reach(engine, np.array([0, 1, 1, 1], np.int32), 2).of(np.array([0, 2]))
    array([[ True,  True],
           [False,  True]])
    """
    root_N = np.arange(engine.num_nodes)
    _join_ends_into(np.asarray(engine.indptr), np.asarray(engine.indices), root_N)
    component_N = np.unique(root_N, return_inverse=True)[1]
    width = -(-num_clusters // _WORD)
    bits = np.zeros((int(component_N.max(initial=0)) + 1, width), np.uint64)
    one = np.uint64(1) << (cluster_of_node % _WORD).astype(np.uint64)
    np.bitwise_or.at(bits, (component_N, cluster_of_node // _WORD), one)
    return ClustersInReach(component_N, bits, num_clusters)


def _absorbing(engine: RowEngine) -> NDArray[np.bool_]:
    """Return which nodes have a loop of weight 1 and no other edge."""
    alone_N: NDArray[np.bool_] = np.diff(engine.indptr) == 1
    edge = engine.indptr[:-1][alone_N]
    alone_N[alone_N] = (engine.indices[edge] == np.flatnonzero(alone_N)) & (
        engine.weight[edge] == 1.0
    )
    return alone_N


@njit(cache=True, nogil=True)
def _root_of(node: int, root_N: NDArray[np.int64]) -> int:
    """Return the root of a node's tree, and shorten the path to it."""
    while root_N[node] != node:
        root_N[node] = root_N[root_N[node]]
        node = root_N[node]
    return node


@njit(cache=True, nogil=True)
def _join_ends_into(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], root_N: NDArray[np.int64]
) -> None:
    """Make `root_N` lead from every node to the smallest node of its component."""
    for node in range(len(root_N)):
        for edge in range(indptr[node], indptr[node + 1]):
            a, b = _root_of(node, root_N), _root_of(indices[edge], root_N)
            if a < b:
                root_N[b] = a
            else:
                root_N[a] = b
    for node in range(len(root_N)):  # roots are smaller than their nodes, so they are final
        root_N[node] = root_N[root_N[node]]
