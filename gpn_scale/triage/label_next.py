"""Chooses nodes to label next: a batch that reaches as much uncertainty as possible.

The label of v enters the evidence of u with the weight that v has in u's row of the diffusion. So
a batch should cover the uncertain nodes with its columns of the diffusion matrix, rather than hold
the most uncertain nodes, which may all lie in the same place (`coverage`). A node counts as covered
when a label reaches it with the weight `full`. By default this is the teleport probability, the
least weight that every node has in its own row, so that a label covers its own node.

Columns come from a PPR store with the rows of all nodes, or are computed on demand.

Shapes: N nodes, K candidates, M columns of a block.
"""

import numpy as np
import scipy.sparse
import torch
from numpy.typing import ArrayLike, NDArray

from gpn_scale.config import DiffusionConfig
from gpn_scale.data.graph import MISSING_LABEL, Graph, NodeIds
from gpn_scale.diffusion.power_iteration import exact_diffusion
from gpn_scale.errors import ConfigError, StoreError
from gpn_scale.inference.explanation import MAX_EXACT_EDGES, MAX_EXACT_NODES
from gpn_scale.ppr.store import PPRStore
from gpn_scale.triage.coverage import (
    AbstractColumns,
    Cover,
    Entries,
    ScaledColumns,
    StoredColumns,
    greedy_cover,
)

_ROWS_AT_ONCE = 1 << 17
_BLOCK_BYTES = 1 << 28
_MOST_COLUMNS = 64
_LEAST_WEIGHT = 1e-5
"""Weight below which a node does not count as reached; keeps columns of large graphs short."""


def unused_nodes(graph: Graph) -> NodeIds:
    """Return the nodes that neither training nor validation has used, in increasing order.

    >>> from gpn_scale.ppr.example import example_graph
    >>> unused_nodes(example_graph())
    array([], dtype=int64)
    """
    unused = np.ones(graph.num_nodes, bool)
    if graph.split is not None:
        unused[graph.split.train] = unused[graph.split.val] = False
    return np.flatnonzero(unused)


def label_candidates(graph: Graph) -> NodeIds:
    """Return the nodes to choose from: the unlabelled nodes, or else the test nodes.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.data.graph import Split
    >>> split = Split(train=[0, 1], val=[2], test=[3])
    >>> label_candidates(build_graph([], [], labels=[0, 1, 0, 1], split=split))
    array([3])
    >>> label_candidates(build_graph([], [], labels=[0, 1, 0, 1, -1], split=split))
    array([4])
    """
    unused = unused_nodes(graph)
    unlabelled = unused[graph.labels[unused] == MISSING_LABEL]
    return unlabelled if len(unlabelled) else unused


def check_count(count: int, candidates: int) -> None:
    """Refuse to choose more nodes than there are candidates.

    >>> check_count(2, candidates=3)

    Raises:
        ConfigError: `count` is negative or above `candidates`.
    """
    if not 0 <= count <= candidates:
        raise ConfigError(
            f"label_next is {count:,}, expected 0 to {candidates:,}, the number of nodes that "
            "could be labelled",
            arguments=("label_next",),
        )


def needs_store(graph: Graph) -> bool:
    """Return whether a graph is too large to compute whole rows and columns of the diffusion.

    >>> from gpn_scale import build_graph
    >>> needs_store(build_graph([0], [1]))
    False
    """
    return graph.num_nodes > MAX_EXACT_NODES or graph.num_edges > MAX_EXACT_EDGES


def label_next(
    graph: Graph,
    diffusion: DiffusionConfig,
    uncertainty_N: ArrayLike,
    count: int,
    *,
    store: PPRStore | None = None,
    candidates: NodeIds | None = None,
    full: float | None = None,
    factor_N: ArrayLike | None = None,
) -> Cover:
    """Return the nodes whose labels would reach most uncertainty, the first one first.

    Only the uncertainty of nodes counts that neither training nor validation has used.

    >>> from gpn_scale import build_graph
    >>> star = build_graph([0, 0, 0, 4], [1, 2, 3, 5])
    >>> label_next(star, DiffusionConfig(), np.ones(6), count=2).node
    array([0, 4])

    Args:
        graph: The graph; its training and validation nodes are never chosen.
        diffusion: The diffusion by which labels reach other nodes.
        uncertainty_N: Uncertainty of every node, at least 0.
        count: Number of nodes to choose.
        store: Rows of the graph; None to compute columns, which large graphs do not allow.
        candidates: Nodes to choose from; None for `label_candidates`.
        full: Weight that covers a node; None for the teleport probability.
        factor_N: Value of each node's label relative to its reach, in [0, 1]; None for 1.

    Raises:
        ConfigError: there are fewer candidates than `count`.
        StoreError: the graph is too large to compute columns, and no store is given.
    """
    unused = unused_nodes(graph)
    chosen_from = label_candidates(graph) if candidates is None else np.unique(candidates)
    chosen_from = np.intersect1d(chosen_from, unused)
    check_count(count, len(chosen_from))
    if count == 0:
        return Cover(np.empty(0, np.int64), np.empty(0))
    open_N = np.zeros(graph.num_nodes)
    open_N[unused] = np.asarray(uncertainty_N, np.float64)[unused]
    columns = _columns(graph, diffusion, chosen_from, store, full or diffusion.teleport)
    if factor_N is not None:
        columns = ScaledColumns(columns, np.asarray(factor_N, np.float64)[chosen_from])
    return greedy_cover(chosen_from, columns, open_N, count)


