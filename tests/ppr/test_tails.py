from tempfile import TemporaryDirectory
from typing import get_args
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.config import DiffusionConfig, MinibatchConfig, TailKind
from gpn_scale.data.building import build_graph
from gpn_scale.errors import StoreError
from gpn_scale.ppr.tails import make_tail, stationary_weight
from tests.oracles import dense_adjacency
from tests.ppr.stored import exact_rows, write_store
from tests.strategies import graphs

KINDS = get_args(TailKind)


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk():
    with mock.patch("os.fsync"):
        yield


def diffusions():
    return st.builds(
        DiffusionConfig,
        teleport=st.sampled_from([0.1, 0.5]),
        normalisation=st.sampled_from(["sym", "rw"]),
        steps=st.sampled_from([0, 1, 4, "inf"]),
        self_loops=st.booleans(),
    )


def wheel(*, directed=False, weighted=False):
    """A ring of ten with a hub, an isolated node and (directed) one that nothing leaves."""
    ring = np.arange(10)
    source = np.concatenate([ring, np.full(4, 10), [3]])
    target = np.concatenate([(ring + 1) % 10, [0, 2, 5, 7], [12]])
    return build_graph(
        source,
        target,
        name="wheel",
        num_nodes=13,
        edge_weight=(1 + np.arange(15) % 4) / 2 if weighted else None,
        directed=directed,
    )


def tailed_of(kind, graph, store, diffusion, roots, **options):
    tail = make_tail(MinibatchConfig(tail=kind, **options), store, graph, diffusion)
    return tail.apply(roots, store.rows(roots))


def masses(rows, cluster_weight):
    """Sum of each row's weights and cluster weights, row by row."""
    return [
        rows.weights[start:stop].sum(dtype=np.float64) + own.sum(dtype=np.float64)
        for start, stop, own in zip(
            rows.row_ptr[:-1], rows.row_ptr[1:], cluster_weight, strict=True
        )
    ]


@pytest.mark.parametrize("kind", KINDS)
@given(graph=graphs(), diffusion=diffusions(), k=st.integers(1, 8), data=st.data())
def test_nothing_is_lost_but_by_truncation(kind, graph, diffusion, k, data):
    nodes = st.integers(0, graph.num_nodes - 1)
    roots = np.array(data.draw(st.lists(nodes, max_size=5)), np.int64)
    with TemporaryDirectory() as folder:
        store = write_store(folder, graph, diffusion, k=k, clusters=2)
        rows = store.rows(roots)
        tailed, cluster_weight = tailed_of(kind, graph, store, diffusion, roots)
    exact = exact_rows(graph, diffusion)[roots].sum(1)
    lost = rows.missing_mass if kind == "truncated" else 0.0
    # Masses of clusters are stored in half precision.
    np.testing.assert_allclose(masses(tailed, cluster_weight), exact - lost, rtol=1e-3, atol=1e-5)
    for name in ("row_ptr", "ids", "missing_mass", "cut_mass"):
        np.testing.assert_array_equal(getattr(tailed, name), getattr(rows, name), strict=True)
    clusters = {"clustered": 2, "stationary": 1}.get(kind, 0)
    assert cluster_weight.shape == (len(roots), clusters)
    assert (tailed.row_ptr[0], tailed.row_ptr[-1]) == (0, len(tailed.ids))
    dtypes = [array.dtype for array in (tailed.row_ptr, tailed.ids, tailed.weights)]
    assert dtypes == [np.int64, np.int32, np.float32]
    assert (tailed.weights > 0).all()
    assert cluster_weight.dtype == np.float32


@pytest.mark.parametrize("prior_mass", [0.05, 0.5, np.inf])
def test_kept_neighbours_share_the_cut_mass_of_their_cluster_with_its_mean(tmp_path, prior_mass):
    graph, diffusion = wheel(), DiffusionConfig(steps=4)
    store = write_store(str(tmp_path), graph, diffusion, k=5, clusters=3)
    roots = np.array([7, 0, 7])
    rows, cluster_weight = tailed_of(
        "clustered", graph, store, diffusion, roots, tail_prior_mass=prior_mass
    )
    exact = exact_rows(graph, diffusion)
    shared = False
    for i, root in enumerate(roots):
        kept, weights = store.row(root)
        own = slice(rows.row_ptr[i], rows.row_ptr[i + 1])
        for cluster in range(3):
            cut = sum(exact[root, node] for node in set(range(cluster, 13, 3)) - set(kept.tolist()))
            inside = (kept % 3 == cluster) & (kept != root)
            kept_mass = weights[inside].sum()
            by_kept = 0.0 if prior_mass == np.inf else kept_mass / (kept_mass + prior_mass)
            np.testing.assert_allclose(
                cluster_weight[i, cluster], cut * (1 - by_kept), rtol=1e-3, atol=1e-6
            )
            factor = 1.0 + (cut * by_kept / kept_mass if kept_mass else 0.0)
            np.testing.assert_allclose(
                rows.weights[own][inside], weights[inside] * factor, rtol=1e-3
            )
            shared |= by_kept > 0 and cut > 0
        assert rows.weights[own][kept == root] == weights[kept == root]
    assert shared == (prior_mass != np.inf)


