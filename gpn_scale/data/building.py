"""Checked graphs from edge lists and arrays.

Shapes: N nodes, E edges, F feature columns, C classes.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from gpn_scale.data.compressed_edges import MAX_NODES, CompressedEdges
from gpn_scale.data.graph import (
    MISSING_LABEL,
    CSRFeatures,
    Features,
    Graph,
    NodeIds,
    Split,
    as_array,
    as_node_ids,
)
from gpn_scale.errors import GraphError
from gpn_scale.scratch import release_pages

MAX_COLUMNS = 2**31 - 1
"""Limit of int32, the type of columns of sparse features."""

MAX_CLASSES = 1_000_000
"""Limit on the number of classes, which catches ids given as labels."""

_CHUNK_ROWS = 1 << 16
_BARE_NODES, _BARE_NODES_PER_ENTRY = 10_000_000, 100
"""Number of nodes that any graph may have, and that each edge end or label adds to this limit."""
_CHUNK_EDGES = 1 << 22


def build_graph(
    source: ArrayLike,
    target: ArrayLike,
    *,
    name: str = "graph",
    num_nodes: int | None = None,
    edge_weight: ArrayLike | None = None,
    features: ArrayLike | CSRFeatures | None = None,
    labels: ArrayLike | None = None,
    num_classes: int | None = None,
    directed: bool = False,
    split: Split | None = None,
    marks: Mapping[str, ArrayLike] | None = None,
    node_names: ArrayLike | None = None,
    class_names: ArrayLike | None = None,
    feature_names: ArrayLike | None = None,
) -> Graph:
    """Return a checked graph from an edge list.

    Self-loops are dropped. Repeated edges become one edge, and their weights are summed. An
    undirected graph gets both directions of every edge. If both directions are given, the larger
    weight counts, so it makes no difference whether an edge is listed once or in both directions.

    >>> from gpn_scale import build_graph
    >>> graph = build_graph([0, 1, 2], [1, 2, 0], features=[[1.0], [0.0], [2.0]], labels=[0, 1, -1])
    >>> graph
    Graph('graph', nodes=3, edges=6, features=1, classes=2)

    Args:
        source: Ids of the nodes where edges start, (E,).
        target: Ids of the nodes where edges end, (E,).
        name: Name of the graph in messages and reports.
        num_nodes: N; by default the number of rows of `features` or `labels`, else the largest
            id + 1.
        edge_weight: Finite, positive weights, (E,).
        features: Finite numbers, (N, F), or sparse rows.
        labels: Integers in [0, num_classes), or `MISSING_LABEL` (-1) where unknown, (N,).
        num_classes: C; by default the largest label + 1.
        directed: Keep edges as given instead of adding the reverse ones.
        split: A public split.
        marks: Named sets of ids of unknown nodes.
        node_names: Your own node ids, (N,); integers become texts.
        class_names: Your own class names, (C,); integers become texts.
        feature_names: Distinct names of the feature columns, (F,).

    Raises:
        GraphError: an array has a wrong shape, an id or label is out of range, or a feature or
            weight is not finite.
    """
    checked_features = None if features is None else check_features(features, name)
    source_E = as_node_ids(source, f"graph {name!r}: source")
    target_E = as_node_ids(target, f"graph {name!r}: target")
    if len(source_E) != len(target_E):
        raise GraphError(
            f"graph {name!r}: {len(source_E)} edge sources but {len(target_E)} targets, "
            "expected one of each per edge"
        )
    given_labels = None if labels is None else _as_labels(labels, name)
    sizes = [len(given_labels)] if given_labels is not None else []
    sizes += [checked_features.shape[0]] if checked_features is not None else []
    if num_nodes is None:
        largest = max((int(ids.max()) for ids in (source_E, target_E) if len(ids)), default=-1)
        num_nodes = max(sizes, default=largest + 1)
    _check_edges(source_E, target_E, num_nodes, name)
    _check_plausible(num_nodes, max(sizes, default=0) + 2 * len(source_E), name)
    weight_E = None if edge_weight is None else _check_weights(edge_weight, source_E, name)
    return graph_with_edges(
        _compress(source_E, target_E, weight_E, num_nodes, directed),
        name=name,
        features=checked_features,
        labels=given_labels,
        num_classes=num_classes,
        directed=directed,
        split=split,
        marks=marks,
        node_names=node_names,
        class_names=class_names,
        feature_names=feature_names,
    )


def graph_with_edges(
    edges: CompressedEdges,
    *,
    name: str = "graph",
    features: Features | None = None,
    labels: ArrayLike | None = None,
    num_classes: int | None = None,
    directed: bool = False,
    split: Split | None = None,
    marks: Mapping[str, ArrayLike] | None = None,
    node_names: ArrayLike | None = None,
    class_names: ArrayLike | None = None,
    feature_names: ArrayLike | None = None,
) -> Graph:
    """Return a checked graph of edges that are already sorted and may be memory-mapped.

    >>> from gpn_scale.data.compressed_edges import compressed_edges, edge_list_blocks
    >>> blocks = edge_list_blocks(np.array([0, 1]), np.array([1, 2]))
    >>> edges = compressed_edges(blocks, 3, weighted=False, directed=False)
    >>> graph_with_edges(edges, labels=[0, 1, -1])
    Graph('graph', nodes=3, edges=4, features=0, classes=2)

    Args:
        edges: Sorted rows as `compressed_edges` returns them.
        name: See `build_graph` for this and the other arguments.
        features: Features that `check_features` has returned.
        labels: Integers in [0, num_classes), or `MISSING_LABEL` (-1) where unknown, (N,).
        num_classes: C; by default the largest label + 1.
        directed: Whether the edges have a direction.
        split: A public split.
        marks: Named sets of ids of unknown nodes.
        node_names: Your own node ids, (N,).
        class_names: Your own class names, (C,).
        feature_names: Distinct names of the feature columns, (F,).

    Raises:
        GraphError: an array has a wrong shape, an id or label is out of range, or weights that
            were added up are not finite.
    """
    num_nodes = len(edges.indptr) - 1
    given = np.full(num_nodes, MISSING_LABEL, np.int32) if labels is None else labels
    checked_labels, num_classes = _check_labels(_as_labels(given, name), num_classes, name)
    if edges.weight is not None:
        _check_sums(edges.weight, name)
    graph = Graph(
        name=name,
        indptr=edges.indptr,
        indices=edges.indices,
        edge_weight=edges.weight,
        features=features,
        labels=checked_labels,
        num_classes=num_classes,
        directed=directed,
        marks={key: _check_mark(ids, key, num_nodes, name) for key, ids in (marks or {}).items()},
        node_names=_check_names(node_names, "node_names", name),
        class_names=_check_names(class_names, "class_names", name),
        feature_names=_check_feature_names(feature_names, name),
    )
    return graph if split is None else graph.with_split(split)


def check_features(features: ArrayLike | CSRFeatures, name: str) -> Features:
    """Return `features` as float32 (float16 stays) with two dimensions and finite numbers only.

    >>> check_features([[1, 2], [3, 4]], "mine").dtype
    dtype('float32')

    Raises:
        GraphError: they are not numbers, have another shape, or are not finite.
    """
    if isinstance(features, CSRFeatures):
        return _check_sparse(features, name)
    dense = _check_numbers(features, "features", name)
    if dense.ndim != 2:
        raise GraphError(f"graph {name!r}: features have shape {dense.shape}, expected (N, F)")
    dense = dense if dense.dtype == np.float16 else _to_float32(dense)
    _check_finite(dense, name)
    return dense


def _check_sparse(features: CSRFeatures, name: str) -> CSRFeatures:
    """Check compressed rows of any number types before a cast could hide a wrong number."""
    indptr, indices = features.indptr, features.indices
    values = _check_numbers(features.values, "feature values", name)
    for what, array in (("row offsets", indptr), ("columns", indices)):
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise GraphError(
                f"graph {name!r}: feature {what} are {array.dtype} of shape {array.shape}, "
                "expected a vector of integers"
            )
    if not len(indptr) or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise GraphError(
            f"graph {name!r}: the {len(indptr)} feature row offsets must begin with 0 and never "
            "decrease"
        )
    if not values.shape == indices.shape == (int(indptr[-1]),):
        raise GraphError(
            f"graph {name!r}: got feature columns of shape {indices.shape} and values of shape "
            f"{values.shape}, expected ({indptr[-1]},) as the row offsets say"
        )
    width = features.num_columns
    if not 0 <= width <= MAX_COLUMNS:
        raise GraphError(f"graph {name!r}: got {width} features, expected 0 to {MAX_COLUMNS}")
    if indices.size and not (indices.min() >= 0 and indices.max() < width):
        raise GraphError(f"graph {name!r}: a feature column lies outside [0, {width})")
    checked = CSRFeatures(
        indptr=indptr.astype(np.int64, copy=False),
        indices=indices.astype(np.int32, copy=False),
        values=_to_float32(values),
        num_columns=width,
    )
    _check_finite(checked.values, name)
    return checked


def _check_numbers(values: ArrayLike, what: str, name: str) -> NDArray[Any]:
    array = as_array(values, f"graph {name!r}: {what}")
    if array.dtype.kind not in "fiub":
        raise GraphError(f"graph {name!r}: {what} are {array.dtype}, expected real numbers")
    return array


def _to_float32(values: NDArray[Any]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # numbers beyond float32 become infinite and are refused later
        return values.astype(np.float32, copy=False)


def _check_finite(values: NDArray[Any], name: str) -> None:
    for start in range(0, len(values), _CHUNK_ROWS):
        chunk = np.asarray(values[start : start + _CHUNK_ROWS])
        if not np.isfinite(chunk).all():
            row = start + int(np.flatnonzero(~np.isfinite(chunk).reshape(len(chunk), -1).all(1))[0])
            where = f"at node {row}" if values.ndim == 2 else f"at stored value {row}"
            raise GraphError(
                f"graph {name!r}: features hold NaN or infinity {where}, expected numbers that "
                "are finite in float32: fill, scale or drop them first"
            )
        release_pages(values)


def _check_names(names: ArrayLike | None, what: str, name: str) -> NDArray[np.str_] | None:
    if names is None:
        return None
    array = as_array(names, f"graph {name!r}: {what}")
    if array.size and array.dtype.kind not in "Uiu":
        raise GraphError(f"graph {name!r}: {what} are {array.dtype}, expected text or integers")
    return array.astype(np.str_, copy=False)


def _check_feature_names(names: ArrayLike | None, name: str) -> NDArray[np.str_] | None:
    array = _check_names(names, "feature_names", name)
    if array is not None and array.ndim == 1 and len(set(array.tolist())) < len(array):
        values, counts = np.unique(array, return_counts=True)
        raise GraphError(
            f"graph {name!r}: feature_names holds {str(values[counts > 1][0])!r} twice, expected "
            "distinct names"
        )
    return array


def _check_edges(source: NDArray[Any], target: NDArray[Any], num_nodes: int, name: str) -> None:
    if not 0 < num_nodes <= MAX_NODES:
        raise GraphError(f"graph {name!r}: got {num_nodes} nodes, expected 1 to {MAX_NODES}")
    for ids in (source, target):
        if len(ids) and not (ids.min() >= 0 and ids.max() < num_nodes):
            at = int(np.flatnonzero((ids < 0) | (ids >= num_nodes))[0])
            raise GraphError(
                f"graph {name!r}: edge {at} ({source[at]} -> {target[at]}) names a node outside "
                f"[0, {num_nodes}): fix the edge, or give every node features and a label"
            )


def _check_plausible(num_nodes: int, described: int, name: str) -> None:
    """Refuse an implausible number of nodes before memory is allocated for it.

    Otherwise a single damaged id, or a wrong number of nodes, could make a small graph fill the
    memory.
    """
    most = _BARE_NODES + _BARE_NODES_PER_ENTRY * described
    if num_nodes > most:
        raise GraphError(
            f"graph {name!r}: got {num_nodes:,} nodes, but edges, features and labels have only "
            f"{described:,} entries, expected at most {most:,} nodes: number the nodes from 0 "
            "without gaps"
        )


def _check_mark(ids: ArrayLike, key: str, num_nodes: int, name: str) -> NodeIds:
    nodes = np.unique(as_node_ids(ids, f"graph {name!r}: mark {key!r}")).astype(np.int64)
    if len(nodes) and not (nodes[0] >= 0 and nodes[-1] < num_nodes):
        wrong = nodes[0] if nodes[0] < 0 else nodes[-1]
        raise GraphError(
            f"graph {name!r}: mark {key!r} holds node {wrong}, expected ids in [0, {num_nodes})"
        )
    return nodes


def _as_labels(labels: ArrayLike, name: str) -> NDArray[Any]:
    array = as_array(labels, f"graph {name!r}: labels")
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise GraphError(
            f"graph {name!r}: labels must be a vector of integers, "
            f"got {array.dtype} of shape {array.shape}"
        )
    return array


def _check_labels(
    labels: NDArray[Any], num_classes: int | None, name: str
) -> tuple[NDArray[np.int32], int]:
    if num_classes is None:
        num_classes = max(int(labels.max()), MISSING_LABEL) + 1 if labels.size else 0
    if not 0 <= num_classes <= MAX_CLASSES:
        raise GraphError(
            f"graph {name!r}: got {num_classes} classes, expected 0 to {MAX_CLASSES}: "
            "number the classes from 0 without gaps"
        )
    wrong = np.flatnonzero((labels < MISSING_LABEL) | (labels >= num_classes))
    if len(wrong):
        raise GraphError(
            f"graph {name!r}: node {wrong[0]} has label {labels[wrong[0]]}, expected a class in "
            f"[0, {num_classes}) or {MISSING_LABEL} for a missing label"
        )
    return labels.astype(np.int32), num_classes


def _check_weights(edge_weight: ArrayLike, source: NDArray[Any], name: str) -> NDArray[np.float32]:
    weight = _to_float32(_check_numbers(edge_weight, "weights", name))
    if weight.shape != source.shape:
        raise GraphError(
            f"graph {name!r}: {len(source)} edges but weights of shape {weight.shape}, "
            "expected one per edge"
        )
    wrong = np.flatnonzero(~(np.isfinite(weight) & (weight > 0)))
    if len(wrong):
        raise GraphError(
            f"graph {name!r}: edge {wrong[0]} has weight {weight[wrong[0]]}, expected a positive, "
            "finite number: drop the edge or fix its weight"
        )
    return weight


def _check_sums(weight: NDArray[np.float32], name: str) -> None:
    for start in range(0, len(weight), _CHUNK_EDGES):
        if not np.isfinite(weight[start : start + _CHUNK_EDGES]).all():
            raise GraphError(
                f"graph {name!r}: the weights of a repeated edge add up to infinity, expected a "
                "sum that float32 can hold: scale the weights down"
            )


def _compress(
    source: NDArray[Any],
    target: NDArray[Any],
    weight: NDArray[np.float32] | None,
    num_nodes: int,
    directed: bool,
) -> CompressedEdges:
    """Return the edge list as sorted CSR arrays, by the rules of `build_graph`."""
    proper = source != target
    source, target = source[proper], target[proper]
    if weight is None and not directed:
        source, target = np.concatenate([source, target]), np.concatenate([target, source])
    values = np.ones(len(source), bool) if weight is None else weight[proper]
    shape = (num_nodes, num_nodes)
    matrix = scipy.sparse.coo_array((values, (source, target)), shape=shape).tocsr()
    matrix.sum_duplicates()
    if weight is not None and not directed:
        matrix = matrix.maximum(matrix.T.tocsr())
        matrix.sort_indices()
    indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    merged = None if weight is None else matrix.data.astype(np.float32)
    return CompressedEdges(indptr, indices, merged)
