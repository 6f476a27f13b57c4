"""Probability that a random batch encodes a node, to estimate sums over all nodes from a batch."""

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import NodeIds
from gpn_scale.ppr.store import PPRStore
from gpn_scale.scratch import scratch_array


class Coverage:
    """Inclusion probabilities of nodes in random batches, counted from the rows of all roots.

    A batch takes a fraction s of the roots at random, encodes the nodes of their rows, and draws
    some more nodes from the whole graph. A node that occurs in the rows of u roots is in the rows
    of the batch with probability 1 - (1 - s)^u, up to the difference between drawing with and
    without replacement; otherwise it may be drawn. Sums over a batch's nodes, divided by these
    probabilities, estimate sums over all nodes (Horvitz & Thompson, 1952).

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> with TemporaryDirectory() as folder:
    ...     coverage = Coverage(np.array([0, 2]), example_store(folder), drawn=0)
    >>> coverage.probability(np.array([0, 1]), root_fraction=0.5).tolist()
    [0.5, 0.75]

    Args:
        root_global: The roots of which batches are made, each with a row in the store.
        store: The rows.
        drawn: Number of nodes that a batch draws uniformly from the whole graph.
        roots_at_a_time: Roots whose rows are in memory together.
    """

    def __init__(
        self, root_global: NodeIds, store: PPRStore, drawn: int, *, roots_at_a_time: int = 1 << 14
    ) -> None:
        self.drawn = min(drawn, store.num_nodes)
        self._num_nodes = store.num_nodes
        # Kept in a file, so that memory does not grow with the graph.
        self._uses: NDArray[np.int32] = scratch_array((store.num_nodes,), None, np.int32)
        for start in range(0, len(root_global), roots_at_a_time):
            roots = root_global[start : start + roots_at_a_time]
            rows = store.rows(roots)
            is_root = rows.ids == np.repeat(roots, np.diff(rows.row_ptr))
            nodes, uses = np.unique(np.append(rows.ids[~is_root], roots), return_counts=True)
            self._uses[nodes] += uses.astype(np.int32)

    def probability(self, nodes: NodeIds, root_fraction: float) -> NDArray[np.float64]:
        """Return the probability that a batch of this fraction of the roots encodes each node."""
        missed_by_rows = (1.0 - root_fraction) ** self._uses[nodes]
        missed = missed_by_rows * (1.0 - self.drawn / max(self._num_nodes, 1))
        return np.asarray(1.0 - missed)
