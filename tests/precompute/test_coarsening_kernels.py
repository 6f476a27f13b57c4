"""Single passes over a graph; `test_coarsening` tests them against a slow version together."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from precompute.coarsening import unweighted
from precompute.coarsening_kernels import (
    contract_into,
    join_lone_into,
    list_members_into,
    move_into,
    number_into,
    refine_into,
)
from tests.precompute.test_coarsening import adjacency_of, cut_fraction, random_adjacency


@given(rng_seed=st.integers(0, 200), num_clusters=st.integers(1, 5), largest=st.integers(1, 12))
def test_refinement_cuts_no_more_and_keeps_to_the_bound(rng_seed, num_clusters, largest):
    indptr, indices = random_adjacency(30, 50, rng_seed)
    cluster = np.random.default_rng(rng_seed).integers(num_clusters, size=30).astype(np.int32)
    cluster[np.diff(indptr) == 0] = -1
    before = cluster.copy()
    size = np.bincount(cluster[cluster >= 0], minlength=num_clusters)
    start = size.copy()
    refine_into(indptr, indices, largest, 3, cluster, size)
    np.testing.assert_array_equal(size, np.bincount(cluster[cluster >= 0], minlength=num_clusters))
    assert (size <= np.maximum(start, largest)).all()
    assert cut_fraction(indptr, indices, cluster) <= cut_fraction(indptr, indices, before)
    np.testing.assert_array_equal(cluster < 0, before < 0)


def test_refinement_brings_a_stray_node_home():
    indptr, indices = adjacency_of([0, 0, 1, 3, 3, 4, 2], [1, 2, 2, 4, 5, 5, 3], 6)
    for largest, expected in [(4, [0, 0, 0, 1, 1, 1]), (2, [0, 0, 1, 1, 1, 1])]:
        cluster = np.array([0, 0, 1, 1, 1, 1], np.int32)
        refine_into(indptr, indices, largest, 3, cluster, np.array([2, 4]))
        assert cluster.tolist() == expected


@given(label=st.lists(st.integers(0, 9), min_size=10, max_size=30))
def test_groups_are_numbered_by_their_first_nodes(label):
    label = np.array(label, np.int32)
    before = label.copy()
    number_into(label)
    firsts = list(dict.fromkeys(before.tolist()))
    assert label.tolist() == [firsts.index(group) for group in before.tolist()]


@given(label=st.lists(st.integers(0, 4), min_size=1, max_size=30))
def test_members_are_listed_by_group(label):
    label = np.array(label, np.int32)
    place = np.append(0, np.cumsum(np.bincount(label, minlength=5)))
    start, member = place[:-1].copy(), np.empty(len(label), np.int32)
    list_members_into(label, start, member)
    assert member.tolist() == np.argsort(label, kind="stable").tolist()
    assert start.tolist() == place[1:].tolist()


def test_a_node_joins_the_group_it_is_tied_to_unless_that_is_full():
    graph = unweighted(*adjacency_of([0, 1, 2], [1, 2, 0], 3))  # a triangle
    for heaviest, expected in [(3, [0, 0, 0]), (1, [0, 1, 2])]:
        label = np.arange(3, dtype=np.int32)
        tie, weight = np.zeros(3, np.int32), graph.node_weight.copy()
        move_into(*graph, heaviest, 3, label, tie, weight)
        number_into(label)
        assert label.tolist() == expected
        assert not tie.any()
        assert weight.sum() == 3


def test_lone_nodes_of_one_hub_join_each_other():
    graph = unweighted(*adjacency_of([0, 0, 0, 0], [1, 2, 3, 4], 5))
    label = np.arange(5, dtype=np.int32)
    tie, weight = np.zeros(5, np.int32), graph.node_weight.copy()
    join_lone_into(*graph, 2, label, tie, weight)
    assert label[1] == label[2] != label[3] == label[4]
    assert not tie.any()


def test_a_contracted_path_is_an_edge_of_added_weights():
    graph = unweighted(*adjacency_of([0, 1, 2], [1, 2, 3], 4))  # a path of four nodes
    label, first = np.array([0, 0, 1, 1], np.int32), np.array([0, 2, 4])
    indptr = np.zeros(3, np.int64)
    indices, weight = np.empty(6, np.int32), np.empty(6, np.int32)
    member = np.arange(4, dtype=np.int32)
    contract_into(*graph[:3], label, first, member, indptr, indices, weight)
    assert indptr.tolist() == [0, 1, 2]
    assert indices[:2].tolist() == [1, 0]
    assert weight[:2].tolist() == [1, 1]
