"""Graphs as they might become: features replaced by noise, edges moved.

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
    """Feature rows as the encoder takes them, of noise alone.

    `bernoulli`: each column is there with probability 1/2, divided by the row sum as bags of words
    are; close to what was trained on. `normal`: unit Gaussians, far from it.

    Raises:
        ConfigError: there is no such noise.
    """
    _check_kind("feature noise", kind, get_args(FeatureNoise))
    rng = np.random.default_rng(rng_seed)
    if kind == "normal":
        return rng.standard_normal((rows, columns), dtype=np.float32)
    words = (rng.random((rows, columns), dtype=np.float32) < 0.5).astype(np.float32)
    return np.asarray(words / np.maximum(words.sum(1, keepdims=True), 1.0), np.float32)


def check_fraction(fraction: float) -> None:
    """Refuses fractions outside of (0, 1).

    Raises:
        ConfigError: with the fraction.
    """
    if not 0.0 < fraction < 1.0:
        raise ConfigError(
            f"shift fraction got {fraction}, expected a number between 0 and 1, both left out"
        )


def shifted_nodes(graph: Graph, fraction: float, rng_seed: int) -> NodeIds:
    """A random `fraction` of the nodes, rising."""
    check_fraction(fraction)
    count = round(fraction * graph.num_nodes)
    return np.sort(np.random.default_rng(rng_seed).choice(graph.num_nodes, count, replace=False))


def check_movable(graph: Graph) -> None:
    """Refuses graphs whose edges cannot be shifted.

    Raises:
        GraphError: it is directed or weighted.
    """
    if not graph.has_plain_edges:
        raise GraphError(
            f"graph {graph.name!r} is directed or weighted, expected plain edges to move: edge "
            "shifts are defined for these"
        )


def without_edges(graph: Graph) -> Graph:
    """The nodes, each by itself."""
    indptr, indices = np.zeros(graph.num_nodes + 1, np.int64), np.empty(0, np.int32)
    return replace(graph, indptr=indptr, indices=indices, edge_weight=None)


def shifted_edges(graph: Graph, fraction: float, kind: EdgeShift, rng_seed: int) -> Graph:
    """The same nodes with a `fraction` of the edges changed.

    `random`: these are taken away, and as many join random pairs of nodes. `dice` (Waniek et al.,
    2018): each is, with equal chance, an edge within a class that is taken away or one between
    classes that is added; once no more are within classes, all are added. Nodes without a label
    keep their edges and get none.

    Raises:
        ConfigError: the fraction or the kind is not one.
        GraphError: the graph is directed or weighted.
    """
    check_fraction(fraction)
    _check_kind("edge shift", kind, get_args(EdgeShift))
    check_movable(graph)
    rng = np.random.default_rng(rng_seed)
    source_E, target_E = _undirected_edges(graph)
    count = round(fraction * len(source_E))
    if kind == "random":
        removed, pairs = rng.choice(len(source_E), count, replace=False), None
        added = count
    else:
        known_E = graph.labels[source_E] != MISSING_LABEL
        within = np.flatnonzero(known_E & (graph.labels[source_E] == graph.labels[target_E]))
        wanted = rng.binomial(count, 0.5)
        removed = rng.choice(within, min(wanted, len(within)), replace=False)
        added, pairs = count - len(removed), graph.labels
    stays_E = np.ones(len(source_E), bool)
    stays_E[removed] = False
    source_E, target_E = source_E[stays_E], target_E[stays_E]
    new_source, new_target = _new_pairs(graph.num_nodes, source_E, target_E, added, pairs, rng)
    moved = build_graph(
        np.append(source_E, new_source),
        np.append(target_E, new_target),
        name=graph.name,
        num_nodes=graph.num_nodes,
    )
    return replace(graph, indptr=moved.indptr, indices=moved.indices)


def _undirected_edges(graph: Graph) -> tuple[NodeIds, NodeIds]:
    """Both ends of every edge, once, the smaller first."""
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
    """`count` distinct pairs that are no edges yet; with labels, of different classes.

    Where a dense graph has hardly any such pairs left, there may be fewer.
    """
    known = np.unique(source_E * num_nodes + target_E)
    found = np.empty(0, np.int64)
    for _ in range(100):
        if len(found) >= count:
            break
        ends = np.sort(rng.integers(num_nodes, size=(2 * (count - len(found)) + 16, 2)), axis=1)
        proper = ends[:, 0] != ends[:, 1]
        if labels is not None:
            proper &= (labels[ends] != MISSING_LABEL).all(1)
            proper &= labels[ends[:, 0]] != labels[ends[:, 1]]
        keys = ends[proper, 0] * num_nodes + ends[proper, 1]
        fresh = np.setdiff1d(keys, np.append(known, found))
        found = np.append(found, rng.permutation(fresh)[: count - len(found)])
    return found // num_nodes, found % num_nodes


def _check_kind(what: str, kind: str, known: tuple[str, ...]) -> None:
    if kind not in known:
        raise ConfigError(f"{what} got {kind!r}, expected one of {', '.join(known)}")
