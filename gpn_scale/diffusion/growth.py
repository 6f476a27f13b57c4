"""Nodes that join a graph after training: their edges, and the matrix S of the grown graph.

The existing graph is only read, never copied: a row of the grown S is the old row, plus a patch
where a new node is its neighbour. `push` diffuses over it. `transition` makes all of S at once,
which would cost a pass over the whole graph for every node that joins.

Shapes: N existing nodes, M new nodes, F feature columns, R roots.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from gpn_scale.config import Normalisation
from gpn_scale.csr import entries_of
from gpn_scale.data.building import build_graph, check_features
from gpn_scale.data.graph import (
    MISSING_LABEL,
    CSRFeatures,
    Features,
    Graph,
    NodeIds,
    as_array,
    as_node_ids,
)
from gpn_scale.errors import GraphError

_EDGE_CHUNK = 1 << 24

SparseRows = Any
"""A `scipy.sparse.csr_array`; scipy ships no types."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewNodes:
    """M nodes with features and edges, made by `new_nodes`; new node j has the id N + j.

    >>> path = build_graph([0, 1], [1, 2], features=[[0.0], [1.0], [2.0]])
    >>> new = new_nodes(path, features=[[0.5]], neighbours=[[0, 2]])
    >>> new.ids, new.changed
    (array([3]), array([0, 2, 3]))
    """

    num_existing: int
    """Number N of existing nodes."""
    features: Features
    """Feature rows of the new nodes, (M, F); dense or sparse like those of the graph."""
    changed: NodeIds
    """Ids of the new nodes and of their existing neighbours, sorted."""
    patch: Graph
    """The new edges alone, merged, as a graph over the nodes of `changed`."""

    @property
    def num_new(self) -> int:
        """Number M of new nodes."""
        return int(self.features.shape[0])

    @property
    def ids(self) -> NodeIds:
        """Ids of the new nodes, N to N + M - 1."""
        return np.arange(self.num_existing, self.num_existing + self.num_new)


def new_nodes(
    graph: Graph,
    features: ArrayLike | CSRFeatures,
    neighbours: Sequence[ArrayLike],
    edge_weights: Sequence[ArrayLike] | None = None,
) -> NewNodes:
    """Return checked nodes that join `graph`, with their edges to existing nodes and to each other.

    Edges merge as in `build_graph`: self-loops are dropped; repeated edges collapse, or add up when
    weighted. In an undirected graph an edge gets both directions; if both are listed, the larger
    weight counts. In a directed graph new nodes point to their neighbours, and existing nodes never
    point to new ones.

    >>> triangle = build_graph([0, 1, 2], [1, 2, 0], features=[[0.0], [1.0], [2.0]])
    >>> new = new_nodes(triangle, [[0.5], [1.5]], [[0, 2], [3]])  # the second joins the first
    >>> grown_graph(triangle, new)
    Graph('graph', nodes=5, edges=12, features=1, classes=0)

    Args:
        graph: The graph of the N existing nodes.
        features: Finite numbers, (M, F), or sparse rows.
        neighbours: Node ids per new node; N + j is the j-th new node.
        edge_weights: A positive weight per neighbour, for graphs with weights; by default 1.

    Raises:
        GraphError: lengths differ, an id is unknown, or a feature or weight is not valid.
    """
    checked = _check_features(graph, features, len(neighbours))
    num_existing, num_nodes = graph.num_nodes, graph.num_nodes + len(neighbours)
    targets = [_check_neighbours(ids, j, num_nodes) for j, ids in enumerate(neighbours)]
    counts = [len(ids) for ids in targets]
    source = np.repeat(np.arange(num_existing, num_nodes), counts)
    target = np.concatenate([np.empty(0, np.int64), *targets])
    changed = np.union1d(target[target < num_existing], np.arange(num_existing, num_nodes))
    patch = build_graph(
        np.searchsorted(changed, source),
        np.searchsorted(changed, target),
        name=f"new nodes of {graph.name}",
        num_nodes=max(len(changed), 1),  # a graph has at least one node
        edge_weight=_check_weights(graph, edge_weights, counts),
        directed=graph.directed,
    )
    return NewNodes(num_existing=num_existing, features=checked, changed=changed, patch=patch)


