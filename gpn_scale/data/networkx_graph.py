"""Graphs from networkx, which this module uses without importing it.

Shapes: N nodes, E edges, F feature columns.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Graph
from gpn_scale.data.node_arrays import NodeFeatures, labels_of
from gpn_scale.errors import GraphError

LABEL, FEATURES, WEIGHT = "label", "features", "weight"
"""Attributes that are read by default, if nodes or edges have them."""

Attributes = Sequence[Mapping[str, Any]]
"""Attributes of every node or edge."""


def is_networkx(graph: Any) -> bool:
    """Return whether `graph` is a graph of networkx, without importing networkx.

    >>> is_networkx([])
    False
    """
    networkx = sys.modules.get("networkx")  # no object of it exists before it is imported
    return networkx is not None and isinstance(graph, networkx.Graph)


def graph_from_networkx(
    graph: Any,
    *,
    label: str | None = LABEL,
    features: str | Sequence[str] | None = FEATURES,
    weight: str | None = WEIGHT,
    directed: bool | None = None,
    name: str = "graph",
) -> Graph:
    """Convert a networkx graph to a `Graph`.

    If the nodes are the integers 0..N-1 in any order, these become their positions. Other nodes
    keep their order and get their names as texts. An attribute that no node or edge has is refused,
    unless it is the default.

    >>> import networkx
    >>> path = networkx.path_graph(["a", "b", "c"])
    >>> networkx.set_node_attributes(path, {"a": 0.5, "b": 1.5, "c": 2.5}, "age")
    >>> networkx.set_node_attributes(path, {"a": "old", "b": "new"}, "label")
    >>> graph = graph_from_networkx(path, features=["age"])
    >>> graph, graph.node_names.tolist(), graph.labels.tolist()
    (Graph('graph', nodes=3, edges=4, features=1, classes=2), ['a', 'b', 'c'], [1, 0, -1])

    Args:
        graph: `Graph` or `MultiGraph`; or, with `directed`, `DiGraph` or `MultiDiGraph`.
        label: Node attribute with the class, an index or a text; nodes without it have no label.
            None for a graph without labels.
        features: Node attributes with one number each; or one attribute with F numbers. None for a
            graph without features.
        weight: Edge attribute with the weight; edges without it have the weight 1. None for edges
            without weights.
        directed: Whether to keep the directions of a `DiGraph`; required for a `DiGraph`, because
            directions change every prediction.
        name: Name of the graph in messages and reports.

    Raises:
        GraphError: `graph` is not a networkx graph, `directed` is missing, a node lacks a feature,
            an attribute does not exist, or two nodes have the same name.
    """
    if not is_networkx(graph):
        raise GraphError(
            f"graph {name!r} is a {type(graph).__name__}, expected a networkx graph",
            arguments=("graph",),
        )
    _check_direction(graph, directed, name)
    nodes = _ordered(graph)
    position = {node: at for at, node in enumerate(nodes)}
    edges = list(graph.edges(data=True))
    of_nodes = [graph.nodes[node] for node in nodes]
    of_edges = [attributes for _, _, attributes in edges]
    labels, class_names = _labels(of_nodes, label, name)
    node_features = _features(of_nodes, nodes, features, name)
    return build_graph(
        np.array([position[source] for source, _, _ in edges], np.int64),
        np.array([position[target] for _, target, _ in edges], np.int64),
        name=name,
        num_nodes=len(nodes),
        edge_weight=_weights(of_edges, weight, name),
        features=None if node_features is None else node_features.values,
        feature_names=None if node_features is None else node_features.names,
        labels=labels,
        class_names=class_names,
        directed=bool(directed),
        node_names=_names(nodes, name),
    )


def _check_direction(graph: Any, directed: bool | None, name: str) -> None:
    kind = type(graph).__name__
    if graph.is_directed() and directed is None:
        raise GraphError(
            f"graph {name!r} is a {kind} and directed is not given: pass directed=True to keep "
            "directions, or directed=False for edges that go both ways",
            arguments=("directed",),
        )
    if directed and not graph.is_directed():
        raise GraphError(
            f"graph {name!r} is a {kind}, whose edges have no direction, but directed is True: "
            "omit directed, or pass a DiGraph",
            arguments=("directed",),
        )


def _ordered(graph: Any) -> list[Any]:
    """Return 0..N-1 if these are the nodes, so that ids are positions; else the nodes as they are.

    networkx keeps the order of insertion, in which an edge may add node 7 before node 3.
    """
    nodes = list(graph.nodes)
    numbered = all(isinstance(node, int) for node in nodes)
    return sorted(nodes) if numbered and set(nodes) == set(range(len(nodes))) else nodes


def _names(nodes: list[Any], name: str) -> list[str] | None:
    """Return the nodes as texts; None if they are 0..N-1."""
    if nodes == list(range(len(nodes))):
        return None
    texts = [str(node) for node in nodes]
    seen: dict[str, Any] = {}
    for node, text in zip(nodes, texts, strict=True):
        if text in seen:
            raise GraphError(
                f"graph {name!r}: the nodes {seen[text]!r} and {node!r} both become {text!r}, "
                "expected nodes that differ as texts: relabel one of them"
            )
        seen[text] = node
    return texts


def _labels(
    of_nodes: Attributes, label: str | None, name: str
) -> tuple[NDArray[np.int64] | None, NDArray[np.str_] | None]:
    if label is None or not _exists(label, LABEL, of_nodes, "node", name):
        return None, None
    values = np.empty(len(of_nodes), object)
    values[:] = [attributes.get(label) for attributes in of_nodes]
    return labels_of(values)


def _features(
    of_nodes: Attributes, nodes: list[Any], features: str | Sequence[str] | None, name: str
) -> NodeFeatures | None:
    if features is None:
        return None
    if isinstance(features, str):
        if not _exists(features, FEATURES, of_nodes, "node", name):
            return None
        return NodeFeatures(_vectors(of_nodes, nodes, features, name), None)
    columns = []
    for attribute in features:
        _exists(attribute, None, of_nodes, "node", name)
        columns.append(_vectors(of_nodes, nodes, attribute, name))
        if columns[-1].ndim != 1:
            raise GraphError(
                f"graph {name!r}: the node attribute {attribute!r} has shape "
                f"{columns[-1].shape[1:]}, expected one number for every node: pass "
                f"features={attribute!r} for an attribute with several"
            )
    if not columns:
        return None
    return NodeFeatures(np.stack(columns, axis=1), tuple(features))


def _vectors(of_nodes: Attributes, nodes: list[Any], attribute: str, name: str) -> NDArray[Any]:
    """Return an attribute of all nodes, (N,) or (N, F)."""
    where = f"graph {name!r}: the node attribute {attribute!r}"
    rows = []
    for node, attributes in zip(nodes, of_nodes, strict=True):
        if attributes.get(attribute) is None:
            raise GraphError(
                f"{where} is missing at node {node!r}, expected it at every node: fill it in, or "
                "leave the attribute out of features"
            )
        rows.append(np.asarray(attributes[attribute]))
        if rows[-1].dtype.kind not in "fiub" or rows[-1].shape != rows[0].shape:
            raise GraphError(
                f"{where} is {attributes[attribute]!r} at node {node!r}, expected numbers, as many "
                "at every node"
            )
    return np.stack(rows)


def _weights(of_edges: Attributes, weight: str | None, name: str) -> NDArray[Any] | None:
    if weight is None or not _exists(weight, WEIGHT, of_edges, "edge", name):
        return None
    values = [attributes.get(weight, 1.0) for attributes in of_edges]
    try:
        return np.array(values, np.float64)
    except (TypeError, ValueError) as error:
        raise GraphError(
            f"graph {name!r}: the edge attribute {weight!r} is not a number everywhere ({error}), "
            "expected numbers"
        ) from error


def _exists(
    attribute: str, default: str | None, all_attributes: Attributes, kind: str, name: str
) -> bool:
    """Return whether any node or edge has the attribute; raise if a requested one is missing."""
    if any(attribute in attributes for attributes in all_attributes):
        return True
    if attribute == default:
        return False
    available = sorted({str(key) for attributes in all_attributes for key in attributes})
    raise GraphError(
        f"graph {name!r}: no {kind} has an attribute {attribute!r}, expected one of "
        f"{', '.join(map(repr, available)) or 'none, for there are no attributes'}"
    )
