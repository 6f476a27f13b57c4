"""Rows cut again when they are read: fewer nodes to encode, the same mass in all.

Shapes: B rows, E entries, P clusters.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpn_scale.ppr.store import PPRRows, PPRStore

_ROOTS_AT_A_TIME = 1 << 14


class StrongestRows(PPRStore):
    """A store of the `top` strongest entries of every row; what it cuts is lost mass as well.

    Args:
        store: The rows as they are stored.
        top: Entries to keep of each, at least 1.
    """

    def __init__(self, store: PPRStore, top: int) -> None:
        super().__init__(store.path, dict(store.manifest))
        self.k = min(self.k, top)
        self._top = top

    def __reduce__(self) -> tuple[Callable[..., PPRStore], tuple[Any, ...]]:
        return StrongestRows, (PPRStore.open(self.path), self._top)

    @cached_property
    def missing_mass(self) -> NDArray[np.float32]:
        """What each row lost by both cuts, in the order of `roots`; (num_roots,)."""
        starts = range(0, self.num_roots, _ROOTS_AT_A_TIME)
        blocks = (self.roots[start : start + _ROOTS_AT_A_TIME] for start in starts)
        return np.concatenate(
            [np.empty(0, np.float32), *(self.rows(block).missing_mass for block in blocks)]
        )

    def rows(self, nodes: ArrayLike) -> PPRRows:
        """The rows of `nodes`, in any order and with repeats."""
        return strongest(super().rows(nodes), self._top, self.cluster_of_node)


def strongest(rows: PPRRows, top: int, cluster_of_node: NDArray[np.int32] | None) -> PPRRows:
    """The first `top` entries of each row; the others' mass is missing, in their clusters."""
    count_B = np.diff(rows.row_ptr)
    row_E = np.repeat(np.arange(len(count_B)), count_B)
    kept_E = np.arange(len(row_E)) - rows.row_ptr[row_E] < top
    if kept_E.all():
        return rows
    cut_row, cut_weight = row_E[~kept_E], rows.weights[~kept_E]
    lost_B = np.bincount(cut_row, cut_weight, minlength=len(count_B))
    cluster_mass = rows.cluster_mass
    if cluster_of_node is not None:
        place = cut_row * cluster_mass.shape[1] + cluster_of_node[rows.ids[~kept_E]]
        lost_BP = np.bincount(place, cut_weight, minlength=cluster_mass.size)
        cluster_mass = cluster_mass + lost_BP.reshape(cluster_mass.shape).astype(np.float32)
    return PPRRows(
        row_ptr=np.append(0, np.cumsum(np.minimum(count_B, top))),
        ids=rows.ids[kept_E],
        weights=rows.weights[kept_E],
        missing_mass=rows.missing_mass + lost_B.astype(np.float32),
        cluster_mass=cluster_mass,
    )