def grown_graph(graph: Graph, new: NewNodes) -> Graph:
    """Return the graph rebuilt with the new nodes: a copy of everything, by `build_graph`.

    New nodes have no label and, where existing nodes have names, are called `new 0`, `new 1`, ...
    Raw columns are dropped, since new nodes have features only.

    >>> path = build_graph([0, 1], [1, 2], features=[[0.0], [1.0], [2.0]])
    >>> grown_graph(path, new_nodes(path, [[0.5]], [[0, 2]])).out_degree
    array([2, 2, 2, 2])
    """
    _check_belongs(graph, new)
    source, target, weight = _edges(graph, np.arange(graph.num_nodes))
    more_source, more_target, more_weight = _edges(new.patch, np.arange(len(new.changed)))
    structure = build_graph(
        np.concatenate([source, new.changed[more_source]]),
        np.concatenate([target, new.changed[more_target]]),
        name=graph.name,
        num_nodes=graph.num_nodes + new.num_new,
        edge_weight=None if graph.edge_weight is None else np.append(weight, more_weight),
        directed=graph.directed,
    )
    names = np.array([f"new {j}" for j in range(new.num_new)], np.str_)
    return replace(
        graph,
        indptr=structure.indptr,
        indices=structure.indices,
        edge_weight=structure.edge_weight,
        features=None if graph.features is None else _stacked(graph.features, new.features),
        labels=np.append(graph.labels, np.full(new.num_new, MISSING_LABEL, np.int32)),
        node_names=None if graph.node_names is None else np.append(graph.node_names, names),
        raw_columns=None,
    )


def in_weights(graph: Graph) -> NDArray[np.float64]:
    """Return the summed weights of the edges into every node, (N,), without loops.

    Takes one pass over the edges, in chunks.

    >>> in_weights(build_graph([0, 1], [1, 2], edge_weight=[3.0, 4.0]))
    array([3., 7., 4.])
    """
    if graph.edge_weight is None and not graph.directed:
        return graph.out_degree.astype(np.float64)
    weight = np.zeros(graph.num_nodes)
    for start in range(0, graph.num_edges, _EDGE_CHUNK):
        chunk = slice(start, start + _EDGE_CHUNK)
        given = None if graph.edge_weight is None else graph.edge_weight[chunk]
        weight += np.bincount(graph.indices[chunk], given, minlength=graph.num_nodes)
    return weight


def csr_rows(
    values: NDArray[Any], columns: NDArray[Any], offsets: NDArray[Any], width: int
) -> SparseRows:
    """Return sparse rows of `width` columns from their three arrays, which are not copied.

    >>> csr_rows(np.array([5, 6]), np.array([1, 0]), np.array([0, 1, 2]), width=3).toarray()
    array([[0, 5, 0],
           [6, 0, 0]])
    """
    return scipy.sparse.csr_array((values, columns, offsets), shape=(len(offsets) - 1, width))


def entries_where(rows: SparseRows, mask: NDArray[np.bool_]) -> SparseRows:
    """Return the entries where `mask` holds; the others are no longer stored.

    >>> rows = csr_rows(np.array([5, 6]), np.array([1, 0]), np.array([0, 1, 2]), width=3)
    >>> entries_where(rows, rows.data > 5).toarray()
    array([[0, 0, 0],
           [6, 0, 0]])
    """
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(mask)])[rows.indptr]
    offsets = offsets.astype(rows.indptr.dtype, copy=False)
    return csr_rows(rows.data[mask], rows.indices[mask], offsets, rows.shape[1])


