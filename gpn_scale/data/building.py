"""Edge lists and arrays from outside -> a checked `Graph`.

Shapes: N nodes, E edges, F feature columns.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from gpn_scale.data.graph import MISSING_LABEL, CSRFeatures, Features, Graph, NodeIds, Split
from gpn_scale.errors import GraphError

MAX_NODES = 2**31 - 1
"""Columns are int32."""

_CHUNK_ROWS = 1 << 16


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
    node_names: NDArray[np.str_] | None = None,
) -> Graph:
    """A checked graph from an edge list.

    Self-loops are dropped. Repeated edges become one: without weights they collapse, with
    weights they add up. Undirected: an edge given in one direction counts for both, and where
    both directions are given the larger weight holds, so listing an edge once or twice is
    the same.

    Args:
        source: Node ids, (E,).
        target: Node ids, (E,).
        name: What messages and reports call the graph.
        num_nodes: N; by default that of `features` or `labels`, else the largest id + 1.
        edge_weight: Finite, positive weights, (E,).
        features: Finite numbers, (N, F), or sparse rows.
        labels: Integers in [0, num_classes), `MISSING_LABEL` where unknown, (N,).
        num_classes: By default the largest label + 1.
        directed: Keep edges as given instead of adding the reverse ones.
        split: A public split.
        marks: Named sets of out-of-distribution node ids.
        node_names: The user's ids, (N,).

    Raises:
        GraphError: an array has a wrong shape, an id or label is out of range, a feature or
            weight is not finite.
    """
    checked_features = None if features is None else check_features(features, name)
    source_E = _as_ids(source, "source", name)
    target_E = _as_ids(target, "target", name)
    if len(source_E) != len(target_E):
        raise GraphError(
            f"graph {name!r}: {len(source_E)} edge sources but {len(target_E)} targets"
        )
    if num_nodes is None:
        known = [len(np.asarray(labels))] if labels is not None else []
        known += [checked_features.shape[0]] if checked_features is not None else []
        largest = max((int(ids.max()) for ids in (source_E, target_E) if len(ids)), default=-1)
        num_nodes = max(known, default=largest + 1)
    _check_edges(source_E, target_E, num_nodes, name)
    checked_labels, num_classes = _check_labels(labels, num_classes, num_nodes, name)
    weight_E = None if edge_weight is None else _check_weights(edge_weight, source_E, name)
    indptr, indices, merged = _compress(source_E, target_E, weight_E, num_nodes, directed)
    graph = Graph(
        name=name,
        indptr=indptr,
        indices=indices,
        edge_weight=merged,
        features=checked_features,
        labels=checked_labels,
        num_classes=num_classes,
        directed=directed,
        marks={key: _check_mark(ids, key, num_nodes, name) for key, ids in (marks or {}).items()},
        node_names=node_names,
    )
    return graph if split is None else graph.with_split(split)


def check_features(features: ArrayLike | CSRFeatures, name: str) -> Features:
    """`features` as float32 (float16 is kept) with two dimensions and finite numbers only."""
    if isinstance(features, CSRFeatures):
        offsets = features.indptr
        if offsets[0] != 0 or offsets[-1] != len(features.indices) or (np.diff(offsets) < 0).any():
            raise GraphError(
                f"graph {name!r}: feature row offsets must rise from 0 to {len(features.indices)}, "
                "the number of stored values"
            )
        if len(features.indices) and not (
            features.indices.min() >= 0 and features.indices.max() < features.num_columns
        ):
            raise GraphError(
                f"graph {name!r}: a feature column lies outside [0, {features.num_columns})"
            )
        _check_finite(features.values, name)
        return features
    dense = np.asarray(features)
    if dense.ndim != 2:
        raise GraphError(f"graph {name!r}: features have shape {dense.shape}, expected (N, F)")
    if dense.dtype not in (np.float16, np.float32):
        dense = dense.astype(np.float32)
    _check_finite(dense, name)
    return dense


def _check_finite(values: NDArray[Any], name: str) -> None:
    for start, chunk in _row_chunks(values):
        if not np.isfinite(chunk).all():
            row = start + int(np.flatnonzero(~np.isfinite(chunk).reshape(len(chunk), -1).all(1))[0])
            where = f"at node {row}" if values.ndim == 2 else f"at stored value {row}"
            raise GraphError(
                f"graph {name!r}: features hold NaN or infinity {where}, expected finite numbers: "
                "fill or drop them first"
            )


def _row_chunks(values: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    for start in range(0, len(values), _CHUNK_ROWS):
        yield start, values[start : start + _CHUNK_ROWS]


def _as_ids(ids: ArrayLike, what: str, name: str) -> NDArray[Any]:
    array = np.asarray(ids)
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise GraphError(
            f"graph {name!r}: {what} must be a vector of integer node ids, "
            f"got {array.dtype} of shape {array.shape}"
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
                f"[0, {num_nodes})"
            )


def _check_mark(ids: ArrayLike, key: str, num_nodes: int, name: str) -> NodeIds:
    nodes = np.unique(_as_ids(ids, f"mark {key!r}", name)).astype(np.int64)
    if len(nodes) and not (nodes[0] >= 0 and nodes[-1] < num_nodes):
        wrong = nodes[0] if nodes[0] < 0 else nodes[-1]
        raise GraphError(
            f"graph {name!r}: mark {key!r} holds node {wrong}, expected ids in [0, {num_nodes})"
        )
    return nodes


def _check_labels(
    labels: ArrayLike | None, num_classes: int | None, num_nodes: int, name: str
) -> tuple[NDArray[np.int32], int]:
    if labels is None:
        return np.full(num_nodes, MISSING_LABEL, np.int32), num_classes or 0
    array = np.asarray(labels)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise GraphError(
            f"graph {name!r}: labels must be a vector of integers, "
            f"got {array.dtype} of shape {array.shape}"
        )
    limit = num_classes if num_classes is not None else int(array.max(initial=-1)) + 1
    wrong = np.flatnonzero((array < MISSING_LABEL) | (array >= limit))
    if len(wrong):
        raise GraphError(
            f"graph {name!r}: node {wrong[0]} has label {array[wrong[0]]}, expected a class in "
            f"[0, {limit}) or {MISSING_LABEL} for a missing label"
        )
    return array.astype(np.int32), limit


def _check_weights(edge_weight: ArrayLike, source: NDArray[Any], name: str) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # what float32 cannot hold is refused below as infinite
        weight = np.asarray(edge_weight).astype(np.float32)
    if weight.shape != source.shape:
        raise GraphError(f"graph {name!r}: {len(source)} edges but weights of shape {weight.shape}")
    wrong = np.flatnonzero(~(np.isfinite(weight) & (weight > 0)))
    if len(wrong):
        raise GraphError(
            f"graph {name!r}: edge {wrong[0]} has weight {weight[wrong[0]]}, expected a positive, "
            "finite number: drop the edge or mend the weight"
        )
    return weight


def _compress(
    source: NDArray[Any],
    target: NDArray[Any],
    weight: NDArray[np.float32] | None,
    num_nodes: int,
    directed: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32] | None]:
    """Edge list to sorted CSR by the rules of `build_graph`."""
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
    return indptr, indices, None if weight is None else matrix.data.astype(np.float32)
