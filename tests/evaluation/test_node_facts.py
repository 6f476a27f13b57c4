import numpy as np
import pytest

from gpn_scale.data.building import build_graph
from gpn_scale.evaluation.node_facts import NodeFacts

GRAPH = build_graph([0], [1], labels=[0, 1, 0, -1], node_names=list("abcd"), class_names=["x", "y"])


def test_arrays_are_those_of_the_graph():
    facts = NodeFacts.of(GRAPH)
    assert facts.node_names is GRAPH.node_names
    assert facts.labels is GRAPH.labels
    assert facts.class_names is GRAPH.class_names
    assert facts.ids(4).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("rows", [slice(1, 3), slice(2, 9), np.array([3, 0]), np.array([], int)])
def test_rows_of_all_nodes_and_of_some(rows):
    assert NodeFacts.of(GRAPH).rows(rows).nodes.tolist() == np.arange(4)[rows].tolist()
    some = np.array([3, 1, 2, 0])
    assert NodeFacts.of(GRAPH, some).rows(rows).ids(2).tolist() == some[rows].tolist()


def test_without_a_graph_ids_are_positions():
    assert NodeFacts().ids(3).tolist() == [0, 1, 2]