class GrownTransition:
    """The matrix S of the grown graph, row by row on demand.

    It equals `transition_matrix(grown_graph(graph, new), ...)`.

    >>> path = build_graph([0, 1], [1, 2], features=[[0.0], [1.0], [2.0]])
    >>> new = new_nodes(path, [[0.5]], [[0]])
    >>> GrownTransition(path, new, "rw", self_loops=False).rows(np.array([0, 3])).toarray()
    array([[0. , 0.5, 0. , 0.5],
           [1. , 0. , 0. , 0. ]])

    Args:
        graph: The graph of the existing nodes; may be memory-mapped.
        new: Nodes that join it.
        normalisation: `sym` or `rw`.
        self_loops: Whether every node also counts as its own neighbour.
        weights: `in_weights(graph)`, if the caller has it; used by `sym` only.
    """

    def __init__(
        self,
        graph: Graph,
        new: NewNodes,
        normalisation: Normalisation,
        self_loops: bool,
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        _check_belongs(graph, new)
        self.graph, self.patch = graph, new.patch
        self.num_nodes = graph.num_nodes + new.num_new
        self.self_loops = self_loops
        self._changed = new.changed
        self.normalisation = normalisation
        if normalisation == "sym":
            self._in_weights = in_weights(graph) if weights is None else weights
            self._patch_weights = in_weights(new.patch)

    def rows(self, nodes: NodeIds) -> SparseRows:
        """Return rows of S, (len(nodes), N + M), in float64; reads no other node's edges."""
        existing = np.flatnonzero(nodes < self.graph.num_nodes)
        row_existing, id_existing, weight_existing = _edges(self.graph, nodes[existing])
        patched, place = self._patched(nodes)
        row_patch, id_patch, weight_patch = _edges(self.patch, place)
        looped = np.flatnonzero(self._has_loop(nodes))
        row = np.concatenate([existing[row_existing], patched[row_patch], looped])
        column = np.concatenate([id_existing, self._changed[id_patch], nodes[looped]])
        weight = np.concatenate([weight_existing, weight_patch, np.ones(len(looped))])
        out_weight = np.bincount(row, weight, minlength=len(nodes))
        if self.normalisation == "rw":
            weight /= out_weight[row]
        else:
            weight /= np.sqrt(out_weight[row] * self._in_weight(column))
        shape = (len(nodes), self.num_nodes)
        return scipy.sparse.coo_array((weight, (row, column)), shape=shape).tocsr()

    def step(self, rows: SparseRows) -> SparseRows:
        """Return `rows @ S`; reads only the rows of S that take part."""
        active, middle = np.unique(rows.indices, return_inverse=True)
        matrix = self.rows(active)
        # Only local columns: scipy's product takes scratch memory for every column there is.
        reached, inner = np.unique(matrix.indices, return_inverse=True)
        left = csr_rows(rows.data, middle, rows.indptr, len(active))
        product = left @ csr_rows(matrix.data, inner, matrix.indptr, len(reached))
        product.sort_indices()
        return csr_rows(product.data, reached[product.indices], product.indptr, self.num_nodes)

    def largest_sum(self, rows: SparseRows) -> NDArray[np.float64]:
        """Return a bound on the row sums of `rows @ S^j` that holds for every j >= 1; (R,).

        With `rw`, S preserves sums. With `sym`, S has no singular value above 1 (Cauchy-Schwarz),
        so a sum is at most sqrt(N + M) |row|_2. If the graph is undirected, S also preserves d^1/2,
        the square roots of the weights, so e_u S^j sums to at most (d_u / min d)^1/2.
        """
        if self.normalisation == "rw":
            return _row_sums(rows, rows.data)
        by_norm = np.sqrt(self.num_nodes * _row_sums(rows, rows.data**2))
        if self.graph.directed:
            return by_norm
        ratio = np.sqrt(self._in_weight(rows.indices) / self._least_weight)
        return np.minimum(by_norm, _row_sums(rows, rows.data * ratio))

    def _patched(self, nodes: NodeIds) -> tuple[NodeIds, NodeIds]:
        """Return the positions in `nodes` that have new edges, and their ids in the patch."""
        if not len(self._changed):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        place = np.minimum(np.searchsorted(self._changed, nodes), len(self._changed) - 1)
        patched = np.flatnonzero(self._changed[place] == nodes)
        return patched, place[patched]

    def _has_loop(self, nodes: NodeIds) -> NDArray[np.bool_]:
        loop = np.ones(len(nodes), bool)
        if not self.self_loops:
            existing = np.flatnonzero(nodes < self.graph.num_nodes)
            loop[existing] = (
                self.graph.indptr[nodes[existing]] == self.graph.indptr[nodes[existing] + 1]
            )
            patched, place = self._patched(nodes)
            loop[patched] &= self.patch.out_degree[place] == 0
        return loop

    def _in_weight(self, nodes: NodeIds) -> NDArray[np.float64]:
        """Return the in-weights of `nodes` in the grown graph, with loops."""
        total = self._has_loop(nodes).astype(np.float64)
        existing = np.flatnonzero(nodes < self.graph.num_nodes)
        total[existing] += self._in_weights[nodes[existing]]
        patched, place = self._patched(nodes)
        total[patched] += self._patch_weights[place]
        return total

    @cached_property
    def _least_weight(self) -> float:
        """Lower bound on all weights d of an undirected grown graph, with loops."""
        weights = self._in_weights
        # A node without edges has a loop of 1 in any case.
        least = (
            1.0 + weights.min() if self.self_loops else weights.min(where=weights > 0, initial=1.0)
        )
        return float(self._in_weight(self._changed).min(initial=least))


def _edges(graph: Graph, nodes: NodeIds) -> tuple[NodeIds, NodeIds, NDArray[np.float64]]:
    """Return the edges of `nodes`: position in `nodes`, neighbour, weight."""
    row_ptr, at = entries_of(graph.indptr, nodes)
    row = np.repeat(np.arange(len(nodes)), np.diff(row_ptr))
    weight = np.ones(len(at)) if graph.edge_weight is None else graph.edge_weight[at]
    return row, graph.indices[at].astype(np.int64), weight.astype(np.float64)


def _row_sums(rows: SparseRows, values: NDArray[np.float64]) -> NDArray[np.float64]:
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    return np.bincount(row, values, minlength=rows.shape[0]).astype(np.float64)


def _check_belongs(graph: Graph, new: NewNodes) -> None:
    if new.num_existing != graph.num_nodes:
        raise GraphError(
            f"graph {graph.name!r} has {graph.num_nodes} nodes, but the new nodes were made for "
            f"one of {new.num_existing}: make them with new_nodes(graph, ...)"
        )


def _check_features(graph: Graph, features: ArrayLike | CSRFeatures, count: int) -> Features:
    """Return feature rows of the graph's own kind, one per new node."""
    if not isinstance(features, CSRFeatures) and count == 0 and np.size(features) == 0:
        features = np.empty((0, graph.num_features), np.float16)  # without nodes, [] is accepted
    checked = check_features(features, f"new nodes of {graph.name}")
    expected = (count, graph.num_features)
    if checked.shape != expected:
        raise GraphError(
            f"new nodes: features have shape {checked.shape}, expected {expected}: give one row "
            "per list of neighbours, with the feature columns of the graph"
        )
    if isinstance(graph.features, CSRFeatures) and not isinstance(checked, CSRFeatures):
        row, column = np.nonzero(checked)
        return CSRFeatures(
            indptr=np.searchsorted(row, np.arange(count + 1)),
            indices=column.astype(np.int32),
            values=checked[row, column].astype(np.float32),
            num_columns=graph.num_features,
        )
    if isinstance(checked, CSRFeatures) and not isinstance(graph.features, CSRFeatures):
        return checked.to_dense()
    return checked


def _check_neighbours(ids: ArrayLike, new: int, num_nodes: int) -> NodeIds:
    array = as_node_ids(ids, f"new node {new}: neighbours")
    if len(array) and not (array.min() >= 0 and array.max() < num_nodes):
        wrong = array.min() if array.min() < 0 else array.max()
        raise GraphError(
            f"new node {new}: neighbour {wrong} does not exist, expected ids in [0, {num_nodes}): "
            "existing nodes come first, then the new ones in their order"
        )
    return array.astype(np.int64)


def _check_weights(
    graph: Graph, weights: Sequence[ArrayLike] | None, counts: list[int]
) -> NDArray[Any] | None:
    """Return one weight per edge; `build_graph` checks the numbers themselves."""
    if graph.edge_weight is None:
        if weights is not None:
            raise GraphError(
                f"new nodes: got edge weights, but graph {graph.name!r} has none: leave them out"
            )
        return None
    if weights is None:
        return np.ones(sum(counts), np.float32)
    arrays = [as_array(given, f"new node {j}: edge weights") for j, given in enumerate(weights)]
    shapes, expected = [array.shape for array in arrays], [(count,) for count in counts]
    if shapes != expected:
        raise GraphError(
            f"new nodes: edge weights have shapes {shapes}, expected {expected}: give one weight "
            "per neighbour"
        )
    return np.concatenate([np.empty(0, np.float32), *arrays])


def _stacked(old: Features, new: Features) -> Features:
    if isinstance(old, CSRFeatures) and isinstance(new, CSRFeatures):
        return CSRFeatures(
            indptr=np.concatenate([old.indptr, old.indptr[-1] + new.indptr[1:]]),
            indices=np.concatenate([old.indices, new.indices]),
            values=np.concatenate([old.values, new.values]),
            num_columns=old.num_columns,
        )
    return np.concatenate([old, new])
