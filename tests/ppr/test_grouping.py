import logging
import sys
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.config import DiffusionConfig
from gpn_scale.data.building import build_graph
from gpn_scale.ppr import grouping
from gpn_scale.ppr.batches import epoch_cost
from gpn_scale.ppr.grouping import local_ordering, shuffled_groups
from tests.ppr.stored import write_store

NUM_CLIQUES, SIZE = 12, 8
DIFFUSION = DiffusionConfig(teleport=0.2, steps=4)


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk():
    with mock.patch("os.fsync"):
        yield


def cliques():
    """Cliques whose members are `NUM_CLIQUES` apart, so that ids tell nothing."""
    member = np.arange(NUM_CLIQUES * SIZE)
    source, target = np.meshgrid(member, member)
    linked = (source - target) % NUM_CLIQUES == 0
    return build_graph(source[linked], target[linked], name="cliques", num_nodes=len(member))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("store"))
    return write_store(folder, cliques(), DIFFUSION, k=SIZE)


@pytest.fixture(scope="module")
def clustered_store(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("store"))
    return write_store(folder, cliques(), DIFFUSION, k=SIZE, clusters=NUM_CLIQUES)


def cost(roots, ordering, store, size):
    return epoch_cost(np.array_split(roots[ordering], len(roots) // size), store).encodings


def test_roots_of_one_clique_stand_together(store):
    roots = np.random.default_rng(0).permutation(NUM_CLIQUES * SIZE)
    ordering = local_ordering(roots, store, SIZE)
    assert sorted(ordering.tolist()) == list(range(len(roots)))
    runs = 1 + np.count_nonzero(np.diff(roots[ordering] % NUM_CLIQUES))
    assert runs <= 1.5 * NUM_CLIQUES
    best, worst = len(roots), cost(roots, np.arange(len(roots)), store, SIZE)
    assert cost(roots, ordering, store, SIZE) < best + 0.2 * (worst - best)
    np.testing.assert_array_equal(ordering, local_ordering(roots, store, SIZE))


def test_parts_are_balanced_by_roots():
    # A chain of roots; each shares 12 nodes with the next in the first half, 1 in the second.
    pairs = np.repeat(np.arange(63), np.where(np.arange(63) < 32, 12, 1))
    node = np.arange(len(pairs), dtype=np.int32)
    part = grouping._metis_parts(np.append(pairs, pairs + 1), np.append(node, node), 64, 16)
    sizes = np.bincount(part)
    assert len(sizes) == 8
    assert sizes.max() <= 10


@pytest.mark.parametrize("clustered", [True, False])
def test_many_roots_are_ordered_in_blocks(store, clustered_store, clustered, monkeypatch):
    monkeypatch.setattr(grouping, "_ROOTS_AT_A_TIME", 3 * SIZE)
    roots = np.random.default_rng(0).permutation(NUM_CLIQUES * SIZE)
    ordering = local_ordering(roots, clustered_store if clustered else store, SIZE)
    assert sorted(ordering.tolist()) == list(range(len(roots)))
    if clustered:  # blocks follow the clusters, which are the cliques of this store
        runs = 1 + np.count_nonzero(np.diff(roots[ordering] % NUM_CLIQUES))
        assert runs <= 1.5 * NUM_CLIQUES


@pytest.mark.parametrize("clustered", [True, False])
def test_without_pymetis_roots_are_sorted_and_it_says_so(
    store, clustered_store, clustered, monkeypatch, caplog
):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    roots = np.random.default_rng(0).permutation(NUM_CLIQUES * SIZE)
    with caplog.at_level(logging.WARNING):
        ordering = local_ordering(roots, clustered_store if clustered else store, SIZE)
    assert "pymetis is not installed: the order 'local'" in caplog.text
    assert sorted(ordering.tolist()) == list(range(len(roots)))
    if clustered:  # the clusters of this store are the cliques
        assert np.count_nonzero(np.diff(roots[ordering] % NUM_CLIQUES)) == NUM_CLIQUES - 1


def test_without_pymetis_leaves_of_one_hub_stand_together(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    leaf = np.arange(4, 40)
    stars = build_graph(leaf, leaf % 4, name="stars", num_nodes=40)
    store = write_store(str(tmp_path), stars, DIFFUSION, k=5)
    ordering = local_ordering(leaf, store, 9)
    assert np.count_nonzero(np.diff(leaf[ordering] % 4)) == 3


@pytest.mark.parametrize("metis", [True, False])
@pytest.mark.parametrize("roots", [[], [5], [5, 6], [5, 5 + NUM_CLIQUES], list(range(12))])
@pytest.mark.parametrize("group_size", [1, 4, 99])
def test_few_roots_and_roots_that_share_nothing(store, roots, group_size, metis, monkeypatch):
    if not metis:
        monkeypatch.setitem(sys.modules, "pymetis", None)
    ordering = local_ordering(np.array(roots, np.int64), store, group_size)
    assert sorted(ordering.tolist()) == list(range(len(roots)))
    assert ordering.dtype == np.int64


@given(count=st.integers(0, 40), group_size=st.integers(1, 9), rng_seed=st.integers(0, 99))
def test_shuffled_groups_are_runs_of_the_ordering(count, group_size, rng_seed):
    ordering = np.random.default_rng(0).permutation(count)
    place = {root: i for i, root in enumerate(ordering.tolist())}
    got = shuffled_groups(ordering, group_size, np.random.default_rng(rng_seed))
    assert sorted(got.tolist()) == list(range(count))
    for start in range(0, count, group_size):
        places = [place[root] for root in got[start : start + group_size].tolist()]
        assert places == [(places[0] + i) % count for i in range(len(places))]


def test_groups_are_cut_and_shuffled_anew():
    ordering, rng = np.arange(20), np.random.default_rng(0)
    epochs = [shuffled_groups(ordering, 5, rng) for _ in range(30)]
    assert len({tuple(epoch.tolist()) for epoch in epochs}) > 20
    assert {int(start) % 5 for epoch in epochs for start in epoch[::5]} == set(range(5))
