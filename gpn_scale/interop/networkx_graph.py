"""`to_networkx`: graphs and predictions for networkx, which is only imported on a call.

Shapes: N nodes, F feature columns.
"""

from typing import Any

import numpy as np

from gpn_scale.data.graph import MISSING_LABEL, CSRFeatures, Graph
from gpn_scale.data.networkx_graph import FEATURES, LABEL, WEIGHT
from gpn_scale.errors import GraphError
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.interop.prediction_columns import prediction_columns


def to_networkx(graph: Graph, prediction: Prediction | None = None) -> Any:
    """Return a networkx `Graph`, or `DiGraph` of a directed graph.

    Nodes are the user's own ids, or 0 to N - 1. They have the attributes `features`, a list of F
    numbers, and `label`, a class name or index, and edges have `weight`, if the graph has them.
    `gpn_scale.graph_from_networkx` reads these. A prediction adds to every node `predicted_class`,
    by name if classes have names, `alpha_0`, and `p_known` of a GPN+.

    >>> from gpn_scale import build_graph
    >>> graph = build_graph([0], [1], labels=[0, -1], node_names=["shop", "bank"])
    >>> result = to_networkx(graph)
    >>> dict(result.nodes(data=True)), list(result.edges)
    ({'shop': {'label': 0}, 'bank': {}}, [('shop', 'bank')])

    Raises:
        GraphError: two nodes have the same name, or the prediction is not one of the nodes.
    """
    import networkx

    names = _names(graph)
    result = networkx.DiGraph() if graph.directed else networkx.Graph()
    result.add_nodes_from(names)
    row = np.repeat(np.arange(graph.num_nodes), graph.out_degree)
    weights = None if graph.edge_weight is None else graph.edge_weight.tolist()
    for place, (source, target) in enumerate(
        zip(row.tolist(), graph.indices.tolist(), strict=True)
    ):
        weight = {} if weights is None else {WEIGHT: weights[place]}
        result.add_edge(names[source], names[target], **weight)
    for attribute, values in _attributes(graph, prediction).items():
        given = {n: value for n, value in zip(names, values, strict=True) if value is not None}
        networkx.set_node_attributes(result, given, attribute)
    return result


def _names(graph: Graph) -> list[Any]:
    if graph.node_names is None:
        return list(range(graph.num_nodes))
    names: list[str] = graph.node_names.tolist()
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise GraphError(
            f"graph {graph.name!r} has several nodes with the name {twice!r}, expected distinct "
            "names, which networkx takes for the nodes themselves: rename them",
            arguments=("graph",),
        )
    return names


def _attributes(graph: Graph, prediction: Prediction | None) -> dict[str, list[Any]]:
    """Return the values of all nodes by attribute; None where a node has none."""
    attributes: dict[str, list[Any]] = {}
    if graph.features is not None:
        features = graph.features
        dense = features.to_dense() if isinstance(features, CSRFeatures) else features
        attributes[FEATURES] = np.asarray(dense).tolist()
    attributes[LABEL] = [_class(graph, int(label)) for label in graph.labels]
    if prediction is not None:
        columns = prediction_columns(graph, prediction)
        columns.pop("probabilities")
        predicted = columns.pop("predicted_class")
        attributes["predicted_class"] = [_class(graph, int(label)) for label in predicted]
        attributes |= {name: values.tolist() for name, values in columns.items()}
    return attributes


def _class(graph: Graph, label: int) -> str | int | None:
    """Return the name of a class, or its index; None for a missing label."""
    if label == MISSING_LABEL:
        return None
    return label if graph.class_names is None else str(graph.class_names[label])