def _columns(
    graph: Graph,
    diffusion: DiffusionConfig,
    candidates: NodeIds,
    store: PPRStore | None,
    full: float,
) -> AbstractColumns:
    """Return what each candidate reaches, from stored rows or by the diffusion."""
    if store is not None:
        return stored_columns(store, candidates, full)
    if needs_store(graph):
        raise StoreError(
            f"the graph has {graph.num_nodes:,} nodes and {graph.num_edges:,} edges; above "
            f"{MAX_EXACT_NODES:,} or {MAX_EXACT_EDGES:,} a choice of nodes to label needs stored "
            "rows, and none were given",
            arguments=("store",),
        )
    return DiffusedColumns(graph, diffusion, candidates, full)


def stored_columns(store: PPRStore, candidates: NodeIds, full: float = 1.0) -> StoredColumns:
    """Return what each candidate reaches, by the stored rows of all roots; memory is theirs.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> with TemporaryDirectory() as folder:
    ...     columns = stored_columns(example_store(folder), np.array([0, 2]))
    >>> columns.ids.tolist(), columns.weights.tolist()  # 0 reaches 0 and 1; 2 reaches 2
    ([0, 1, 2], [0.5, 0.25, 0.5])

    Args:
        store: The opened store.
        candidates: Node ids in increasing order, (K,).
        full: Weight that covers a node.
    """
    place_N = np.full(store.num_nodes, -1, np.int32)
    place_N[candidates] = np.arange(len(candidates), dtype=np.int32)
    pieces = []
    for start in range(0, store.num_roots, _ROWS_AT_ONCE):
        roots = store.roots[start : start + _ROWS_AT_ONCE]
        rows = store.rows(roots)
        place_E = place_N[rows.ids]
        kept = place_E >= 0
        offsets = np.concatenate([[0], np.cumsum(kept)])[rows.row_ptr]
        weights_E = np.minimum(rows.weights[kept] / full, 1.0)
        pieces.append(
            scipy.sparse.csr_array(
                (weights_E, place_E[kept], offsets), shape=(len(roots), len(candidates))
            )
        )
    by_column = scipy.sparse.vstack(pieces, format="csr").tocsc()
    reached = store.roots[by_column.indices]
    return StoredColumns(by_column.indptr.astype(np.int64), reached, by_column.data)


class DiffusedColumns(AbstractColumns):
    """Columns of the diffusion matrix, computed in blocks on demand.

    The bounds of all candidates are one diffusion by the transposed matrix. Blocks follow the order
    of the bounds, which is nearly the order in which columns are needed. Weights below 1e-5 are
    left out.

    >>> from gpn_scale import build_graph
    >>> config = DiffusionConfig(teleport=0.5, normalisation="rw", steps=1, self_loops=False)
    >>> columns = DiffusedColumns(build_graph([0, 1], [1, 2]), config, np.array([0, 1, 2]))
    >>> columns.bounds(np.ones(3))
    array([0.75, 1.5 , 0.75])
    >>> ids, weights = columns.column(1)
    >>> ids.tolist(), weights.tolist()
    ([0, 1, 2], [0.5, 0.5, 0.5])

    Args:
        graph: The graph.
        diffusion: The diffusion.
        candidates: Node ids, (K,).
        full: Weight that covers a node.
    """

    def __init__(
        self, graph: Graph, diffusion: DiffusionConfig, candidates: NodeIds, full: float = 1.0
    ) -> None:
        self._full = full
        self._power = exact_diffusion(graph, diffusion, torch.device("cpu"), torch.float64)
        self._candidates = candidates
        self._block = int(np.clip(_BLOCK_BYTES // (24 * graph.num_nodes), 1, _MOST_COLUMNS))
        self._order = np.arange(len(candidates))
        self._rank = np.arange(len(candidates))
        self._columns: dict[int, Entries] = {}

    def bounds(self, open_N: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the gains of all candidates before any is chosen, (K,)."""
        open_N1 = torch.from_numpy(open_N).unsqueeze(1)
        reached_N1 = self._power.iterate(open_N1, self._power.transition.transposed())
        bound_K: NDArray[np.float64] = reached_N1.numpy()[self._candidates, 0] / self._full
        self._order = np.argsort(-bound_K, kind="stable")
        self._rank[self._order] = np.arange(len(bound_K))
        return bound_K

    def column(self, position: int) -> Entries:
        """Return what the candidate at `position` reaches; computes a block of columns."""
        if position not in self._columns:
            first = int(self._rank[position])
            following = self._order[first : first + self._block]
            self._compute([int(each) for each in following if int(each) not in self._columns])
        return self._columns[position]

    def _compute(self, positions: list[int]) -> None:
        nodes = torch.from_numpy(self._candidates[positions])
        indicator_NM = torch.zeros(
            self._power.transition.shape[0], len(positions), dtype=torch.float64
        )
        indicator_NM[nodes, torch.arange(len(positions))] = 1.0
        column_MN = self._power.iterate(indicator_NM, self._power.transition).numpy().T
        for position, weight_N in zip(positions, column_MN, strict=True):
            ids = np.flatnonzero(weight_N >= _LEAST_WEIGHT)
            self._columns[position] = ids, np.minimum(weight_N[ids] / self._full, 1.0)
