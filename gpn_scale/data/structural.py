"""Structural features: numbers computed from the edges of a node.

Shapes: N nodes.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from gpn_scale.data.edge_blocks import row_ranges
from gpn_scale.data.graph import Graph
from gpn_scale.data.standardisation import Standardisation
from gpn_scale.scratch import release_pages

StructuralMeasure = Literal["degree", "mean degree of neighbours", "in-degree", "weighted degree"]
MEASURES: tuple[StructuralMeasure, ...] = get_args(StructuralMeasure)
STRUCTURE = "network structure"
"""Name used in place of a raw column for structural features."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuralRule:
    """The standardised logarithm of a structural measure.

    >>> StructuralRule(measure="degree", centre=0.7, scale=0.2).label
    'log degree'
    """

    measure: StructuralMeasure
    centre: float
    scale: float

    @property
    def label(self) -> str:
        """Name of the feature."""
        return f"log {self.measure}"

    def encoded(self, graph: Graph) -> scipy.sparse.csr_array:
        """Return the feature of all nodes, (N, 1)."""
        scaled = Standardisation(self.centre, self.scale).applied(log_measure(graph, self.measure))
        return scipy.sparse.csr_array(scaled[:, None])


def fitted_structure(graph: Graph) -> tuple[StructuralRule, ...]:
    """Return rules for the measures that are informative for this kind of graph.

    All graphs have degree and mean degree of neighbours; directed ones also have the in-degree,
    and weighted ones the weighted degree.

    >>> from gpn_scale import build_graph
    >>> [rule.measure for rule in fitted_structure(build_graph([0, 1], [1, 2]))]
    ['degree', 'mean degree of neighbours']
    """
    measures: list[StructuralMeasure] = ["degree", "mean degree of neighbours"]
    if graph.directed:
        measures.append("in-degree")
    if graph.edge_weight is not None:
        measures.append("weighted degree")
    rules = []
    for measure in measures:
        centre, scale = Standardisation.of(log_measure(graph, measure))
        rules.append(StructuralRule(measure=measure, centre=centre, scale=scale))
    return tuple(rules)


def log_measure(graph: Graph, measure: StructuralMeasure) -> NDArray[np.float64]:
    """Return log(1 + measure) of all nodes, (N,); degrees count the edges that leave a node.

    >>> from gpn_scale import build_graph
    >>> path = build_graph([0, 1], [1, 2])
    >>> np.expm1(log_measure(path, "mean degree of neighbours")).round(6).tolist()
    [2.0, 1.0, 2.0]
    """
    degree = graph.out_degree
    if measure == "degree":
        return np.log1p(degree)
    if measure == "in-degree":
        return np.log1p(_in_degree(graph))
    if measure == "weighted degree" and graph.edge_weight is None:
        return np.log1p(degree)
    sums = np.zeros(graph.num_nodes)
    weight_E = graph.edge_weight if measure == "weighted degree" else None
    for start, stop in row_ranges(graph):
        edges = slice(graph.indptr[start], graph.indptr[stop])
        by_edge: NDArray[Any] = (
            degree[graph.indices[edges]] if weight_E is None else weight_E[edges]
        )
        nodes = start + np.flatnonzero(degree[start:stop])
        if len(nodes):
            first = graph.indptr[nodes] - graph.indptr[start]
            sums[nodes] = np.add.reduceat(by_edge, first, dtype=np.float64)
        release_pages(graph.indices, graph.edge_weight)
    connected = degree > 0
    if measure == "mean degree of neighbours":
        sums[connected] /= degree[connected]
    return np.log1p(sums)


def _in_degree(graph: Graph) -> NDArray[np.int64]:
    counts = np.zeros(graph.num_nodes, np.int64)
    for start, stop in row_ranges(graph):
        target = graph.indices[graph.indptr[start] : graph.indptr[stop]]
        counts += np.bincount(target, minlength=graph.num_nodes)
    return counts
