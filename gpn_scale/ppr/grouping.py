"""The order `local`: roots that share neighbours stand together, which saves encodings.

Shapes: B roots, E heavy entries of their rows, U nodes shared by several of these.
"""

import logging

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import NodeIds
from gpn_scale.data.metis import metis_partition
from gpn_scale.ppr.store import PPRStore

_HEAVY = 16  # entries of a row that count; with 24, twice the time for 1 % fewer encodings
_PARTS_PER_GROUP = 2  # groups are cut to size across parts; half as large parts lose less by it
_ROOTS_AT_A_TIME = 1 << 15  # METIS and its graph take about 2.4 kB a root

logger = logging.getLogger(__name__)


def local_ordering(root_global: NodeIds, store: PPRStore, group_size: int) -> NDArray[np.int64]:
    """Positions of the roots, so that each run of about `group_size` shares many row entries; (B,).

    METIS divides the graph that links every root to the heaviest nodes of its row, balanced by
    roots; the parts follow each other. Many roots are taken block by block, in the order of their
    clusters (if the store has any), so that memory does not grow with their number. Without
    pymetis, roots are sorted by cluster and by their heaviest shared node, and a warning is logged:
    that saves much less.
    """
    if len(root_global) <= _ROOTS_AT_A_TIME:
        return _ordered_block(root_global, store, group_size)
    clusters = store.cluster_of_node
    by_cluster = np.arange(len(root_global))
    if clusters is not None:
        by_cluster = np.argsort(clusters[root_global], kind="stable")
    blocks = np.array_split(by_cluster, -(-len(by_cluster) // _ROOTS_AT_A_TIME))
    ordered = [block[_ordered_block(root_global[block], store, group_size)] for block in blocks]
    return np.concatenate(ordered)


def _ordered_block(root_global: NodeIds, store: PPRStore, group_size: int) -> NDArray[np.int64]:
    root_E, node_E = _shared_entries(root_global, store)
    part = _metis_parts(root_E, node_E, len(root_global), group_size)
    if part is not None:
        return np.argsort(part, kind="stable")
    logger.warning(
        "pymetis is not installed: the order 'local' sorts roots by cluster and heaviest "
        "neighbour, which saves fewer encodings (pip install pymetis)"
    )
    other = node_E != root_global[root_E]
    heaviest = np.full(len(root_global), -1)
    # Rows are sorted by falling weight, and of equal targets the last assignment holds.
    heaviest[root_E[other][::-1]] = node_E[other][::-1]
    clusters = store.cluster_of_node
    cluster = np.zeros(len(root_global)) if clusters is None else clusters[root_global]
    return np.lexsort((heaviest, cluster))


def shuffled_groups(
    ordering: NDArray[np.int64], group_size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """`ordering`, cut into runs of `group_size` from a random place on, and the runs shuffled.

    The last run may be shorter; it stays last, so that the others fill batches without being cut.
    """
    turned = np.roll(ordering, rng.integers(max(len(ordering), 1)))
    full = len(turned) - len(turned) % group_size
    groups = rng.permutation(turned[:full].reshape(-1, group_size))
    return np.append(groups, turned[full:])


def _shared_entries(
    root_global: NodeIds, store: PPRStore
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Heavy entries on nodes that several rows have: position of the root, id of the node."""
    rows = store.rows(root_global)
    count = np.diff(rows.row_ptr)
    heavy = np.arange(len(rows.ids)) - np.repeat(rows.row_ptr[:-1], count) < _HEAVY
    root_E = np.repeat(np.arange(len(count)), count)[heavy]
    node_E = rows.ids[heavy]
    _, number_E, uses = np.unique(node_E, return_inverse=True, return_counts=True)
    shared = uses[number_E] > 1
    return root_E[shared], node_E[shared]


def _metis_parts(
    root_E: NDArray[np.int64], node_E: NDArray[np.int32], num_roots: int, group_size: int
) -> NDArray[np.int32] | None:
    """Part of every root, -1 for roots that share nothing; None without pymetis."""
    nodes_U, number_E = np.unique(node_E, return_inverse=True)
    source = np.append(root_E, num_roots + number_E)
    target = np.append(num_roots + number_E, root_E)
    is_root = (np.arange(num_roots + len(nodes_U)) < num_roots).astype(np.int64)
    indptr = np.append(0, np.cumsum(np.bincount(source, minlength=len(is_root))))
    indices = target[np.argsort(source, kind="stable")]
    parts = -(-_PARTS_PER_GROUP * num_roots // group_size)
    part = metis_partition(indptr, indices, max(parts, 1), node_weight=is_root)
    return None if part is None else part[:num_roots]
