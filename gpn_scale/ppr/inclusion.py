"""How likely a batch encodes a node, which turns what it encodes into estimates for all nodes."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import NodeIds
from gpn_scale.ppr.store import PPRStore
from gpn_scale.scratch import scratch_array


class Coverage:
    """Inclusion probabilities of nodes in random batches, counted from the rows of all roots.

    A batch takes some of the units (single roots, or groups of roots that stay together) at random
    and encodes what their rows hold, and some nodes drawn from the whole graph. A node that is in
    the rows of u units is in a batch of a share s of them with probability 1 - (1 - s)^u, up to
    the difference between drawing with and without replacement, or is drawn. Sums over a batch's
    nodes divided by these probabilities estimate sums over all nodes (Horvitz & Thompson, 1952).

    Args:
        units: Roots of each unit, all with rows in the store.
        store: The rows.
        drawn: Nodes that a batch draws uniformly from the whole graph.
    """

    def __init__(self, units: Iterable[NodeIds], store: PPRStore, drawn: int) -> None:
        self.drawn = min(drawn, store.num_nodes)
        self._num_nodes = store.num_nodes
        # In a file, so that memory does not grow with the graph.
        self._uses: NDArray[np.int32] = scratch_array((store.num_nodes,), None, np.int32)
        for roots in units:
            self._uses[np.union1d(store.rows(roots).ids, roots)] += 1

    @classmethod
    def of_single_roots(
        cls, root_global: NodeIds, store: PPRStore, drawn: int, *, roots_at_a_time: int = 1 << 14
    ) -> "Coverage":
        """Every root is a unit; the same as `Coverage` of them one by one, only faster."""
        coverage = cls([], store, drawn)
        for start in range(0, len(root_global), roots_at_a_time):
            roots = root_global[start : start + roots_at_a_time]
            rows = store.rows(roots)
            is_root = rows.ids == np.repeat(roots, np.diff(rows.row_ptr))
            nodes, uses = np.unique(np.append(rows.ids[~is_root], roots), return_counts=True)
            coverage._uses[nodes] += uses.astype(np.int32)
        return coverage

    def probability(self, nodes: NodeIds, share: float) -> NDArray[np.float64]:
        """That a batch with a `share` of the units encodes each of `nodes`."""
        missed_by_rows = (1.0 - share) ** self._uses[nodes]
        missed = missed_by_rows * (1.0 - self.drawn / max(self._num_nodes, 1))
        return np.asarray(1.0 - missed)