@given(graph=graphs(), diffusion=diffusions())
def test_weights_of_drawn_nodes_are_out_weights_or_their_roots(graph, diffusion):
    adjacency = dense_adjacency(graph)
    nodes = np.arange(graph.num_nodes)[::-1]
    expected = []
    for node in nodes:
        weight = adjacency[node].sum()
        weight += 1 if diffusion.self_loops or not adjacency[node].any() else 0
        expected.append(weight if diffusion.normalisation == "rw" else np.sqrt(weight))
    np.testing.assert_allclose(stationary_weight(graph, diffusion, nodes), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [0, 1, 5, 12, 13, 99])
def test_drawn_nodes_are_distinct_and_know_their_cluster(tmp_path, kind, count):
    graph, diffusion = wheel(), DiffusionConfig(steps=4)
    store = write_store(str(tmp_path), graph, diffusion, k=3, clusters=4)
    tail = make_tail(MinibatchConfig(tail=kind), store, graph, diffusion)
    drawn = tail.draw(count, np.random.default_rng(3))
    clusters = {"clustered": 4, "stationary": 1}.get(kind, 0)
    assert tail.num_clusters == clusters
    nodes = drawn.node_global
    assert len(nodes) == len(drawn.cluster) == len(drawn.weight) == min(count, 13) * (clusters > 0)
    assert nodes.tolist() == sorted(set(nodes.tolist()) & set(range(13)))
    assert drawn.cluster.tolist() == [node % clusters for node in nodes]
    np.testing.assert_array_equal(drawn.cluster, tail.cluster_of(nodes))
    weight = stationary_weight(graph, diffusion, nodes).astype(np.float32)
    if kind == "clustered":
        weight = np.maximum(store.cut_mass_of_node[nodes], np.float32(1e-9))
    np.testing.assert_array_equal(drawn.weight, weight)
    dtypes = [array.dtype for array in (nodes, drawn.cluster, drawn.weight)]
    assert dtypes == [np.int64, np.int64, np.float32]


@given(
    graph=graphs(),
    diffusion=diffusions(),
    k=st.integers(1, 4),
    clusters=st.integers(1, 4),
    data=st.data(),
)
def test_over_all_rows_the_means_give_back_what_was_cut(graph, diffusion, k, clusters, data):
    everyone = np.arange(graph.num_nodes)
    roots = everyone[: data.draw(st.integers(1, graph.num_nodes))]
    evidence = np.random.default_rng(k).random(graph.num_nodes)
    with TemporaryDirectory() as folder:
        store = write_store(folder, graph, diffusion, k=k, clusters=clusters, roots=roots.tolist())
        options = MinibatchConfig(tail_prior_mass=np.inf)
        tail = make_tail(options, store, graph, diffusion)
        rows, cluster_weight = tail.apply(roots, store.rows(roots))
        weight, cluster = tail.weight_of(everyone), tail.cluster_of(everyone)
    assert (weight > 0).all()
    total = np.bincount(cluster, weight, minlength=clusters)
    mean = np.bincount(cluster, weight * evidence, minlength=clusters) / np.maximum(total, 1e-9)
    kept = rows.weights @ evidence[rows.ids]
    exact = exact_rows(graph, diffusion)[roots] @ evidence
    np.testing.assert_allclose(
        kept + (cluster_weight @ mean).sum(), exact.sum(), rtol=2e-3, atol=1e-6
    )


def test_every_node_is_drawn_as_often_as_another(tmp_path):
    graph, diffusion = wheel(), DiffusionConfig()
    store = write_store(str(tmp_path), graph, diffusion, k=3)
    tail = make_tail(MinibatchConfig(tail="stationary"), store, graph, diffusion)
    rng = np.random.default_rng(0)
    drawn = np.concatenate([tail.draw(4, rng).node_global for _ in range(3000)])
    share = np.bincount(drawn, minlength=13) / 3000
    np.testing.assert_allclose(share, 4 / 13, atol=0.04)


def test_clusters_that_are_not_there_are_refused(tmp_path):
    graph, diffusion = wheel(), DiffusionConfig()
    store = write_store(str(tmp_path / "s"), graph, diffusion, k=3)
    message = r"s has no clusters, .*with clusters=32, or set minibatch.tail to 'stationary'"
    with pytest.raises(StoreError, match=message) as caught:
        make_tail(MinibatchConfig(), store, graph, diffusion)
    assert caught.value.arguments == ("clusters", "minibatch.tail")
