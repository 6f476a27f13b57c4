import logging
import sys

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
from gpn_scale.errors import ConfigError
from precompute import coarsening
from precompute.clusters import partition_nodes
from tests.strategies import graphs


def ring(num_nodes, *, isolated=0, directed=False):
    source = np.arange(num_nodes)
    return build_graph(
        source,
        (source + 1) % max(num_nodes, 1),
        name="ring",
        num_nodes=num_nodes + isolated,
        directed=directed,
    )


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("num_clusters", [2, 5, 12])
def test_clusters_are_of_like_size_and_cut_few_edges(num_clusters, directed):
    graph = ring(600, directed=directed)
    cluster = partition_nodes(graph, num_clusters)
    assert cluster.dtype == np.int32
    sizes = np.bincount(cluster, minlength=num_clusters)
    assert sizes.max() <= 2 * 600 / num_clusters
    assert np.count_nonzero(cluster != np.roll(cluster, 1)) <= 3 * num_clusters
    np.testing.assert_array_equal(cluster, partition_nodes(graph, num_clusters), strict=True)


@pytest.mark.parametrize("isolated", [1, 90, 5000])
def test_isolated_nodes_fill_the_smaller_clusters(isolated):
    cluster = partition_nodes(ring(100, isolated=isolated), 10)
    sizes = np.bincount(cluster, minlength=10)
    assert sizes.sum() == 100 + isolated
    assert len(np.unique(cluster[:100])) == 10  # the ring is divided as if it were alone
    assert sizes.max() <= max(-(-(100 + isolated) // 10), np.bincount(cluster[:100]).max())


@settings(max_examples=200)
@given(graph=graphs(), num_clusters=st.integers(1, 12))
def test_every_graph_has_clusters(graph, num_clusters):
    cluster = partition_nodes(graph, num_clusters)
    assert cluster.shape == (graph.num_nodes,)
    assert cluster.dtype == np.int32
    assert ((cluster >= 0) & (cluster < num_clusters)).all()


def test_clusters_stay_in_range_where_metis_leaves_parts_empty():
    """A number outside the range would lead compiled kernels out of their arrays."""
    for rng_seed in range(300):
        rng = np.random.default_rng(rng_seed)
        num_nodes, num_clusters = int(rng.integers(5, 60)), int(rng.integers(2, 13))
        ends = rng.integers(num_nodes, size=(2, num_nodes * int(rng.integers(1, 5))))
        cluster = partition_nodes(build_graph(*ends, num_nodes=num_nodes), num_clusters)
        assert ((cluster >= 0) & (cluster < num_clusters)).all(), rng_seed


@pytest.mark.parametrize(("num_nodes", "num_clusters"), [(1, 1), (1, 4), (5, 1), (40, 39), (3, 99)])
def test_more_clusters_than_nodes_and_other_corners(num_nodes, num_clusters):
    graph = build_graph(
        np.arange(num_nodes), np.zeros(num_nodes, np.int64), name="star", num_nodes=num_nodes
    )
    cluster = partition_nodes(graph, num_clusters)
    assert cluster.shape == (num_nodes,)
    assert ((cluster >= 0) & (cluster < num_clusters)).all()
    if num_clusters == 1:
        assert not cluster.any()


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("isolated", [0, 40, 5000])
def test_clusters_of_a_coarsened_graph(isolated, directed, monkeypatch):
    graph = ring(1000, isolated=isolated, directed=directed)
    monkeypatch.setattr(coarsening, "METIS_EDGES", 100)
    cluster = partition_nodes(graph, 5)
    on_ring = cluster[:1000]
    assert cluster.dtype == np.int32
    assert ((cluster >= 0) & (cluster < 5)).all()
    assert len(np.unique(on_ring)) == 5
    assert np.count_nonzero(on_ring != np.roll(on_ring, 1)) <= 3 * 5
    largest = max(-(-(1000 + isolated) // 5), np.bincount(on_ring).max())
    assert np.bincount(cluster).max() <= largest


@pytest.fixture(scope="module")
def large_graph(sized):
    return synthetic_graph(SyntheticConfig(nodes=sized(2000, 500), features=2))


def test_coarsened_clusters_do_not_depend_on_threads_and_cut_about_what_metis_cuts(
    large_graph, monkeypatch
):
    graph = large_graph

    def cut(cluster):
        source = np.repeat(cluster, np.diff(graph.indptr))
        return np.mean(source != cluster[graph.indices])

    whole = partition_nodes(graph, 4)
    monkeypatch.setattr(coarsening, "METIS_EDGES", graph.num_edges // 4)
    expected = partition_nodes(graph, 4)
    assert (expected != whole).any()
    assert cut(expected) <= 1.3 * cut(whole)
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        np.testing.assert_array_equal(partition_nodes(graph, 4), expected, strict=True)
    finally:
        numba.set_num_threads(before)


@pytest.mark.parametrize("num_clusters", [0, -3])
def test_no_clusters_are_refused(num_clusters):
    with pytest.raises(ConfigError, match=f"clusters is {num_clusters}, expected at least 1"):
        partition_nodes(ring(4), num_clusters)


def test_without_pymetis_clusters_are_blocks_and_it_says_so(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with caplog.at_level(logging.WARNING):
        cluster = partition_nodes(ring(7), 3)
    np.testing.assert_array_equal(cluster, np.array([0, 0, 0, 1, 1, 2, 2], np.int32), strict=True)
    assert "pymetis is not installed" in caplog.text
