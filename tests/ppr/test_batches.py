import threading
from dataclasses import fields, replace
from tempfile import TemporaryDirectory
from typing import get_args
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from gpn_scale.config import DiffusionConfig, MinibatchConfig, TailKind
from gpn_scale.data.features import scale_features
from gpn_scale.data.graph import CSRFeatures
from gpn_scale.errors import ConfigError, StoreError
from gpn_scale.ppr import batches
from gpn_scale.ppr.batches import (
    BatchLoader,
    BatchSource,
    ClusterSampling,
    EpochCost,
    assemble_batch,
    check_roots,
    epoch_cost,
)
from gpn_scale.ppr.inclusion import Coverage
from gpn_scale.ppr.rows import Rows
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.tails import make_tail
from gpn_scale.rank_part import RankPart
from tests.ppr.stored import write_store
from tests.strategies import graphs

DIFFUSION = DiffusionConfig(teleport=0.3, steps=4)


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk():
    with mock.patch("os.fsync"):
        yield


@pytest.fixture(scope="module")
def store(small_graph, tmp_path_factory):
    """Rows of every third node."""
    folder = str(tmp_path_factory.mktemp("store"))
    roots = list(range(0, small_graph.num_nodes, 3))
    return write_store(folder, small_graph, DIFFUSION, k=6, clusters=4, roots=roots)


@pytest.fixture
def make_loader(small_graph, store):
    def loader(roots=None, *, features=small_graph.features, rng_seed=5, **options):
        config = MinibatchConfig(**{"batch_size": 16, "workers": 0, "tail_nodes": 20, **options})
        tail = make_tail(config, store, small_graph, DIFFUSION)
        roots = store.roots[:75] if roots is None else roots
        source = BatchSource(store=store, tail=tail, features=features)
        return BatchLoader(roots, source, config, rng_seed=rng_seed)

    return loader


def dense(features):
    return features.to_dense() if isinstance(features, CSRFeatures) else np.asarray(features)


def assert_same_batch(got, expected):
    for field in fields(expected):
        left, right = getattr(got, field.name), getattr(expected, field.name)
        if isinstance(left, Rows):
            assert_same_batch(left, right)
        elif left is None or right is None:
            assert left is right
        else:
            np.testing.assert_array_equal(dense(left), dense(right), err_msg=field.name)


def assert_same_batches(got, expected):
    for left, right in zip(got, expected, strict=True):
        assert_same_batch(left, right)


@given(
    graph=graphs(),
    kind=st.sampled_from(get_args(TailKind)),
    k=st.integers(1, 4),
    draw=st.integers(0, 9),
    rng_seed=st.integers(0, 9),
    data=st.data(),
)
def test_a_batch_is_what_a_dictionary_would_say(graph, kind, k, draw, rng_seed, data):
    node = st.integers(0, graph.num_nodes - 1)
    roots = np.array(data.draw(st.lists(node, max_size=6)), np.int64)
    config = MinibatchConfig(tail=kind)
    with TemporaryDirectory() as folder:
        store = write_store(folder, graph, DIFFUSION, k=k, clusters=2)
        tail = make_tail(config, store, graph, DIFFUSION)
        coverage = Coverage(roots, store, draw)
        rng = np.random.default_rng(rng_seed)
        sampling = ClusterSampling(coverage=coverage, root_fraction=0.5, rng=rng)
        source = BatchSource(store=store, tail=tail, features=graph.features)
        batch = assemble_batch(roots, source, sampling if draw else None)
        rows, cluster_weight = tail.apply(roots, store.rows(roots))
        drawn = tail.draw(draw, np.random.default_rng(rng_seed))
        support = batch.support_global
        weight = tail.weight_of(support) / coverage.probability(support, 0.5) if draw else []
        cluster = tail.cluster_of(support) if draw else []

    position = {}
    for chosen in sorted({*rows.ids.tolist(), *roots.tolist(), *drawn.node_global.tolist()}):
        position[chosen] = len(position)
    assert batch.support_global.tolist() == list(position)
    assert batch.root_global.tolist() == roots.tolist()
    assert batch.root_local.tolist() == [position[root] for root in roots]
    assert batch.rows.ids.tolist() == [position[chosen] for chosen in rows.ids.tolist()]
    for name in ("row_ptr", "weights", "missing_mass", "cut_mass"):
        np.testing.assert_array_equal(getattr(batch.rows, name), getattr(rows, name), strict=True)
    np.testing.assert_array_equal(batch.cluster_weight, cluster_weight, strict=True)
    np.testing.assert_array_equal(batch.cluster, cluster)
    np.testing.assert_allclose(batch.weight_in_cluster, weight, rtol=1e-6)
    places = (batch.root_local, batch.rows.ids, batch.cluster, batch.support_global)
    assert {place.dtype for place in places} == {np.dtype(np.int64)}
    if graph.features is None:
        assert batch.features is None
    else:
        expected = dense(graph.features)[list(position)]
        np.testing.assert_array_equal(dense(batch.features), expected, strict=True)


