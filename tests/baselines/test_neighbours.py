from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpn_scale.baselines.gcn import VGCN
from gpn_scale.baselines.neighbours import (
    NeighbourSampler,
    distinct_draws,
    ensemble_of,
    in_neighbour_batches,
)
from gpn_scale.baselines.sampled import EnsembleOptions
from gpn_scale.config import MinibatchConfig
from gpn_scale.errors import ConfigError
from tests.baselines.graphs import CONFIG, small_graph
from tests.oracles import dense_transition
from tests.strategies import graphs

BATCHED = in_neighbour_batches(VGCN)
F64 = (torch.device("cpu"), torch.float64)


def dense(matrix):
    found = np.zeros(matrix.shape)
    row = np.repeat(np.arange(matrix.shape[0]), matrix.indptr.diff())
    np.add.at(found, (row, matrix.indices.long().numpy()), matrix.values.numpy())
    return found


def minibatch(**changes):
    return replace(CONFIG, mode="minibatch", minibatch=MinibatchConfig(**changes))


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
    found, rounds = np.zeros((graph.num_nodes, graph.num_nodes)), 3000
    for _ in range(rounds):
        (matrix,) = sampler.batch(roots, rng).matrices(*F64)
        found += dense(matrix) / rounds
    np.testing.assert_allclose(found, dense_transition(graph, "sym", True), atol=0.02)


def test_draws_are_distinct_and_all_sets_alike():
    drawn = distinct_draws(np.full(30_000, 5), 3, np.random.default_rng(1))
    counted = Counter(tuple(sorted(row)) for row in drawn.tolist())
    assert set(counted) == set(combinations(range(5), 3))
    assert max(abs(count - 3000) for count in counted.values()) < 5 * 3000**0.5
    whole = distinct_draws(np.array([3, 3]), 3, np.random.default_rng(1))
    np.testing.assert_array_equal(np.sort(whole), [[0, 1, 2]] * 2)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_one_batch_with_all_neighbours_is_training_on_the_whole_graph(layers):
    graph = small_graph()
    shape = replace(CONFIG.encoder, dropout=0.0, layers=layers)
    whole = VGCN(replace(CONFIG, encoder=shape), dtype=torch.float64).fit(graph)
    config = replace(minibatch(neighbours="all"), encoder=shape)
    batched = BATCHED(config, dtype=torch.float64).fit(graph)
    for name, tensor in whole.state().items():
        torch.testing.assert_close(batched.state()[name], tensor, rtol=1e-6, atol=1e-8)


def test_drawn_neighbours_learn_and_are_repeatable(tmp_path):
    graph = small_graph()
    shape = replace(CONFIG.encoder, layers=3, batch_norm=True)
    config = replace(minibatch(batch_size=8, neighbours=2), encoder=shape)
    fitted = BATCHED(config).fit(graph)
    found, test = fitted.predict(graph), graph.split.test
    assert (found.predicted_class[test] == graph.labels[test]).mean() > 0.6
    again = BATCHED(config).fit(graph).predict(graph)
    np.testing.assert_array_equal(again.probabilities, found.probabilities)
    loaded = BATCHED(config)
    loaded.load(graph, fitted.state(), tmp_path)
    np.testing.assert_array_equal(loaded.predict(graph).probabilities, found.probabilities)


def test_members_of_an_ensemble_train_on_batches_and_the_mode_must_fit():
    graph, members = small_graph(), EnsembleOptions(members=2)
    config = minibatch(batch_size=8, neighbours=2)
    both = ensemble_of(BATCHED)(config, members).fit(graph)
    assert sorted({name.partition(".")[0] for name in both.state()}) == ["member0", "member1"]
    with pytest.raises(ConfigError, match="VGCN-minibatch trains with mode=minibatch, got mode=e"):
        BATCHED(CONFIG).fit(graph)
    with pytest.raises(ConfigError, match="VGCN-Ensemble-minibatch trains with mode=minibatch"):
        ensemble_of(BATCHED)(CONFIG, members).fit(graph)
    with pytest.raises(ConfigError, match=r"minibatch.batch_size is 500, expected auto or at most"):
        BATCHED(minibatch(batch_size=500)).fit(graph)
