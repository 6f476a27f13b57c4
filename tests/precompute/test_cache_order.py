from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.diffusion.transition import transition_matrix
from precompute import cache_order
from precompute.cache_order import OrderedMatrix, SweptRows
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
    ordered = OrderedMatrix.of(*arrays)
    assert sorted(ordered.order_N.tolist()) == list(range(graph.num_nodes))
    assert ordered.order_N[ordered.place_N].tolist() == list(range(graph.num_nodes))
    new = dense(ordered.indptr, ordered.indices, ordered.weight)
    np.testing.assert_array_equal(new, dense(*arrays)[np.ix_(ordered.order_N, ordered.order_N)])


@given(graph=graphs())
def test_entries_keep_their_order_within_a_row(graph):
    indptr, indices, weight = arrays_of(graph)
    ordered = OrderedMatrix.of(indptr, indices, weight)
    for place, node in enumerate(ordered.order_N):
        row = ordered.order_N[ordered.indices[ordered.indptr[place] : ordered.indptr[place + 1]]]
        assert row.tolist() == indices[indptr[node] : indptr[node + 1]].tolist()


def test_the_order_brings_neighbours_together():
    rng = np.random.default_rng(0)
    names = rng.permutation(1000)  # a ring whose nodes have random numbers
    left, right = names, np.roll(names, 1)
    rows = np.concatenate([left, right])
    order = np.argsort(rows, kind="stable")
    indices = np.concatenate([right, left])[order].astype(np.int32)
    indptr = np.arange(0, 2001, 2)
    ordered = OrderedMatrix.of(indptr, indices, np.ones(2000, np.float32))
    distance = np.abs(ordered.indices - np.repeat(np.arange(1000), 2))
    assert distance.max() <= 2


@given(permutation=st.permutations(range(6)))
def test_swept_rows_are_found_by_node(permutation):
    order = np.array(permutation, np.int32)
    place = np.empty(6, np.int32)
    place[order] = np.arange(6)
    ids = place[order][:, None]  # the row of each node holds the node itself
    rows = PaddedRows(ids, order[:, None] / 8, np.ones(6, np.int32))
    nodes = np.array([4, 0, 5])
    found = SweptRows(rows, order, place).of(nodes)
    assert found.ids[:, 0].tolist() == nodes.tolist()
    assert found.weights[:, 0].tolist() == (nodes / 8).tolist()


@pytest.mark.parametrize(("limit", "order"), [(3, [0, 1, 2]), (4, [1, 2, 0])])
def test_a_matrix_beyond_the_limit_stays_in_its_order(monkeypatch, limit, order):
    monkeypatch.setattr(cache_order, "MOST_ENTRIES", limit)
    indptr, indices = np.array([0, 1, 2, 4]), np.array([2, 2, 0, 1], np.int32)
    ordered = OrderedMatrix.of(indptr, indices, np.ones(4, np.float32))
    assert ordered.order_N.tolist() == order