@pytest.mark.parametrize("sparse", [False, True])
def test_features_are_scaled_as_those_of_all_nodes(small_graph, store, sparse):
    features = np.abs(np.asarray(small_graph.features))
    if sparse:
        num_nodes, num_columns = features.shape
        features = CSRFeatures(
            indptr=np.arange(num_nodes + 1) * num_columns,
            indices=np.tile(np.arange(num_columns, dtype=np.int32), num_nodes),
            values=features.astype(np.float32).ravel(),
            num_columns=num_columns,
        )
    tail = make_tail(MinibatchConfig(), store, small_graph, DIFFUSION)
    source = BatchSource(store=store, tail=tail, features=features, scaling="row_sum")
    batch = assemble_batch(store.roots[:5], source)
    assert isinstance(batch.features, CSRFeatures) == sparse
    expected = dense(scale_features(features, "row_sum"))[batch.support_global]
    np.testing.assert_allclose(dense(batch.features), expected, rtol=1e-6)


def test_half_precision_stays_what_it_is(small_graph, make_loader):
    features = np.asarray(small_graph.features).astype(np.float16)
    batch = next(make_loader(features=features).epoch(0))
    assert batch.features.dtype == np.float16


@pytest.mark.parametrize(
    ("batch_size", "sizes"), [(16, [16] * 4 + [11]), (75, [75]), (25, [25] * 3)]
)
def test_every_root_comes_once_an_epoch(make_loader, store, batch_size, sizes):
    loader = make_loader(batch_size=batch_size)
    epochs = [list(loader.epoch(number)) for number in range(3)]
    orders = [np.concatenate([batch.root_global for batch in epoch]) for epoch in epochs]
    for epoch, roots in zip(epochs, orders, strict=True):
        assert [len(batch.root_global) for batch in epoch] == sizes
        assert sorted(roots.tolist()) == store.roots[:75].tolist()
    assert loader.num_batches == len(sizes)
    assert len({tuple(roots.tolist()) for roots in orders}) == 3
    for batch in (batch for epoch in epochs for batch in epoch):
        assert len(batch.cluster) == len(batch.weight_in_cluster) == len(batch.support_global)


@pytest.mark.parametrize("tail", ["clustered", "truncated"])
def test_batches_depend_on_seed_and_epoch_and_not_on_workers(make_loader, tail):
    options = {"tail": tail}
    expected = list(make_loader(**options).epoch(2))
    for workers in (0, 1, 3):
        loader = make_loader(workers=workers, **options)
        list(loader.epoch(1))
        assert_same_batches(loader.epoch(2), expected)
    for other in (make_loader(**options).epoch(3), make_loader(rng_seed=6, **options).epoch(2)):
        assert any(
            left.root_global.tolist() != right.root_global.tolist()
            for left, right in zip(other, expected, strict=True)
        )


def test_batches_draw_nodes_of_their_own(make_loader):
    def drawn(batch):
        own = {*batch.rows.ids.tolist(), *batch.root_local.tolist()}
        return tuple(sorted(set(range(len(batch.support_global))) - own))

    loader = make_loader()
    assert len({drawn(batch) for number in (0, 1) for batch in loader.epoch(number)}) == 10


def own_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("batches")]


def test_leaving_early_ends_the_threads(make_loader):
    loader = make_loader(workers=3)
    iterator = loader.epoch(0)
    next(iterator)
    assert own_threads()
    iterator.close()
    assert not own_threads()

    def consume():
        for _ in loader.epoch(0):
            raise RuntimeError("the consumer failed")

    with pytest.raises(RuntimeError, match="the consumer failed"):
        consume()
    assert not own_threads()
    assert len(list(loader.epoch(0))) == 5
    assert not own_threads()


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_an_error_reaches_the_consumer_in_its_turn(make_loader, workers, monkeypatch):
    loader = make_loader(workers=workers)
    bad = loader.epoch_roots(0)[2]

    def failing(root_global, *rest, **options):
        if root_global.tolist() == bad.tolist():
            raise OSError("the disk is gone")
        return assemble_batch(root_global, *rest, **options)

    monkeypatch.setattr(batches, "assemble_batch", failing)
    seen = []
    with pytest.raises(OSError, match="the disk is gone"):
        seen.extend(batch.root_global.tolist() for batch in loader.epoch(0))
    assert not own_threads()
    iterator = loader.epoch(0)
    assert [len(next(iterator).root_global) for _ in range(2)] == [16, 16]
    with pytest.raises(OSError, match="the disk is gone"):
        next(iterator)


