"""Partition of graphs that are too large for METIS: coarsened first, refined afterwards.

Shapes: N nodes, E edge directions, C coarse nodes, P clusters.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.metis import metis_partition
from precompute.coarsening_kernels import (
    contract_into,
    join_lone_into,
    list_members_into,
    move_into,
    number_into,
    refine_into,
)

METIS_EDGES = 10_000_000
"""Largest number of edge directions that is passed to METIS, if coarsening can reach it."""

_METIS_BYTES, _METIS_SECONDS, _SECONDS = 120, 5e-7, 1e-6  # per edge: bytes fitted, seconds rough

_NODES_PER_CLUSTER = 32  # smallest number of coarse nodes, so that METIS can balance clusters
_ROUNDS = 3  # rounds of moves; five cost a third more and cut no fewer edges
_LEAST_SHRINKAGE = 0.95  # coarsening ends with a level that keeps more of the linked nodes
_LARGEST_CLUSTER = 1.3  # times the mean size; sizes may differ, and 1.1 cuts a tenth more edges


class WeightedGraph(NamedTuple):
    """A graph whose nodes and edges stand for several; both directions of every edge, no loops.

    >>> path = unweighted(np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1], np.int32))
    >>> path.num_nodes, path.num_linked, path.node_weight.tolist()
    (3, 3, [1, 1, 1])
    """

    indptr: NDArray[np.int64]
    """Row offsets, (N + 1,)."""
    indices: NDArray[np.int32]
    """Neighbours, (E,)."""
    edge_weight: NDArray[np.integer]
    """Edge weights, at least 1, (E,)."""
    node_weight: NDArray[np.int32]
    """Node weights, at least 1 for nodes with edges, (N,)."""

    @property
    def num_nodes(self) -> int:
        """Number of nodes N."""
        return len(self.indptr) - 1

    @property
    def num_linked(self) -> int:
        """Number of nodes with edges."""
        return int(np.count_nonzero(np.diff(self.indptr)))


def multilevel_partition(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], num_clusters: int
) -> NDArray[np.int32] | None:
    """Return the cluster of every node, -1 for nodes without edges; None without pymetis.

    Up to `METIS_EDGES` edge directions this is `metis_partition`. A larger graph is coarsened until
    it has no more than that, or hardly shrinks; then the clusters are refined on the graph itself,
    up to 1.3 times their mean size. Time and memory are linear in the graph (`partition_bytes`).
    The same graph gives the same clusters.

    >>> pairs = np.array([0, 1, 2, 3, 4]), np.array([1, 0, 3, 2], np.int32)
    >>> cluster = multilevel_partition(*pairs, num_clusters=2)
    >>> cluster == cluster[0]
    array([ True,  True, False, False])

    Args:
        indptr: Row offsets of the adjacency, (N + 1,).
        indices: Neighbours, both directions of every edge and no loops, (E,).
        num_clusters: Number of clusters, at least 1.
    """
    if len(indices) <= METIS_EDGES:
        return metis_partition(indptr, indices, num_clusters)
    graph = unweighted(indptr, indices)
    num_linked = graph.num_linked
    heaviest = num_linked // (_NODES_PER_CLUSTER * num_clusters)
    coarse, coarse_of_node = coarsened(graph, heaviest, METIS_EDGES)
    cluster_C = metis_partition(
        coarse.indptr,
        coarse.indices,
        num_clusters,
        node_weight=coarse.node_weight,
        edge_weight=coarse.edge_weight,
    )
    if cluster_C is None:
        return None
    # Whole components became nodes without edges.
    fill_up(cluster_C, coarse.node_weight, num_clusters)
    cluster_N = cluster_C[coarse_of_node]
    cluster_N[np.diff(indptr) == 0] = -1
    size_P = np.bincount(cluster_N[cluster_N >= 0], minlength=num_clusters)
    largest = int(np.ceil(_LARGEST_CLUSTER * num_linked / num_clusters))
    refine_into(graph.indptr, graph.indices, largest, _ROUNDS, cluster_N, size_P)
    return cluster_N


def partition_bytes(num_nodes: int, num_edges: int) -> int:
    """Return an estimate of the bytes that `multilevel_partition` needs besides the graph.

    >>> partition_bytes(num_nodes=1000, num_edges=10_000)
    1200000
    """
    metis = _METIS_BYTES * min(num_edges, METIS_EDGES)
    if num_edges <= METIS_EDGES:
        return metis
    edge = 4 + _weight_type(num_edges).itemsize
    return max(metis, 60 * num_nodes + 2 * edge * num_edges)  # two levels at a time


def partition_seconds(num_edges: int) -> float:
    """Return an estimate of the seconds that `multilevel_partition` takes, in one thread.

    >>> partition_seconds(num_edges=5_000_000)
    2.5
    """
    return (_METIS_SECONDS if num_edges <= METIS_EDGES else _SECONDS) * num_edges


def fill_up(cluster: NDArray[np.int32], weight: NDArray[np.int32], num_clusters: int) -> None:
    """Distribute nodes of cluster -1 to the smaller clusters, filling each up to the mean weight.

    >>> cluster = np.array([0, 0, -1, -1], np.int32)
    >>> fill_up(cluster, np.ones(4, np.int32), num_clusters=2)
    >>> cluster.tolist()
    [0, 0, 1, 1]
    """
    absent = cluster < 0
    weight_P = np.bincount(cluster[~absent], weight[~absent], minlength=num_clusters).astype(
        np.int64
    )
    room_P = np.maximum(-(-int(weight.sum(dtype=np.int64)) // num_clusters) - weight_P, 0)
    start = np.cumsum(weight[absent], dtype=np.int64) - weight[absent]
    filled = np.searchsorted(np.cumsum(room_P), start, side="right")
    cluster[absent] = np.minimum(filled, num_clusters - 1)  # weight 0, after a full cluster


def _weight_type(num_edges: int) -> np.dtype[np.integer]:
    """Return the integer type that can hold the weight of all edges together."""
    return np.dtype(np.int32 if num_edges <= np.iinfo(np.int32).max else np.int64)


def unweighted(indptr: NDArray[np.int64], indices: NDArray[np.int32]) -> WeightedGraph:
    """Return the graph with weights of 1, and of 0 for nodes without edges.

    >>> unweighted(np.array([0, 1, 2, 2]), np.array([1, 0], np.int32)).node_weight.tolist()
    [1, 1, 0]
    """
    one = np.ones((), _weight_type(len(indices)))
    return WeightedGraph(
        np.asarray(indptr),  # numba does not take memory maps
        np.asarray(indices),
        np.broadcast_to(one, len(indices)),  # takes no memory
        (np.diff(indptr) > 0).astype(np.int32),
    )


def coarsened(
    graph: WeightedGraph, heaviest: int, wanted_edges: int
) -> tuple[WeightedGraph, NDArray[np.int32]]:
    """Return a coarse graph, and the coarse node of every node, (N,).

    Level by level, neighbours are joined into coarse nodes of weight `heaviest` at most, until the
    graph has at most `wanted_edges` edge directions or hardly shrinks any more.

    >>> pairs = unweighted(np.array([0, 1, 2, 3, 4]), np.array([1, 0, 3, 2], np.int32))
    >>> coarse, coarse_of_node = coarsened(pairs, heaviest=2, wanted_edges=0)
    >>> coarse_of_node.tolist(), coarse.node_weight.tolist()
    ([0, 0, 1, 1], [2, 2])
    """
    coarse_of_node = np.arange(graph.num_nodes, dtype=np.int32)
    while len(graph.indices) > wanted_edges:
        before = graph.num_linked
        label = joined_neighbours(graph, heaviest)
        graph = contracted(graph, label)
        coarse_of_node = label[coarse_of_node]
        if graph.num_linked > _LEAST_SHRINKAGE * before:
            break
    return graph, coarse_of_node


def joined_neighbours(graph: WeightedGraph, heaviest: int) -> NDArray[np.int32]:
    """Return the group of every node, (N,), in the order of first nodes; isolated nodes stay alone.

    Label propagation with a bound on the weight of a group (Meyerhenke, Sanders & Schulz, 2014).
    A node joins the group with the largest w^2 / m, where w is the weight of its edges to the group
    and m the weight of the group without the node. Nodes that stay alone because all neighbouring
    groups are full join each other if they are tied to the same group, like the leaves of a hub.

    >>> pairs = unweighted(np.array([0, 1, 2, 3, 4]), np.array([1, 0, 3, 2], np.int32))
    >>> joined_neighbours(pairs, heaviest=2).tolist()
    [0, 0, 1, 1]
    """
    label = np.arange(graph.num_nodes, dtype=np.int32)
    # Each group's tie to the current node and its weight are adjacent in memory.
    tie, weight = np.zeros((graph.num_nodes, 2), graph.edge_weight.dtype).T
    weight[:] = graph.node_weight
    move_into(*graph, heaviest, _ROUNDS, label, tie, weight)
    join_lone_into(*graph, heaviest, label, tie, weight)
    number_into(label)
    return label


def contracted(graph: WeightedGraph, label: NDArray[np.int32]) -> WeightedGraph:
    """Return the graph of groups: weights add up, and edges within a group vanish.

    >>> path = unweighted(np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1], np.int32))
    >>> coarse = contracted(path, np.array([0, 0, 1], np.int32))
    >>> coarse.node_weight.tolist(), coarse.indices.tolist()
    ([2, 1], [1, 0])

    Args:
        graph: The graph of N nodes.
        label: Group of every node in [0, C), (N,); no group is empty.
    """
    first = np.append(0, np.cumsum(np.bincount(label)))
    member = np.empty(graph.num_nodes, np.int32)
    list_members_into(label, first[:-1].copy(), member)
    indptr = np.zeros(len(first), np.int64)
    indices = np.empty_like(graph.indices)  # room for all edges; unused pages take no memory
    edge_weight = np.empty(len(indices), graph.edge_weight.dtype)
    contract_into(*graph[:3], label, first, member, indptr, indices, edge_weight)
    node_weight = np.bincount(label, graph.node_weight).astype(np.int32)
    return WeightedGraph(indptr, indices[: indptr[-1]], edge_weight[: indptr[-1]], node_weight)
