"""A cache-friendly order of the nodes, in which rows and cluster masses are computed.

Neighbours get places close to each other, so that the rows which a new row is computed from are
often still in the cache. Shapes: N nodes.
"""

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import scipy.sparse
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csgraph

from gpn_scale.data.graph import NodeIds
from precompute.row_kernels import PaddedRows

Weight = TypeVar("Weight", np.float32, np.float64)
MOST_ENTRIES = 2**31 - 1
"""Larger matrices keep their order, because scipy would copy all of their arrays."""


@dataclass(frozen=True, slots=True, eq=False)
class CacheOrder:
    """The reverse Cuthill-McKee order, in which neighbours have places close to each other.

    >>> indptr, indices = np.array([0, 1, 2, 4]), np.array([2, 2, 0, 1], np.int32)  # 0 - 2 - 1
    >>> order = CacheOrder.of(indptr, indices)
    >>> order.order_N.tolist()  # the path from one end to the other
    [1, 2, 0]
    """

    order_N: NDArray[np.int32]
    """The node at each place."""
    place_N: NDArray[np.int32]
    """The place of each node."""

    @classmethod
    def of(cls, indptr: NDArray[np.int64], indices: NDArray[np.int32]) -> "CacheOrder":
        """Return the order for a matrix in CSR format."""
        order_N = _reverse_cuthill_mckee(indptr, indices)
        place_N = np.empty(len(order_N), np.int32)
        place_N[order_N] = np.arange(len(order_N), dtype=np.int32)
        return cls(order_N, place_N)

    def matrix(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        weight: NDArray[Weight],
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Weight]]:
        """Return S with rows and columns in this order; entries keep their order within a row.

        >>> order = CacheOrder(np.array([1, 0], np.int32), np.array([1, 0], np.int32))
        >>> ordered = order.matrix(np.array([0, 1, 1]), np.array([1], np.int32), np.ones(1))
        >>> ordered[0].tolist(), ordered[1].tolist()
        ([0, 0, 1], [0])
        """
        new_indptr = np.zeros(len(indptr), np.int64)
        np.cumsum(np.diff(indptr)[self.order_N], out=new_indptr[1:])
        new_indices, new_weight = np.empty_like(indices), np.empty_like(weight)
        arrays = (np.asarray(indptr), np.asarray(indices), np.asarray(weight))
        _reorder_into(self.order_N, self.place_N, *arrays, new_indptr, new_indices, new_weight)
        return new_indptr, new_indices, new_weight


@dataclass(frozen=True, slots=True, eq=False)
class SweptRows:
    """Unordered rows of all nodes, kept in the order in which they were computed.

    >>> rows = PaddedRows(np.array([[1], [0]]), np.array([[0.5], [0.25]]), np.array([1, 1]))
    >>> swept = SweptRows(rows, CacheOrder(order_N=np.array([1, 0]), place_N=np.array([1, 0])))
    >>> swept.of(np.array([0])).weights, swept.of(np.array([0])).ids  # at place 1, from place 0
    (array([[0.25]]), array([[1]]))
    """

    rows: PaddedRows
    order: CacheOrder

    def of(self, nodes: NodeIds) -> PaddedRows:
        """Return a copy of the rows of `nodes`, in their order and with the ids of nodes."""
        places = self.order.place_N[nodes]
        ids = self.order.order_N[self.rows.ids[places]]
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
    # The order of a directed graph follows its out-edges, along which rows are computed.
    order_N = csgraph.reverse_cuthill_mckee(matrix, symmetric_mode=True)
    return np.ascontiguousarray(order_N, np.int32)


@njit(cache=True, nogil=True)
def _reorder_into(
    order: NDArray[np.int32],
    place: NDArray[np.int32],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weight: NDArray[np.floating[Any]],
    new_indptr: NDArray[np.int64],
    new_indices: NDArray[np.int32],
    new_weight: NDArray[np.floating[Any]],
) -> None:
    for at in range(len(order)):
        start = indptr[order[at]]
        to = new_indptr[at]
        for i in range(new_indptr[at + 1] - to):
            new_indices[to + i] = place[indices[start + i]]
            new_weight[to + i] = weight[start + i]
