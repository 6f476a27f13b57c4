"""Edges of new nodes: numbers of known ids, both directions, and what cannot count."""

import numpy as np
import pytest

from gpn_scale.data.building import build_graph
from gpn_scale.data.linked_edges import LinkedEdges
from gpn_scale.inference.new_edges import new_edges

PATH = build_graph([0, 1], [1, 2], edge_weight=[1.0, 1.0])


def linked(pairs, weights):
    source, target = np.array(pairs).reshape(-1, 2).T
    weight = np.array(weights, float)
    return LinkedEdges(source=source, target=target, weight=weight, num_listed=len(pairs))


def test_known_ids_become_positions_and_new_nodes_follow_the_graph():
    # Ids 0 and 1 are known: positions 2 and 0. Ids 2 and 3 are new.
    edges = linked([(2, 0), (1, 3), (2, 3), (3, 2)], [1, 2, 3, 4])
    got = new_edges(edges, np.array([2, 0]), PATH, num_new=2)
    assert [ids.tolist() for ids in got.neighbours] == [[2, 4], [0]]
    assert [weights.tolist() for weights in got.weights] == [[1, 4], [2]]


@pytest.mark.parametrize("num_new", [1, 3])
def test_no_edges_leave_every_new_node_alone(num_new):
    got = new_edges(None, np.array([2, 0]), PATH, num_new=num_new)
    assert [ids.tolist() for ids in got.neighbours] == [[]] * num_new
    assert got.notes == ()


def test_edges_of_existing_nodes_and_loops_do_not_count():
    got = new_edges(linked([(0, 1), (2, 2)], [1, 1]), np.array([2, 0]), PATH, num_new=1)
    assert [ids.tolist() for ids in got.neighbours] == [[]]
    assert len(got.notes) == 1
