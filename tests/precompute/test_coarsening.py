import sys

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.metis import metis_partition
from precompute import coarsening
from precompute.coarsening import (
    coarsened,
    contracted,
    fill_up,
    joined_neighbours,
    multilevel_partition,
    partition_bytes,
    partition_seconds,
    unweighted,
)


def adjacency_of(source, target, num_nodes):
    graph = build_graph(source, target, name="drawn", num_nodes=num_nodes)
    return graph.indptr, graph.indices


def random_adjacency(num_nodes, num_edges, rng_seed=0):
    ends = np.random.default_rng(rng_seed).integers(num_nodes, size=(2, num_edges))
    return adjacency_of(*ends, num_nodes)


def planted(num_blocks, block_size, within=12, across=2):
    """Blocks of consecutive nodes, of so many edges a node, mixed up by a permutation."""
    rng, num_nodes = np.random.default_rng(3), num_blocks * block_size
    inner = rng.integers(num_nodes, size=num_nodes * within // 2)
    inner_end = inner // block_size * block_size + rng.integers(block_size, size=len(inner))
    outer, outer_end = rng.integers(num_nodes, size=(2, num_nodes * across // 2))
    place = rng.permutation(num_nodes)
    source, target = place[np.append(inner, outer)], place[np.append(inner_end, outer_end)]
    block = np.empty(num_nodes, np.int64)
    block[place] = np.arange(num_nodes) // block_size
    return *adjacency_of(source, target, num_nodes), block


def dense(graph):
    shape = (graph.num_nodes, graph.num_nodes)
    return scipy.sparse.csr_array((graph.edge_weight, graph.indices, graph.indptr), shape).toarray()


def cut_fraction(indptr, indices, cluster):
    return np.mean(np.repeat(cluster, np.diff(indptr)) != cluster[indices])


@st.composite
def weighted_graphs(draw):
    """Graphs with weights other than 1, and nodes without edges: contracted ones."""
    num_nodes = draw(st.integers(1, 30))
    num_edges, rng_seed = draw(st.integers(0, 60)), draw(st.integers(0, 1000))
    graph = unweighted(*random_adjacency(num_nodes, num_edges, rng_seed))
    label = np.random.default_rng(rng_seed).integers(
        draw(st.integers(1, num_nodes)), size=num_nodes
    )
    return contracted(graph, np.unique(label, return_inverse=True)[1].astype(np.int32))


def slowly_joined(graph, heaviest, rounds=3):
    """The rule of `joined_neighbours`, over a dense matrix."""
    matrix, load = dense(graph), graph.node_weight
    label = np.arange(len(load))

    def ties(node):
        return {c: matrix[node, label == c].sum() for c in np.unique(label[matrix[node] > 0])}

    for _ in range(rounds):
        for node in range(len(load)):
            tie, own = ties(node), label[node]
            label[node] = -1  # groups are weighed without it
            weight = {c: load[label == c].sum() for c in {own, *tie}}
            fitting = {c: w**2 / weight[c] for c, w in tie.items() if c != own}
            fitting = {c: r for c, r in fitting.items() if weight[c] + load[node] <= heaviest}
            fitting[own] = tie.get(own, 0) ** 2 / max(weight[own], 1)
            label[node] = min(fitting, key=lambda c: (-fitting[c], c))
    hanging = {}
    for node in range(len(load)):
        own, tie = label[node], ties(node)
        if tie and load[label == own].sum() == load[node]:
            best = min(tie, key=lambda c: (-tie[c], c))
            other = hanging.get(best)
            if other is not None and load[label == other].sum() + load[node] <= heaviest:
                label[node] = other
            else:
                hanging[best] = own
    first = list(dict.fromkeys(label.tolist()))
    return np.array([first.index(c) for c in label], np.int32)


@settings(max_examples=200)
@given(graph=weighted_graphs(), heaviest=st.integers(0, 12))
def test_neighbours_join_as_in_the_slow_version(graph, heaviest):
    np.testing.assert_array_equal(
        joined_neighbours(graph, heaviest), slowly_joined(graph, heaviest), strict=True
    )


@settings(max_examples=200)
@given(graph=weighted_graphs(), num_groups=st.integers(1, 9), rng_seed=st.integers(0, 99))
def test_weights_of_a_contracted_graph_add_up(graph, num_groups, rng_seed):
    drawn = np.random.default_rng(rng_seed).integers(num_groups, size=graph.num_nodes)
    label = np.unique(drawn, return_inverse=True)[1].astype(np.int32)
    coarse = contracted(graph, label)
    member = np.eye(label.max() + 1, dtype=np.int64)[label]
    expected = member.T @ dense(graph) @ member
    np.fill_diagonal(expected, 0)
    np.testing.assert_array_equal(dense(coarse), expected)
    assert coarse.indptr[-1] == len(coarse.indices) == np.count_nonzero(expected)
    np.testing.assert_array_equal(coarse.node_weight, graph.node_weight @ member)


def test_nodes_without_edges_weigh_nothing():
    graph = unweighted(*adjacency_of([0, 3], [3, 5], 7))
    assert graph.node_weight.tolist() == [1, 0, 0, 1, 0, 1, 0]
    assert graph.num_linked == 3
    assert graph.edge_weight.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("heaviest", [0, 1, 2, 7, 1000])
def test_groups_are_not_heavier_than_allowed(heaviest):
    graph = unweighted(*random_adjacency(500, 1500))
    for wanted in (1200, 0):
        coarse, coarse_of_node = coarsened(graph, heaviest, wanted)
        counts = np.bincount(coarse_of_node, graph.node_weight, coarse.num_nodes)
        np.testing.assert_array_equal(counts, coarse.node_weight)
        assert coarse.node_weight.max() <= max(heaviest, 1)
        inside = np.repeat(coarse_of_node, np.diff(graph.indptr)) == coarse_of_node[graph.indices]
        assert coarse.edge_weight.sum() == np.count_nonzero(~inside)
        if heaviest < 2:
            assert coarse.num_nodes == 500
        if heaviest == 1000:
            assert len(coarse.indices) <= wanted


def test_a_graph_that_is_small_enough_stays():
    graph = unweighted(*random_adjacency(50, 100))
    coarse, coarse_of_node = coarsened(graph, 10, len(graph.indices))
    assert coarse is graph
    assert coarse_of_node.tolist() == list(range(50))


def test_leaves_of_a_hub_join_each_other():
    leaves = 1000
    graph = unweighted(*adjacency_of(np.zeros(leaves, np.int64), np.arange(1, leaves + 1), 1001))
    sizes = np.bincount(joined_neighbours(graph, 10))
    assert sizes.max() == 10
    assert len(sizes) == 101


@given(cluster=st.lists(st.integers(-1, 3), min_size=1, max_size=40), weights=st.integers(1, 5))
def test_clusters_are_filled_up_evenly_and_in_order(cluster, weights):
    cluster = np.array(cluster, np.int32)
    absent = cluster < 0
    weight = (
        np.random.default_rng(len(cluster)).integers(1, weights + 1, len(cluster)).astype(np.int32)
    )
    filled = cluster.copy()
    fill_up(filled, weight, 4)
    np.testing.assert_array_equal(filled[~absent], cluster[~absent])
    assert ((filled >= 0) & (filled < 4)).all()
    assert (np.diff(filled[absent]) >= 0).all()
    mean = -(-int(weight.sum()) // 4)
    before = np.bincount(cluster[~absent], weight[~absent], 4)
    after = np.bincount(filled, weight, 4)
    assert (after[after > before] < mean + weight.max()).all()
    if weights == 1:  # one place for each node
        room = np.repeat(np.arange(4), np.maximum(mean - before, 0).astype(int))
        np.testing.assert_array_equal(filled[absent], room[: np.count_nonzero(absent)])


@pytest.fixture
def coarse_always(monkeypatch):
    monkeypatch.setattr(coarsening, "METIS_EDGES", 0)


@settings(max_examples=100)
@given(
    num_nodes=st.integers(1, 40),
    num_edges=st.integers(0, 80),
    num_clusters=st.integers(1, 6),
    metis_edges=st.integers(0, 40),
)
def test_every_linked_node_has_a_cluster(num_nodes, num_edges, num_clusters, metis_edges):
    indptr, indices = random_adjacency(num_nodes, num_edges)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coarsening, "METIS_EDGES", metis_edges)
        patch.setattr(coarsening, "_NODES_PER_CLUSTER", 2)  # joins nodes of small graphs too
        cluster = multilevel_partition(indptr, indices, num_clusters)
    assert cluster.dtype == np.int32
    assert cluster.shape == (num_nodes,)
    np.testing.assert_array_equal(cluster >= 0, np.diff(indptr) > 0)
    assert cluster.max() < num_clusters


def test_up_to_the_threshold_metis_alone_divides(monkeypatch):
    indptr, indices, _ = planted(4, 100)
    expected = metis_partition(indptr, indices, 8)
    monkeypatch.setattr(coarsening, "METIS_EDGES", len(indices))
    np.testing.assert_array_equal(multilevel_partition(indptr, indices, 8), expected, strict=True)
    monkeypatch.setattr(coarsening, "METIS_EDGES", len(indices) - 1)
    assert (multilevel_partition(indptr, indices, 8) != expected).any()


@pytest.mark.parametrize("metis_edges", [0, 20_000])
def test_planted_blocks_are_found(metis_edges, monkeypatch):
    indptr, indices, block = planted(8, 400)
    monkeypatch.setattr(coarsening, "METIS_EDGES", metis_edges)
    cluster = multilevel_partition(indptr, indices, 8)
    sizes = np.bincount(cluster, minlength=8)
    assert sizes.max() <= np.ceil(1.3 * 400)
    assert cut_fraction(indptr, indices, cluster) <= 1.1 * cut_fraction(indptr, indices, block)


def test_small_components_stay_whole_and_fill_the_clusters(coarse_always):
    first = 3 * np.arange(600)
    source, target = np.tile(first, 3), np.tile(first, 3) + np.repeat([0, 1, 2], 600)
    source = source + np.repeat([1, 2, 0], 600)
    indptr, indices = adjacency_of(source, target, 2000)  # triangles, then 200 isolated nodes
    cluster = multilevel_partition(indptr, indices, 4)
    assert cut_fraction(indptr, indices, cluster) == 0
    assert (cluster[1800:] == -1).all()
    assert np.bincount(cluster[:1800], minlength=4).tolist() == [450] * 4


def test_the_same_graph_gives_the_same_parts_from_a_file(tmp_path, coarse_always):
    indptr, indices, _ = planted(6, 200)
    expected = multilevel_partition(indptr, indices, 6)
    mapped = []
    for name, array in (("indptr", indptr), ("indices", indices)):
        np.save(tmp_path / f"{name}.npy", array)
        mapped.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    np.testing.assert_array_equal(multilevel_partition(*mapped, 6), expected, strict=True)


def test_without_pymetis_there_are_no_clusters(monkeypatch, coarse_always):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    assert multilevel_partition(*random_adjacency(100, 300), 2) is None


def test_cost_is_that_of_metis_up_to_the_threshold_and_linear_beyond():
    assert partition_bytes(10**5, 10**6) == 120 * 10**6
    assert partition_seconds(10**6) == pytest.approx(0.5)
    assert partition_bytes(10**7, 10**8) < 4e9 < 120 * 10**8
    assert partition_bytes(10**8, 10**9) == 10 * partition_bytes(10**7, 10**8)
    assert partition_bytes(0, 2**31) == 1.5 * 16 * 2**31  # edge weights in int64 from here on
    assert partition_seconds(10**9) == pytest.approx(10 * partition_seconds(10**8))
