"""Clusters of nodes: METIS clusters, of which the most densely connected are merged."""

import logging

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from gpn_scale.csr import entries_of
from gpn_scale.data.graph import Graph
from gpn_scale.errors import ConfigError
from precompute.coarsening import fill_up, multilevel_partition

_ROWS_AT_A_TIME = 1 << 18

logger = logging.getLogger(__name__)


def partition_nodes(graph: Graph, num_clusters: int) -> NDArray[np.int32]:
    """Divide the graph into clusters that cut few edges; return the cluster of each node, (N,).

    METIS makes twice as many balanced clusters, and those with the densest ties are merged. The
    merged clusters may differ in size, which costs nothing here. Unlike balanced clusters, they do
    not have to join distant regions: on AmazonPhotos, the rank correlation of alpha_0 from
    two-level rows rose from .993 to .996. Graphs that are too large for METIS are coarsened first.
    Edge weights and directions are ignored. Isolated nodes fill up the smaller clusters, and some
    clusters may stay empty. The same graph gives the same clusters. Without pymetis, the clusters
    are blocks of consecutive nodes, and a warning is logged.

    >>> from gpn_scale import build_graph
    >>> triangles = build_graph([0, 0, 1, 3, 3, 4, 2], [1, 2, 2, 4, 5, 5, 3])  # joined by one edge
    >>> cluster = partition_nodes(triangles, num_clusters=2)
    >>> cluster == cluster[0]
    array([ True,  True,  True, False, False, False])

    Raises:
        ConfigError: `num_clusters` is below 1.
    """
    if num_clusters < 1:
        raise ConfigError(
            f"clusters is {num_clusters}, expected at least 1", arguments=("clusters",)
        )
    if num_clusters == 1 or graph.num_nodes == 0:
        return np.zeros(graph.num_nodes, np.int32)
    indptr, indices = _undirected(graph)
    cluster = multilevel_partition(indptr, indices, 2 * num_clusters)
    if cluster is None:
        logger.warning(
            "pymetis is not installed: clusters are blocks of consecutive nodes, which makes "
            "the estimate of cut mass coarser (pip install pymetis)"
        )
        nodes = np.arange(graph.num_nodes, dtype=np.int64)
        return (nodes * num_clusters // graph.num_nodes).astype(np.int32)
    # Isolated nodes get no mass from other roots, so they need no clusters of their own.
    isolated = cluster < 0
    # METIS may leave parts empty. Counted as clusters, they would be merged in place of real ones.
    cluster[~isolated] = np.unique(cluster[~isolated], return_inverse=True)[1]
    cluster[~isolated] = _merged(indptr, indices, cluster, num_clusters)[cluster[~isolated]]
    fill_up(cluster, np.broadcast_to(np.int32(1), graph.num_nodes), num_clusters)
    return cluster


def clusters_of_new_nodes(graph: Graph, cluster_of_node: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the clusters of a graph that has grown, (N,); old nodes keep their clusters.

    A new node joins the cluster of most of its neighbours; if several clusters tie, the one with
    the smallest number. Nodes that have only new neighbours join after those neighbours. Nodes
    that no old node reaches join cluster 0.

    >>> from gpn_scale import build_graph
    >>> graph = build_graph([0, 1, 3, 4], [1, 3, 4, 5], num_nodes=7)
    >>> clusters_of_new_nodes(graph, np.array([0, 1, 1], np.int32)).tolist()
    [0, 1, 1, 1, 1, 1, 0]

    Args:
        graph: The graph that has grown.
        cluster_of_node: Cluster of each of its first nodes.
    """
    cluster_N = np.full(graph.num_nodes, -1, np.int32)
    cluster_N[: len(cluster_of_node)] = cluster_of_node
    if len(cluster_of_node) == graph.num_nodes:
        return cluster_N
    indptr, indices = _undirected(graph)
    num_clusters = int(cluster_of_node.max(initial=0)) + 1
    waiting = np.arange(len(cluster_of_node), graph.num_nodes)
    while len(waiting):
        offsets, entries = entries_of(indptr, waiting)
        row = np.repeat(np.arange(len(waiting)), np.diff(offsets))
        neighbour = cluster_N[indices[entries]]
        joined = neighbour >= 0
        pair, count = np.unique(row[joined] * num_clusters + neighbour[joined], return_counts=True)
        order = np.lexsort((pair, -count))
        joining, first = np.unique(pair[order] // num_clusters, return_index=True)
        if not len(joining):
            break
        cluster_N[waiting[joining]] = pair[order][first] % num_clusters
        waiting = np.delete(waiting, joining)
    cluster_N[waiting] = 0
    return cluster_N


def _merged(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], cluster: NDArray[np.int32], wanted: int
) -> NDArray[np.int32]:
    """Merge the pairs with the densest ties; return each cluster's new number in [0, wanted).

    The tie of two clusters is the sum of 1 / sqrt(d_u d_v) over the edges between them, per pair of
    nodes.
    """
    num_found = int(cluster.max(initial=-1)) + 1
    degree = np.diff(indptr)
    root_N = 1.0 / np.sqrt(np.maximum(degree, 1))
    tie = np.zeros(num_found * num_found)
    for start in range(0, len(degree), _ROWS_AT_A_TIME):
        stop = min(start + _ROWS_AT_A_TIME, len(degree))
        row = np.repeat(np.arange(start, stop), degree[start:stop])
        column = indices[indptr[start] : indptr[stop]]
        pair = cluster[row].astype(np.int64) * num_found + cluster[column]
        tie += np.bincount(pair, root_N[row] * root_N[column], minlength=len(tie))
    tie_PP = tie.reshape(num_found, num_found)
    size = np.bincount(cluster[cluster >= 0], minlength=num_found).astype(float)
    assert (size > 0).all()
    number = np.arange(num_found)
    for _ in range(num_found - wanted):
        density_PP = tie_PP / np.maximum(np.outer(size, size), 1.0)
        np.fill_diagonal(density_PP, -1.0)
        density_PP[:, size == 0] = density_PP[size == 0] = -0.5  # merged clusters come last
        into, gone = divmod(int(density_PP.argmax()), num_found)
        tie_PP[into] += tie_PP[gone]
        tie_PP[:, into] += tie_PP[:, gone]
        tie_PP[gone] = tie_PP[:, gone] = 0.0
        size[into] += size[gone]
        size[gone] = 0.0
        number[number == gone] = into
    return np.unique(number, return_inverse=True)[1].astype(np.int32)


def _undirected(graph: Graph) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return row offsets and neighbours with both directions of every edge."""
    if not graph.directed:
        return graph.indptr, graph.indices
    shape = (graph.num_nodes, graph.num_nodes)
    ones = np.ones(graph.num_edges, np.int8)
    adjacency = scipy.sparse.csr_array((ones, graph.indices, graph.indptr), shape=shape)
    both = (adjacency + adjacency.T).tocsr()
    return both.indptr.astype(np.int64), both.indices.astype(np.int32)