@pytest.mark.parametrize("workers", [1, 3])
def test_workers_are_only_a_few_batches_ahead(make_loader, workers, monkeypatch):
    begun = []

    def counted(*arguments, **options):
        begun.append(1)
        return assemble_batch(*arguments, **options)

    monkeypatch.setattr(batches, "assemble_batch", counted)
    iterator = make_loader(batch_size=5, workers=workers).epoch(0)
    next(iterator)
    iterator.close()  # waits for what has begun
    assert 1 <= len(begun) <= workers + 1


def test_the_cost_of_an_epoch_counts_supports(make_loader, store):
    loader = make_loader(tail="truncated")
    supports = [set(batch.support_global.tolist()) for batch in loader.epoch(1)]
    cost = epoch_cost(loader.epoch_roots(1), store)
    assert cost.encodings == sum(map(len, supports))
    assert cost.distinct == len(set.union(*supports))
    assert cost.repeated_fraction == pytest.approx(1 - cost.distinct / cost.encodings)
    assert epoch_cost([], store) == EpochCost(encodings=0, distinct=0)


@pytest.mark.parametrize("size", [1, 2, 3, 20])
def test_ranks_divide_a_batch(small_graph, store, size):
    tail = make_tail(MinibatchConfig(), store, small_graph, DIFFUSION)
    source = BatchSource(store=store, tail=tail, features=small_graph.features, block=8)
    roots = store.roots[:10]
    whole = assemble_batch(roots, source)
    parts = [
        assemble_batch(roots, replace(source, part=RankPart(rank, size))) for rank in range(size)
    ]
    np.testing.assert_array_equal(
        np.concatenate([dense(part.features) for part in parts]), dense(whole.features)
    )
    for part in parts:
        for name in ("root_global", "root_local", "support_global", "cluster_weight"):
            np.testing.assert_array_equal(getattr(part, name), getattr(whole, name), err_msg=name)
        assert part.num_roots == part.rows.num_rows == 10
        assert part.encoded.start % 8 == 0
    # Every rank has the entries of its own nodes; together they are those of whole rows.
    matrices = [
        csr_matrix(
            (part.rows.weights, part.rows.ids, part.rows.row_ptr),
            shape=(10, part.encoded.stop - part.encoded.start),
        ).toarray()
        for part in parts
    ]
    rows = csr_matrix((whole.rows.weights, whole.rows.ids, whole.rows.row_ptr))
    np.testing.assert_array_equal(np.hstack(matrices), rows.toarray())


def test_too_large_batches_are_refused(make_loader):
    with pytest.raises(ConfigError, match=r"minibatch.batch_size is 76, .* at most the 75 nodes"):
        make_loader(batch_size=76)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (1, "node 1 is not among the 100 roots"),
        (-3, "node -3 is out of range"),
        (300, "node 300 is out of range"),
    ],
)
def test_roots_without_rows_are_refused_before_anything_is_read(make_loader, store, node, message):
    roots = np.append(store.roots[:40], node)
    with pytest.raises(StoreError, match=message):
        make_loader(roots)


def test_checking_roots_reads_no_rows(store):
    other = PPRStore.open(store.path)
    with mock.patch.object(other, "_shard", side_effect=AssertionError):
        check_roots(other.roots, other)


def test_a_store_of_all_nodes_is_checked_by_range(small_graph, tmp_path):
    full = write_store(str(tmp_path), small_graph, DIFFUSION, k=2)
    check_roots(np.arange(300), full)
    with pytest.raises(StoreError, match="node 300 is out of range"):
        check_roots(np.arange(301), full)


def test_the_order_of_an_epoch_and_its_first_batch_have_streams_of_their_own():
    # As plain seeds, [5, 1] and [5, 1, 0] are the same.
    assert batches._generator(5, 1).random() != batches._generator(5, 1, 0).random()
