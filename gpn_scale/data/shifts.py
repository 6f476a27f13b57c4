"""Shifted graphs: features replaced by noise, edges moved.

Shapes: N nodes, F feature columns, E undirected edges.
"""

from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import MISSING_LABEL, Graph, NodeIds
from gpn_scale.errors import ConfigError, GraphError

FeatureNoise = Literal["bernoulli", "normal"]
EdgeShift = Literal["random", "dice"]


def noise_rows(kind: FeatureNoise, rows: int, columns: int, rng_seed: int) -> NDArray[np.float32]:
    """Return feature rows of noise, scaled as the encoder expects them, (rows, columns).

    `bernoulli` sets each column with probability 1/2 and divides rows by their sum, as for bags of
    words; this is close to the training data. `normal` draws unit Gaussians, far from it.

    >>> noise_rows("normal", rows=2, columns=3, rng_seed=1).shape
    (2, 3)

    Raises:
        ConfigError: `kind` is not one of `FeatureNoise`.
    """
    _check_kind("feature noise", kind, get_args(FeatureNoise))
    rng = np.random.default_rng(rng_seed)
    if kind == "normal":
        return rng.standard_normal((rows, columns), dtype=np.float32)
    bag = (rng.random((rows, columns), dtype=np.float32) < 0.5).astype(np.float32)
    return np.asarray(bag / np.maximum(bag.sum(1, keepdims=True), 1.0), np.float32)


def check_fraction(fraction: float) -> None:
    """Check the fraction of nodes or edges that a shift changes.

    >>> check_fraction(1.5)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    gpn_scale.errors.ConfigError: shift fraction is 1.5, expected a number between 0 and 1, ...

    Raises:
        ConfigError: the fraction is not in (0, 1).
    """
    if not 0.0 < fraction < 1.0:
        raise ConfigError(
            f"shift fraction is {fraction}, expected a number between 0 and 1, both excluded",
            arguments=("fractions",),
        )


def shifted_nodes(graph: Graph, fraction: float, rng_seed: int) -> NodeIds:
    """Return the ids of a random `fraction` of the nodes, sorted.

    >>> nodes = shifted_nodes(build_graph([0, 1, 2], [1, 2, 3]), fraction=0.5, rng_seed=1)
    >>> len(nodes), bool(nodes[0] < nodes[1])
    (2, True)
    """
    check_fraction(fraction)
    count = round(fraction * graph.num_nodes)
    return np.sort(np.random.default_rng(rng_seed).choice(graph.num_nodes, count, replace=False))


def check_movable(graph: Graph) -> None:
    """Check that the edges of a graph can be shifted.

    >>> check_movable(build_graph([0], [1], directed=True))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    gpn_scale.errors.GraphError: graph 'graph' is directed or weighted, expected plain edges: ...

    Raises:
        GraphError: the graph is directed or weighted.
    """
    if not graph.has_plain_edges:
        raise GraphError(
            f"graph {graph.name!r} is directed or weighted, expected plain edges: edge shifts are "
            "only defined for undirected graphs without weights"
        )


def without_edges(graph: Graph) -> Graph:
    """Return the same graph without edges.

    >>> without_edges(build_graph([0, 1], [1, 2]))
    Graph('graph', nodes=3, edges=0, features=0, classes=0)
    """
    indptr, indices = np.zeros(graph.num_nodes + 1, np.int64), np.empty(0, np.int32)
    return replace(graph, indptr=indptr, indices=indices, edge_weight=None)


def shifted_edges(graph: Graph, fraction: float, kind: EdgeShift, rng_seed: int) -> Graph:
    """Return the same graph with a `fraction` of its edges changed.

    `random` removes edges and adds as many between random pairs of nodes. `dice` (Waniek et al.,
    2018) makes one of two changes with equal probability: it removes an edge within a class, or
    adds one between two classes; when no edges within classes are left, it only adds. Nodes
    without a label keep their edges and get no new ones.

    >>> path = build_graph([0, 1, 2, 3], [1, 2, 3, 4])
    >>> moved = shifted_edges(path, fraction=0.5, kind="random", rng_seed=1)
    >>> moved.num_edges == path.num_edges, moved.fingerprint() == path.fingerprint()
    (True, False)

    Raises:
        ConfigError: the fraction is not in (0, 1), or `kind` is not one of `EdgeShift`.
        GraphError: the graph is directed or weighted.
    """
    check_fraction(fraction)
    _check_kind("edge shift", kind, get_args(EdgeShift))
    check_movable(graph)
    rng = np.random.default_rng(rng_seed)
    source_E, target_E = _undirected_edges(graph)
    count = round(fraction * len(source_E))
    if kind == "random":
        removed = rng.choice(len(source_E), count, replace=False)
        added, labels = count, None
    else:
        labelled_E = graph.labels[source_E] != MISSING_LABEL
        within = np.flatnonzero(labelled_E & (graph.labels[source_E] == graph.labels[target_E]))
        wanted = rng.binomial(count, 0.5)
        removed = rng.choice(within, min(wanted, len(within)), replace=False)
        added, labels = count - len(removed), graph.labels
    stays_E = np.ones(len(source_E), bool)
    stays_E[removed] = False
    source_E, target_E = source_E[stays_E], target_E[stays_E]
    new_source, new_target = _new_pairs(graph.num_nodes, source_E, target_E, added, labels, rng)
    moved = build_graph(
        np.append(source_E, new_source),
        np.append(target_E, new_target),
        name=graph.name,
        num_nodes=graph.num_nodes,
    )
    return replace(graph, indptr=moved.indptr, indices=moved.indices)


def _undirected_edges(graph: Graph) -> tuple[NodeIds, NodeIds]:
    """Return both ends of every edge, each edge once and the smaller id first."""
    source = np.repeat(np.arange(graph.num_nodes), graph.out_degree)
    target = graph.indices.astype(np.int64)
    once = source < target
    return source[once], target[once]


def _new_pairs(
    num_nodes: int,
    source_E: NodeIds,
    target_E: NodeIds,
    count: int,
    labels: NDArray[np.int32] | None,
    rng: np.random.Generator,
) -> tuple[NodeIds, NodeIds]:
    """Draw `count` distinct pairs that are not edges; with `labels`, of different classes.

    On a dense graph with hardly any such pairs left, the result may have fewer.
    """
    edges = np.unique(source_E * num_nodes + target_E)
    drawn = np.empty(0, np.int64)
    for _ in range(100):
        if len(drawn) >= count:
            break
        ends = np.sort(rng.integers(num_nodes, size=(2 * (count - len(drawn)) + 16, 2)), axis=1)
        proper = ends[:, 0] != ends[:, 1]
        if labels is not None:
            proper &= (labels[ends] != MISSING_LABEL).all(1)
            proper &= labels[ends[:, 0]] != labels[ends[:, 1]]
        keys = ends[proper, 0] * num_nodes + ends[proper, 1]
        fresh = np.setdiff1d(keys, np.append(edges, drawn))
        drawn = np.append(drawn, rng.permutation(fresh)[: count - len(drawn)])
    return drawn // num_nodes, drawn % num_nodes


def _check_kind(what: str, kind: str, kinds: tuple[str, ...]) -> None:
    if kind not in kinds:
        raise ConfigError(f"{what} is {kind!r}, expected {' or '.join(kinds)}")
