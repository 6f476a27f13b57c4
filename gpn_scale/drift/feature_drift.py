"""Movements of features without raw columns: dense ones by value, sparse ones by presence.

Memory stays bounded: dense features are read in blocks of columns, for a sample of nodes; sparse
ones in blocks of rows.

Shapes: N nodes of a graph, F features.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import CSRFeatures, Graph, NodeIds
from gpn_scale.drift.column_drift import ColumnDrift
from gpn_scale.drift.raw_drift import number_drift
from gpn_scale.drift.two_samples import Movement, share_p_values

SAMPLE = 50_000
"""Largest number of nodes whose dense features are compared; larger graphs are sampled."""
KEPT = 50
"""Number of features that are listed: those that moved most."""
_BLOCK_BYTES = 1 << 26
_BLOCK_ROWS = 1 << 16


def feature_drifts(
    a: Graph, nodes_a: NodeIds, b: Graph, nodes_b: NodeIds
) -> tuple[ColumnDrift, ...] | None:
    """Return the movements of the features that moved most; None if the graphs share none.

    >>> from gpn_scale import build_graph
    >>> values = np.random.default_rng(1).normal(size=(200, 2)).astype(np.float32)
    >>> a = build_graph([0], [1], num_nodes=200, features=values)
    >>> b = build_graph([0], [1], num_nodes=200, features=values + np.float32([0, 1]))
    >>> every = np.arange(200)
    >>> [(drift.name, drift.moved) for drift in feature_drifts(a, every, b, every)]
    [('feature 1', True), ('feature 0', False)]

    Args:
        a: Graph of A.
        nodes_a: Its compared nodes.
        b: Graph of B.
        nodes_b: Its compared nodes.
    """
    names, places_a, places_b = _common_features(a, b)
    if not names:
        return None
    if isinstance(a.features, CSRFeatures) or isinstance(b.features, CSRFeatures):
        drifts = _sparse(a, nodes_a, places_a, b, nodes_b, places_b, names)
    else:
        drifts = _dense(a, nodes_a, places_a, b, nodes_b, places_b, names)
    return tuple(drifts)


def _common_features(a: Graph, b: Graph) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Return the names of features that both graphs have, and where they are in each."""
    if a.feature_names is None or b.feature_names is None:
        count = a.num_features if a.num_features == b.num_features else 0
        every = np.arange(count)
        own = a.feature_names if a.feature_names is not None else b.feature_names
        names = [f"feature {place}" for place in every] if own is None else own[:count].tolist()
        return names, every, every
    names, places_a, places_b = np.intersect1d(
        a.feature_names, b.feature_names, assume_unique=True, return_indices=True
    )
    return names.tolist(), places_a, places_b


def _dense(
    a: Graph,
    nodes_a: NodeIds,
    places_a: NDArray[np.int64],
    b: Graph,
    nodes_b: NodeIds,
    places_b: NDArray[np.int64],
    names: list[str],
) -> list[ColumnDrift]:
    rows_a, rows_b = _sampled(nodes_a), _sampled(nodes_b)
    block = max(1, _BLOCK_BYTES // (4 * (len(rows_a) + len(rows_b))))
    drifts: list[ColumnDrift] = []
    for start in range(0, len(names), block):
        chosen = slice(start, start + block)
        values_a = _block(a, rows_a, places_a[chosen])
        values_b = _block(b, rows_b, places_b[chosen])
        drifts += [
            number_drift(name, "feature", column_a, column_b)
            for name, column_a, column_b in zip(names[chosen], values_a.T, values_b.T, strict=True)
        ]
        drifts = _farthest(drifts, len(names))
    return drifts


def _sampled(nodes: NodeIds) -> NodeIds:
    if len(nodes) <= SAMPLE:
        return nodes
    return np.sort(np.random.default_rng(0).choice(nodes, SAMPLE, replace=False))


def _block(graph: Graph, rows: NodeIds, places: NDArray[np.int64]) -> NDArray[np.float64]:
    assert graph.features is not None
    assert not isinstance(graph.features, CSRFeatures)
    return np.asarray(graph.features[np.ix_(rows, places)], np.float64)


def _sparse(
    a: Graph,
    nodes_a: NodeIds,
    places_a: NDArray[np.int64],
    b: Graph,
    nodes_b: NodeIds,
    places_b: NDArray[np.int64],
    names: list[str],
) -> list[ColumnDrift]:
    """Compare the shares of nodes at which a feature is not 0."""
    count_a = present_counts(a, nodes_a)[places_a]
    count_b = present_counts(b, nodes_b)[places_b]
    share_a, share_b = count_a / len(nodes_a), count_b / len(nodes_b)
    distance = np.abs(share_b - share_a)
    p_value = share_p_values(count_a, len(nodes_a), count_b, len(nodes_b))
    order = np.argsort(-distance, kind="stable")[:KEPT]
    drifts = [
        ColumnDrift(
            name=names[place],
            kind="sparse feature",
            values=Movement(
                float(distance[place]),
                float(p_value[place]),
                int(np.sign(share_b[place] - share_a[place])),
            ),
            detail=f"share of nodes {100 * share_a[place]:.1f} % -> {100 * share_b[place]:.1f} %",
            numbers={"share_a": float(share_a[place]), "share_b": float(share_b[place])},
        )
        for place in order.tolist()
    ]
    return _farthest(drifts, len(names))


def present_counts(graph: Graph, nodes: NodeIds) -> NDArray[np.int64]:
    """Return at how many of the nodes each feature is not 0, (F,).

    >>> from gpn_scale import build_graph
    >>> graph = build_graph([0], [1], features=np.array([[1, 0], [2, 3]], np.float32))
    >>> present_counts(graph, np.array([0, 1])).tolist()
    [2, 1]
    """
    features = graph.features
    assert features is not None
    counts = np.zeros(graph.num_features, np.int64)
    if not isinstance(features, CSRFeatures):
        for start in range(0, len(nodes), _BLOCK_ROWS):
            counts += (np.asarray(features[nodes[start : start + _BLOCK_ROWS]]) != 0).sum(0)
        return counts
    chosen = np.zeros(graph.num_nodes, np.bool_)
    chosen[nodes] = True
    for start in range(0, graph.num_nodes, _BLOCK_ROWS):
        stop = min(start + _BLOCK_ROWS, graph.num_nodes)
        rows = features.rows(start, stop)
        kept = np.repeat(chosen[start:stop], np.diff(rows.indptr)) & (rows.values != 0)
        counts += np.bincount(rows.indices[kept], minlength=graph.num_features)
    return counts


def _farthest(drifts: list[ColumnDrift], comparisons: int) -> list[ColumnDrift]:
    """Return the features that moved most, each with whether it moved."""
    first = sorted(drifts, key=lambda each: -each.movement.distance)[:KEPT]
    return [replace(each, moved=each.movement.is_notable(comparisons)) for each in first]
