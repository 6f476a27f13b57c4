"""An order of the nodes that is kind to caches, in which sweeps compute their rows.

Neighbours get places close to each other, so that the rows which one row is made of are often in
the cache already. Shapes: N nodes, E entries of S.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csgraph

from gpn_scale.data.graph import NodeIds
from precompute.row_kernels import PaddedRows

MOST_ENTRIES = 2**31 - 1
"""Larger matrices stay in their order: scipy would copy all their arrays."""
BYTES_PER_NODE, BYTES_PER_ENTRY = 16, 8
"""Memory of an `OrderedMatrix`: order, places and offsets; indices and weights in single."""


@dataclass(frozen=True, slots=True, eq=False)
class OrderedMatrix:
    """S with rows and columns in another order; entries keep their order within a row.

    >>> indptr, indices = np.array([0, 1, 2, 4]), np.array([2, 2, 0, 1], np.int32)  # 0 - 2 - 1
    >>> ordered = OrderedMatrix.of(indptr, indices, np.ones(4, np.float32))
    >>> ordered.order_N.tolist(), ordered.indices.tolist()  # a path from one end to the other
    ([1, 2, 0], [1, 2, 0, 1])
    """

    order_N: NDArray[np.int32]
    """The node at each place."""
    place_N: NDArray[np.int32]
    """The place of each node."""
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weight: NDArray[np.float32]

    @classmethod
    def of(
        cls,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        weight: NDArray[np.float32],
    ) -> "OrderedMatrix":
        """Return S in the order of Cuthill and McKee, reversed."""
        order_N = _reverse_cuthill_mckee(indptr, indices)
        num_nodes = len(order_N)
        place_N = np.empty(num_nodes, np.int32)
        place_N[order_N] = np.arange(num_nodes, dtype=np.int32)
        new_indptr = np.zeros(num_nodes + 1, np.int64)
        np.cumsum(np.diff(indptr)[order_N], out=new_indptr[1:])
        new_indices, new_weight = np.empty_like(indices), np.empty_like(weight)
        _reorder_into(
            order_N, place_N, indptr, indices, weight, new_indptr, new_indices, new_weight
        )
        return cls(order_N, place_N, new_indptr, new_indices, new_weight)


@dataclass(frozen=True, slots=True, eq=False)
class SweptRows:
    """Unordered rows of all nodes, kept in the order in which they were computed.

    >>> rows = PaddedRows(np.array([[1], [0]]), np.array([[0.5], [0.25]]), np.array([1, 1]))
    >>> swept = SweptRows(rows, order_N=np.array([1, 0]), place_N=np.array([1, 0]))
    >>> swept.of(np.array([0])).weights, swept.of(np.array([0])).ids  # at place 1, from place 0
    (array([[0.25]]), array([[1]]))
    """

    rows: PaddedRows
    order_N: NDArray[np.int32]
    place_N: NDArray[np.int32]

    def of(self, nodes: NodeIds) -> PaddedRows:
        """Return a copy of the rows of `nodes`, in their order and with the ids of nodes."""
        places = self.place_N[nodes]
        ids = self.order_N[self.rows.ids[places]]
        return PaddedRows(ids, self.rows.weights[places], self.rows.sizes[places])


def _reverse_cuthill_mckee(
    indptr: NDArray[np.int64], indices: NDArray[np.int32]
) -> NDArray[np.int32]:
    num_nodes = len(indptr) - 1
    if len(indices) > MOST_ENTRIES:
        return np.arange(num_nodes, dtype=np.int32)
    ones = np.broadcast_to(np.int8(1), len(indices))
    matrix = scipy.sparse.csr_matrix(
        (ones, indices, indptr.astype(np.int32)), shape=(num_nodes, num_nodes)
    )
    # The order of a directed graph follows its out-edges, which are what a row is made of.
    order_N: NDArray[np.int32] = csgraph.reverse_cuthill_mckee(matrix, symmetric_mode=True)
    return order_N


@njit(cache=True, nogil=True)
def _reorder_into(
    order: NDArray[np.int32],
    place: NDArray[np.int32],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weight: NDArray[np.float32],
    new_indptr: NDArray[np.int64],
    new_indices: NDArray[np.int32],
    new_weight: NDArray[np.float32],
) -> None:
    for at in range(len(order)):
        start = indptr[order[at]]
        to = new_indptr[at]
        for i in range(new_indptr[at + 1] - to):
            new_indices[to + i] = place[indices[start + i]]
            new_weight[to + i] = weight[start + i]
