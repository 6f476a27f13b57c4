import numpy as np
import pytest
from hypothesis import given

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Graph
from gpn_scale.data.structural import MEASURES, fitted_structure, log_measure
from tests.strategies import graphs


def measured(graph: Graph, measure: str, node: int) -> float:
    """The slow, obvious version, one node at a time."""
    entries = range(int(graph.indptr[node]), int(graph.indptr[node + 1]))
    if measure == "in-degree":
        return sum(int(neighbour) == node for neighbour in graph.indices)
    if measure == "weighted degree" and graph.edge_weight is not None:
        return sum(float(graph.edge_weight[entry]) for entry in entries)
    if measure == "mean degree of neighbours":
        degrees = [int(graph.out_degree[graph.indices[entry]]) for entry in entries]
        return sum(degrees) / len(degrees) if degrees else 0.0
    return len(entries)


@pytest.mark.parametrize("measure", MEASURES)
@given(graph=graphs())
def test_measures_are_those_of_single_nodes(measure, graph):
    expected = [np.log1p(measured(graph, measure, node)) for node in range(graph.num_nodes)]
    np.testing.assert_allclose(log_measure(graph, measure), expected, rtol=1e-12)


@given(graph=graphs())
def test_features_are_standardised(graph):
    for rule in fitted_structure(graph):
        feature = rule.encoded(graph).toarray()
        assert feature.shape == (graph.num_nodes, 1)
        assert abs(feature.mean()) < 1e-5
        assert feature.std() == pytest.approx(1.0, abs=1e-4) or not feature.any()


def test_measures_depend_on_the_kind_of_graph():
    plain = build_graph([0], [1])
    assert [rule.label for rule in fitted_structure(plain)] == [
        "log degree",
        "log mean degree of neighbours",
    ]
    rich = build_graph([0], [1], edge_weight=[2.0], directed=True)
    assert [rule.measure for rule in fitted_structure(rich)] == list(MEASURES)
    for rule in fitted_structure(rich):
        assert rule.encoded(plain).shape == (2, 1)
