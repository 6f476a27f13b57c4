"""Which nodes to label next: columns against dense matrices, and who may be chosen."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.config import DiffusionConfig
from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Split
from gpn_scale.errors import ConfigError, StoreError
from gpn_scale.triage import label_next as module
from gpn_scale.triage.label_next import (
    DiffusedColumns,
    label_candidates,
    label_next,
    stored_columns,
    unused_nodes,
)
from tests.ppr.stored import exact_rows, write_store
from tests.triage.test_coverage import plain_greedy

DIFFUSIONS = [
    DiffusionConfig(normalisation="sym", steps=3),
    DiffusionConfig(normalisation="rw", steps=3, self_loops=False),
]


def random_graph(rng_seed, num_nodes=20, directed=False):
    rng = np.random.default_rng(rng_seed)
    ends = rng.integers(num_nodes, size=(2, 2 * num_nodes))
    labels = rng.integers(-1, 2, num_nodes)
    labels[:4] = [0, 1, 0, 1]
    split = Split(train=[0, 1], val=[2, 3], test=np.flatnonzero(labels >= 0)[4:])
    return build_graph(
        *ends, num_nodes=num_nodes, labels=labels, split=split, directed=directed
    ), rng.random(num_nodes)


def open_at(graph, uncertainty):
    """The uncertainty of nodes that neither training nor validation has used."""
    used = [*graph.split.train, *graph.split.val]
    return np.array([0.0 if u in used else uncertainty[u] for u in range(graph.num_nodes)])


@pytest.mark.parametrize("diffusion", DIFFUSIONS, ids=["sym", "rw"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("full", [None, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_computed_columns_choose_as_a_dense_matrix_does(diffusion, directed, full, seed):
    graph, uncertainty = random_graph(seed, directed=directed)
    candidates = unused_nodes(graph)
    dense = exact_rows(graph, diffusion)
    dense = np.minimum(np.where(dense >= 1e-5, dense, 0.0) / (full or diffusion.teleport), 1.0)
    expected = plain_greedy(candidates, dense.T[candidates], open_at(graph, uncertainty), 8)
    cover = label_next(graph, diffusion, uncertainty, 8, candidates=candidates, full=full)
    assert cover.node.tolist() == expected


@pytest.mark.parametrize("diffusion", DIFFUSIONS, ids=["sym", "rw"])
@pytest.mark.parametrize("k", [3, 20])
def test_stored_columns_choose_as_the_cut_rows_do(diffusion, k, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", 7)
    graph, uncertainty = random_graph(1)
    store = write_store(tmp_path / "store", graph, diffusion, k=k)
    candidates = unused_nodes(graph)
    dense = np.zeros((graph.num_nodes, graph.num_nodes))
    for root in range(graph.num_nodes):
        ids, weights = store.row(root)
        dense[root, ids] = np.minimum(weights / np.float32(diffusion.teleport), 1.0)
    expected = plain_greedy(candidates, dense.T[candidates], open_at(graph, uncertainty), 8)
    cover = label_next(graph, diffusion, uncertainty, 8, store=store, candidates=candidates)
    assert cover.node.tolist() == expected


def test_a_store_with_all_entries_and_computed_columns_agree(tmp_path):
    graph, uncertainty = random_graph(2)
    store = write_store(tmp_path / "store", graph, DIFFUSIONS[0], k=graph.num_nodes)
    stored = label_next(graph, DIFFUSIONS[0], uncertainty, 5, store=store)
    computed = label_next(graph, DIFFUSIONS[0], uncertainty, 5)
    assert stored.node.tolist() == computed.node.tolist()
    np.testing.assert_allclose(stored.gain, computed.gain, rtol=1e-5)


def test_a_label_that_would_tell_nothing_is_asked_for_last():
    graph, uncertainty = random_graph(8)
    candidates = unused_nodes(graph)
    factor = np.ones(graph.num_nodes)
    first = label_next(graph, DIFFUSIONS[0], uncertainty, 1, candidates=candidates).node[0]
    factor[first] = 0.0
    every = len(candidates)
    cover = label_next(
        graph, DIFFUSIONS[0], uncertainty, every, candidates=candidates, factor_N=factor
    )
    assert cover.gain[cover.node == first] == 0.0
    assert cover.node[0] != first


def test_stored_columns_have_a_place_for_every_candidate(tmp_path):
    graph, _ = random_graph(3)
    store = write_store(tmp_path / "store", graph, DIFFUSIONS[0], k=2, roots=[4, 9])
    columns = stored_columns(store, np.array([0, 4, 19]))
    assert len(columns.column_ptr) == 4
    assert set(columns.ids.tolist()) <= {4, 9}


@given(seed=st.integers(0, 1_000), count=st.integers(0, 4))
def test_no_training_or_validation_node_is_offered(seed, count):
    graph, uncertainty = random_graph(seed)
    everyone = np.arange(graph.num_nodes)
    cover = label_next(graph, DIFFUSIONS[0], uncertainty, count, candidates=everyone)
    assert len(cover.node) == count
    assert not set(cover.node.tolist()) & {0, 1, 2, 3}


def test_unlabelled_nodes_are_offered_and_test_nodes_only_without_them():
    graph, uncertainty = random_graph(4)
    assert (graph.labels[label_candidates(graph)] < 0).all()
    cover = label_next(graph, DIFFUSIONS[0], uncertainty, 3)
    assert (graph.labels[cover.node] < 0).all()
    split = Split(train=[0, 1], val=[2], test=[3])
    labelled = build_graph([0], [1], labels=[0, 1, 0, 1], split=split)
    assert label_next(labelled, DIFFUSIONS[0], np.ones(4), 1).node.tolist() == [3]


def test_a_graph_without_split_offers_unlabelled_nodes():
    graph = build_graph([0], [1], labels=[0, 1, -1])
    assert label_candidates(graph).tolist() == [2]


def test_columns_are_computed_in_blocks(monkeypatch):
    graph, uncertainty = random_graph(5)
    whole = label_next(graph, DIFFUSIONS[0], uncertainty, 4)
    monkeypatch.setattr(module, "_MOST_COLUMNS", 1)
    assert label_next(graph, DIFFUSIONS[0], uncertainty, 4).node.tolist() == whole.node.tolist()
    columns = DiffusedColumns(graph, DIFFUSIONS[0], np.arange(graph.num_nodes))
    bound = columns.bounds(np.ones(graph.num_nodes))
    for position in range(graph.num_nodes):
        assert columns.column(position)[1].sum() == pytest.approx(bound[position], rel=1e-3)


def test_more_nodes_than_there_are_are_refused():
    graph, uncertainty = random_graph(6)
    number = len(label_candidates(graph))
    message = rf"label_next is 21, expected 0 to {number}, the number of nodes that could be"
    with pytest.raises(ConfigError, match=message):
        label_next(graph, DIFFUSIONS[0], uncertainty, 21)


def test_a_large_graph_needs_a_store(monkeypatch):
    monkeypatch.setattr(module, "MAX_EXACT_NODES", 19)
    graph, uncertainty = random_graph(7)
    with pytest.raises(StoreError, match="needs stored rows, and none were given") as caught:
        label_next(graph, DIFFUSIONS[0], uncertainty, 2)
    assert caught.value.arguments == ("store",)
