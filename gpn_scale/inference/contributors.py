"""`Contributors`: the nodes that supply most of a node's evidence.

Shapes: B nodes, M contributors of each, E entries of rows.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import NodeIds
from gpn_scale.ppr.rows import Rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contributors:
    """The nodes that supply most of each node's evidence, by decreasing share.

    >>> two = Contributors(
    ...     node=np.array([[7, 2]]),
    ...     share=np.array([[0.5, 0.25]]),
    ...     weight=np.array([[0.25, 0.5]]),
    ...     leading_class=np.array([[1, 0]]),
    ...     tail_share=np.array([0.25]),
    ... )
    >>> two.share.sum(1) + two.tail_share
    array([1.])
    """

    node: NodeIds
    """Node ids, (B, M); -1 where a row has fewer."""
    share: NDArray[np.float64]
    """Fraction of the node's aggregated evidence, including the estimated tail, (B, M)."""
    weight: NDArray[np.float64]
    """Diffusion weight of the contributor in the row, (B, M)."""
    leading_class: NDArray[np.int64]
    """Class for which the contributor's features give most evidence, (B, M); -1 if missing."""
    tail_share: NDArray[np.float64]
    """Fraction that comes from the estimate of the cut tail, not from kept neighbours; (B,)."""


def contributors_of(
    rows: Rows,
    supplied_E: NDArray[np.float64],
    total_B: NDArray[np.float64],
    leading_E: NDArray[np.int64],
    count: int,
) -> Contributors:
    """Return the `count` entries of each row that supply most evidence.

    >>> rows = Rows(
    ...     row_ptr=np.array([0, 2]),
    ...     ids=np.array([4, 7]),
    ...     weights=np.array([0.5, 0.25], np.float32),
    ...     missing_mass=np.array([0.25], np.float32),
    ...     cut_mass=np.empty((1, 0), np.float32),
    ... )
    >>> contributors_of(rows, np.array([1.0, 6.0]), np.array([8.0]), np.array([0, 1]), 1).node
    array([[7]])

    Args:
        rows: Stored rows of the nodes.
        supplied_E: Evidence that each entry supplies, over all classes.
        total_B: Evidence of each node, the estimated tail included.
        leading_E: Class for which each entry supplies most.
        count: Number M of contributors to name.
    """
    return largest_contributors(
        rows.row_ptr, rows.ids, rows.weights, supplied_E, total_B, leading_E, count
    )


def largest_contributors(
    row_ptr: NDArray[np.integer[Any]],
    ids_E: NDArray[np.integer[Any]],
    weight_E: NDArray[np.floating[Any]],
    supplied_E: NDArray[np.float64],
    total_B: NDArray[np.float64],
    leading_E: NDArray[np.int64],
    count: int,
) -> Contributors:
    """Return the `count` entries of each row that supply most evidence.

    >>> largest_contributors(
    ...     row_ptr=np.array([0, 2]),
    ...     ids_E=np.array([4, 7]),
    ...     weight_E=np.array([0.5, 0.25]),
    ...     supplied_E=np.array([1.0, 6.0]),
    ...     total_B=np.array([8.0]),
    ...     leading_E=np.array([0, 1]),
    ...     count=1,
    ... ).share
    array([[0.75]])

    Args:
        row_ptr: Offsets of the rows among the entries, (B + 1,).
        ids_E: Node of each entry.
        weight_E: Diffusion weight of each entry.
        supplied_E: Evidence that each entry supplies, over all classes.
        total_B: Evidence of each node, that of entries which are not in the row included.
        leading_E: Class for which each entry supplies most.
        count: Number M of contributors to name.
    """
    row_E = np.repeat(np.arange(len(total_B)), np.diff(row_ptr))
    order = np.lexsort((-supplied_E, row_E))
    position_E = np.arange(len(order)) - row_ptr[row_E[order]]
    first = position_E < count
    entry, place = order[first], (row_E[order][first], position_E[first])

    def table(values: NDArray[Any], empty: float) -> NDArray[Any]:
        filled = np.full((len(total_B), count), empty, values.dtype)
        filled[place] = values[entry]
        return filled

    kept_B = np.bincount(row_E, supplied_E, minlength=len(total_B))
    return Contributors(
        node=table(ids_E.astype(np.int64), -1),
        share=table(supplied_E / total_B[row_E], 0.0),
        weight=table(weight_E.astype(np.float64), 0.0),
        leading_class=table(leading_E, -1),
        tail_share=np.maximum(1.0 - kept_B / total_B, 0.0),
    )
