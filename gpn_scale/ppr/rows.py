"""Rows of a diffusion: the nodes and weights that each root keeps, and the mass that was cut."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Compressed rows of B roots with E entries in total, and their cut mass by P clusters.

    The same container serves the kernels' results, the shards of a store and training batches.

    >>> rows = Rows(
    ...     row_ptr=np.array([0, 2, 3]),
    ...     ids=np.array([4, 7, 5], np.int32),
    ...     weights=np.array([0.5, 0.25, 0.75], np.float32),
    ...     missing_mass=np.array([0.25, 0.25], np.float32),
    ...     cut_mass=np.empty((2, 0), np.float32),
    ... )
    >>> rows.num_rows, rows.num_entries, rows.row_of_entry().tolist()
    (2, 3, [0, 0, 1])
    """

    row_ptr: NDArray[np.int64]
    """Offsets of the rows in `ids` and `weights`, (B + 1,)."""
    ids: NDArray[np.integer[Any]]
    """Kept nodes, by decreasing weight within a row: node ids, or positions in a support; (E,)."""
    weights: NDArray[np.float32]
    """Weights of the kept nodes, (E,)."""
    missing_mass: NDArray[np.float32]
    """Mass that the cut removed from each row, (B,)."""
    cut_mass: NDArray[np.floating[Any]]
    """Mass that the cut removed from each row, per cluster, (B, P); P is 0 without clusters."""

    @property
    def num_rows(self) -> int:
        """Number of rows B."""
        return len(self.missing_mass)

    @property
    def num_entries(self) -> int:
        """Number of entries E."""
        return len(self.ids)

    def row_of_entry(self) -> NDArray[np.int64]:
        """Return the row to which each entry belongs, (E,)."""
        return np.repeat(np.arange(self.num_rows), np.diff(self.row_ptr))

    def within(self, chosen: slice) -> "Rows":
        """Return all rows with only the entries whose ids lie in a slice; ids count from its start.

        >>> rows = Rows(
        ...     row_ptr=np.array([0, 3]),
        ...     ids=np.array([4, 7, 5]),
        ...     weights=np.array([0.5, 0.25, 0.125], np.float32),
        ...     missing_mass=np.zeros(1, np.float32),
        ...     cut_mass=np.empty((1, 0), np.float32),
        ... )
        >>> part = rows.within(slice(5, 8))
        >>> part.ids.tolist(), part.weights.tolist()
        ([2, 0], [0.25, 0.125])
        """
        inside = (self.ids >= chosen.start) & (self.ids < chosen.stop)
        before = np.concatenate([[0], np.cumsum(inside)])
        return replace(
            self,
            row_ptr=before[self.row_ptr],
            ids=self.ids[inside] - chosen.start,
            weights=self.weights[inside],
        )
