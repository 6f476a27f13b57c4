"""Nodes that join a graph after training: their features and edges.

The existing graph is only read, never copied: `edge_patch` and `patched_transition` make rows of
the grown S of it on demand, and `push` diffuses over them.

Shapes: N existing nodes, M new nodes, F feature columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

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


def csr_rows(
    values: NDArray[Any], columns: NDArray[Any], offsets: NDArray[Any], width: int
) -> SparseRows:
    """Return sparse rows of `width` columns from their three arrays, which are not copied.

    >>> csr_rows(np.array([5, 6]), np.array([1, 0]), np.array([0, 1, 2]), width=3).toarray()
    array([[0, 5, 0],
           [6, 0, 0]])
    """
    return scipy.sparse.csr_array((values, columns, offsets), shape=(len(offsets) - 1, width))


def _edges(graph: Graph, nodes: NodeIds) -> tuple[NodeIds, NodeIds, NDArray[np.float64]]:
    """Return the edges of `nodes`: position in `nodes`, neighbour, weight."""
    row_ptr, at = entries_of(graph.indptr, nodes)
    row = np.repeat(np.arange(len(nodes)), np.diff(row_ptr))
    weight = np.ones(len(at)) if graph.edge_weight is None else graph.edge_weight[at]
    return row, graph.indices[at].astype(np.int64), weight.astype(np.float64)


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
