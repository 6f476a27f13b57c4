from collections import Counter
from itertools import combinations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpn_scale.baselines.neighbour_sampler import NeighbourSampler, distinct_draws
from tests.baselines.graphs import small_graph
from tests.oracles import dense_transition
from tests.strategies import graphs

F64 = (torch.device("cpu"), torch.float64)


def dense(matrix):
    values = np.zeros(matrix.shape)
    row = np.repeat(np.arange(matrix.shape[0]), matrix.indptr.diff())
    np.add.at(values, (row, matrix.indices.long().numpy()), matrix.values.numpy())
    return values


@given(graphs(), st.integers(1, 3), st.none() | st.integers(1, 4), st.data())
@settings(max_examples=60, deadline=None)
def test_batches_hold_drawn_entries_of_the_matrix(graph, hops, limit, data):
    count = data.draw(st.integers(1, graph.num_nodes))
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    roots = rng.permutation(graph.num_nodes)[:count]
    sampler = NeighbourSampler(graph, hops, limit)
    batch = sampler.batch(roots, rng)
    np.testing.assert_array_equal(batch.nodes[:count], roots)
    assert len(np.unique(batch.nodes)) == len(batch.nodes) == batch.within[-1]
    whole = dense_transition(graph, "sym", True)
    layers = [dense(matrix) for matrix in batch.matrices(*F64)]
    assert [layer.shape for layer in layers] == [
        (batch.within[hop], batch.within[hop + 1]) for hop in reversed(range(hops))
    ]
    for layer in layers:
        rows, columns = (batch.nodes[:size] for size in layer.shape)
        for row, values in zip(rows, layer, strict=True):
            degree = graph.out_degree[row]
            drawn = degree if limit is None else min(degree, limit)
            expected = whole[row, columns] * (degree / max(drawn, 1))
            expected[columns == row] = whole[row, row]
            kept = values != 0
            np.testing.assert_allclose(values[kept], expected[kept])
            assert kept.sum() == drawn + 1
    again = sampler.batch(roots, np.random.default_rng(1))
    other = NeighbourSampler(graph, hops, limit).batch(roots, np.random.default_rng(1))
    np.testing.assert_array_equal(again.nodes, other.nodes)  # nothing is left of the batch before


def test_sums_over_drawn_neighbours_are_right_on_average():
    graph = small_graph()
    sampler, rng = NeighbourSampler(graph, 1, 3), np.random.default_rng(0)
    roots = np.arange(graph.num_nodes)
    assert (graph.out_degree > 3).sum() > 50
    mean, rounds = np.zeros((graph.num_nodes, graph.num_nodes)), 3000
    for _ in range(rounds):
        (matrix,) = sampler.batch(roots, rng).matrices(*F64)
        mean += dense(matrix) / rounds
    np.testing.assert_allclose(mean, dense_transition(graph, "sym", True), atol=0.02)


def test_draws_are_distinct_and_all_sets_alike():
    drawn = distinct_draws(np.full(30_000, 5), 3, np.random.default_rng(1))
    counted = Counter(tuple(sorted(row)) for row in drawn.tolist())
    assert set(counted) == set(combinations(range(5), 3))
    assert max(abs(count - 3000) for count in counted.values()) < 5 * 3000**0.5
    whole = distinct_draws(np.array([3, 3]), 3, np.random.default_rng(1))
    np.testing.assert_array_equal(np.sort(whole), [[0, 1, 2]] * 2)
