from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.diffusion.transition import transition_matrix
from precompute import cache_order
from precompute.cache_order import CacheOrder, SweptRows
from precompute.row_kernels import PaddedRows
from tests.strategies import graphs


def arrays_of(graph):
    transition = transition_matrix(graph, "rw", self_loops=True)
    return transition.indptr, transition.indices, transition.weight.astype(np.float32)


def dense(indptr, indices, weight):
    matrix = np.zeros((len(indptr) - 1,) * 2, np.float32)
    for row, (start, stop) in enumerate(pairwise(indptr)):
        matrix[row, indices[start:stop]] = weight[start:stop]
    return matrix


@given(graph=graphs())
def test_the_matrix_is_the_same_in_another_order(graph):
    arrays = arrays_of(graph)
    order = CacheOrder.of(*arrays[:2])
    assert sorted(order.order_N.tolist()) == list(range(graph.num_nodes))
    assert order.order_N[order.place_N].tolist() == list(range(graph.num_nodes))
    new = dense(*order.matrix(*arrays))
    np.testing.assert_array_equal(new, dense(*arrays)[np.ix_(order.order_N, order.order_N)])


@given(graph=graphs())
def test_entries_keep_their_order_within_a_row(graph):
    indptr, indices, weight = arrays_of(graph)
    order = CacheOrder.of(indptr, indices)
    new_indptr, new_indices, _ = order.matrix(indptr, indices, weight)
    for place, node in enumerate(order.order_N):
        row = order.order_N[new_indices[new_indptr[place] : new_indptr[place + 1]]]
        assert row.tolist() == indices[indptr[node] : indptr[node + 1]].tolist()


def test_the_order_brings_neighbours_together():
    rng = np.random.default_rng(0)
    names = rng.permutation(1000)  # a ring whose nodes have random numbers
    left, right = names, np.roll(names, 1)
    rows = np.concatenate([left, right])
    order = np.argsort(rows, kind="stable")
    indices = np.concatenate([right, left])[order].astype(np.int32)
    indptr = np.arange(0, 2001, 2)
    order = CacheOrder.of(indptr, indices)
    _, new_indices, _ = order.matrix(indptr, indices, np.ones(2000))
    distance = np.abs(new_indices - np.repeat(np.arange(1000), 2))
    assert distance.max() <= 2


@given(permutation=st.permutations(range(6)))
def test_swept_rows_are_found_by_node(permutation):
    order = np.array(permutation, np.int32)
    place = np.empty(6, np.int32)
    place[order] = np.arange(6)
    ids = place[order][:, None]  # the row of each node holds the node itself
    rows = PaddedRows(ids, order[:, None] / 8, np.ones(6, np.int32))
    nodes = np.array([4, 0, 5])
    found = SweptRows(rows, CacheOrder(order, place)).of(nodes)
    assert found.ids[:, 0].tolist() == nodes.tolist()
    assert found.weights[:, 0].tolist() == (nodes / 8).tolist()


@pytest.mark.parametrize(("limit", "order"), [(3, [0, 1, 2]), (4, [1, 2, 0])])
def test_a_matrix_beyond_the_limit_stays_in_its_order(monkeypatch, limit, order):
    monkeypatch.setattr(cache_order, "MOST_ENTRIES", limit)
    indptr, indices = np.array([0, 1, 2, 4]), np.array([2, 2, 0, 1], np.int32)
    assert CacheOrder.of(indptr, indices).order_N.tolist() == order
