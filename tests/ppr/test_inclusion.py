"""Inclusion probabilities against counting, and the estimates that they make unbiased."""

from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.config import DiffusionConfig, MinibatchConfig
from gpn_scale.ppr.batches import BatchLoader, BatchSource
from gpn_scale.ppr.inclusion import Coverage
from gpn_scale.ppr.tails import make_tail
from tests.ppr.stored import write_store
from tests.strategies import graphs

DIFFUSION = DiffusionConfig(teleport=0.3, steps=4)


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk():
    with mock.patch("os.fsync"):
        yield


@given(graph=graphs(), k=st.integers(1, 4), drawn=st.integers(0, 9), data=st.data())
def test_probabilities_follow_from_the_number_of_rows_that_hold_a_node(graph, k, drawn, data):
    nodes = np.arange(graph.num_nodes)
    roots = np.array(data.draw(st.lists(st.sampled_from(nodes.tolist()), unique=True)), np.int64)
    with TemporaryDirectory() as folder:
        store = write_store(folder, graph, DIFFUSION, k=k)
        coverage = Coverage(roots, store, drawn, roots_at_a_time=2)
        at_once = Coverage(roots, store, drawn)
        uses = [
            sum(node == root or node in store.row(root)[0] for root in roots.tolist())
            for node in nodes.tolist()
        ]
    for fraction in (0.0, 0.3, 1.0):
        by_rows = np.array([(1 - fraction) ** count for count in uses])
        expected = 1 - by_rows * (1 - min(drawn, graph.num_nodes) / graph.num_nodes)
        probability = coverage.probability(nodes, fraction)
        np.testing.assert_allclose(probability, expected, atol=1e-12)
        np.testing.assert_array_equal(probability, at_once.probability(nodes, fraction))


def test_batches_estimate_sums_over_the_graph(small_graph, tmp_path):
    """The mean of many batches' weighted sums per cluster is that of all nodes."""
    roots = np.arange(0, small_graph.num_nodes, 3)
    store = write_store(str(tmp_path), small_graph, DIFFUSION, k=6, clusters=4)
    config = MinibatchConfig(batch_size=20, workers=0, tail_nodes=20)
    tail = make_tail(config, store, small_graph, DIFFUSION)
    loader = BatchLoader(roots, BatchSource(store=store, tail=tail), config, rng_seed=5)
    everyone = np.arange(small_graph.num_nodes)
    truth = np.bincount(tail.cluster_of(everyone), tail.weight_of(everyone), minlength=4)
    estimates = np.array(
        [
            np.bincount(batch.cluster, batch.weight_in_cluster, minlength=4)
            for number in range(40)
            for batch in loader.epoch(number)
            if len(batch.root_global) == 20
        ]
    )
    spread = estimates.std(0) / np.sqrt(len(estimates))
    np.testing.assert_array_less(np.abs(estimates.mean(0) - truth), 5 * spread + 0.01 * truth)
    assert (np.abs(estimates / truth - 1).mean(0) < 0.35).all()
