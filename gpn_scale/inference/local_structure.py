"""Structural features of a few nodes of a patched graph, without a pass over the graph.

Shapes: B nodes, S structural rules.
"""

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.data.standardisation import Standardisation
from gpn_scale.data.structural import StructuralMeasure, StructuralRule
from gpn_scale.diffusion.edge_patch import EdgePatch, patched_degree, patched_row


def structural_rows(
    graph: Graph, patch: EdgePatch, nodes: NodeIds, rules: tuple[StructuralRule, ...]
) -> NDArray[np.float32]:
    """Return structural features of nodes of the patched graph, (B, S).

    The in-degree of an existing node of a directed graph is NaN: its edges are not stored at the
    node, and patches change edges that leave a node.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.diffusion.edge_patch import rewired
    >>> path = build_graph([0, 1], [1, 2], num_nodes=4)
    >>> rules = (StructuralRule(measure="degree", centre=0.0, scale=1.0),)
    >>> np.expm1(structural_rows(path, rewired(path, 1, add=[3]), np.array([1]), rules)).round(5)
    array([[3.]], dtype=float32)
    """
    values = np.empty((len(nodes), len(rules)))
    for place, node in enumerate(nodes.tolist()):
        values[place] = [_measured(graph, patch, node, rule.measure) for rule in rules]
    columns = [_standardised(rule, np.log1p(values[:, place])) for place, rule in enumerate(rules)]
    return np.stack(columns, axis=1) if columns else values.astype(np.float32)


def _standardised(rule: StructuralRule, logs: NDArray[np.float64]) -> NDArray[np.float32]:
    scaled = Standardisation(rule.centre, rule.scale).applied(logs)
    scaled[np.isnan(logs)] = np.nan
    return scaled


def _measured(graph: Graph, patch: EdgePatch, node: int, measure: StructuralMeasure) -> float:
    if measure == "in-degree" and graph.directed:
        if node < graph.num_nodes:
            return np.nan
        return float((patch.target == node).sum())
    neighbours, weights = patched_row(graph, patch, node)
    if measure == "weighted degree" and graph.edge_weight is not None:
        return float(weights.sum())
    if measure == "mean degree of neighbours":
        degrees = patched_degree(graph, patch, neighbours)
        return float(degrees.sum() / max(len(degrees), 1))
    return float(len(neighbours))
