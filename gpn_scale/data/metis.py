"""Balanced partitions of a graph that cut few edges; sole user of pymetis."""

import numpy as np
from numpy.typing import NDArray

_RNG_SEED = 1
_REFINEMENTS = 3  # the default of METIS, 10, takes up to 70 % longer for 1 % fewer cut edges


def metis_partition(
    indptr: NDArray[np.int64],
    indices: NDArray[np.integer],
    num_clusters: int,
    *,
    node_weight: NDArray[np.integer] | None = None,
    edge_weight: NDArray[np.integer] | None = None,
) -> NDArray[np.int32] | None:
    """Return the cluster of every node, (N,); None if pymetis is not installed.

    Nodes without edges get -1: the caller assigns them, so that they do not fill clusters of their
    own. Some clusters may be empty. The same graph always gives the same clusters.

    >>> from gpn_scale import build_graph
    >>> path = build_graph([0, 1, 2, 3, 4], [1, 2, 3, 4, 5])
    >>> part = metis_partition(path.indptr, path.indices, 2)
    >>> len(set(part[:3])), len(set(part[3:])), bool(part[0] != part[5])
    (1, 1, True)

    Args:
        indptr: Row offsets of the adjacency, (N + 1,).
        indices: Neighbours, both directions of every edge and no loops, (E,).
        num_clusters: Number of clusters, at least 1.
        node_weight: Weights that the clusters are balanced by, at least 0, (N,); None means 1.
        edge_weight: Cost of cutting each edge, at least 1 and symmetric, (E,); None means 1.
    """
    try:
        import pymetis
    except ImportError:
        return None
    linked = np.diff(indptr) > 0
    cluster = np.full(len(indptr) - 1, -1, np.int32)
    num_linked = np.count_nonzero(linked)
    if num_linked <= num_clusters:
        cluster[linked] = np.arange(num_linked, dtype=np.int32)
        return cluster
    offsets = np.append(0, indptr[1:][linked])
    new_id = np.cumsum(linked) - 1
    adjacency = pymetis.CSRAdjacency(offsets, new_id[indices])  # int64, so METIS does not copy
    result = pymetis.part_graph(
        num_clusters,
        adjacency,
        vweights=None if node_weight is None else node_weight[linked].astype(np.int64),
        eweights=None if edge_weight is None else edge_weight.astype(np.int64),
        options=pymetis.Options(seed=_RNG_SEED, niter=_REFINEMENTS),
    )
    cluster[linked] = result.vertex_part
    return cluster
