"""Updates of stores, against dense rows of the new graph and against rebuilt stores."""

import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.config import PPRConfig
from gpn_scale.data.building import build_graph
from gpn_scale.errors import ConfigError, StoreError
from gpn_scale.locks import claimed
from gpn_scale.ppr.manifest import LOCK, MANIFEST
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.verification import verify_store
from precompute.build import build_store
from precompute.resources import Resources
from precompute.update import update_store
from tests.precompute.changed_graphs import changed_graphs
from tests.precompute.engines import config_of, random_graph, truth_of

ONE_THREAD = Resources(threads=1, memory_bytes=1 << 30)


def built(folder, graph, config, **options):
    build_store(graph, config, folder, resources=ONE_THREAD, **options)
    return folder


def updated(folder, graph, tolerance=0.01, **options):
    return update_store(folder, graph, tolerance=tolerance, resources=ONE_THREAD, **options)


def with_edges(graph, source, target, num_nodes=None):
    row = np.repeat(np.arange(graph.num_nodes), graph.out_degree)
    return build_graph(
        np.append(row, source),
        np.append(graph.indices, target),
        num_nodes=num_nodes or graph.num_nodes,
    )


def assert_certified(store, graph, config):
    """Kept weights and cut masses bound the true rows, up to what the store says they moved."""
    truth = truth_of(graph, config)
    roots, cluster = store.roots, store.cluster_of_node
    rows, moved = store.rows(roots), store.moved(roots).astype(np.float64)
    for place, root in enumerate(roots):
        entries = slice(rows.row_ptr[place], rows.row_ptr[place + 1])
        kept = np.zeros(graph.num_nodes)
        kept[rows.ids[entries]] = rows.weights[entries]
        above = np.maximum(kept - truth[root], 0.0).sum()
        below = np.maximum(truth[root] - kept, 0.0)
        assert above <= moved[place] + 1e-6
        assert below.sum() <= rows.missing_mass[place] + moved[place] + 1e-6
        if cluster is not None:
            cut = np.bincount(cluster, below, minlength=store.num_clusters)
            assert np.maximum(cut - rows.cut_mass[place], 0.0).sum() <= moved[place] + 1e-6


@pytest.mark.parametrize("normalisation", ["sym", "rw"])
@pytest.mark.parametrize("steps", [3, "inf"])
@given(
    pair=changed_graphs(),
    method=st.sampled_from(["sweep", "push"]),
    clusters=st.sampled_from([0, 1, 3]),
    tolerance=st.sampled_from([0.0, 0.05, 0.5, 10.0]),
)
def test_updated_rows_are_certified(
    tmp_path_factory, normalisation, steps, pair, method, clusters, tolerance
):
    old, new = pair
    k = min(3, old.num_nodes)
    config = config_of(normalisation, steps, k=k, clusters=clusters, method=method)
    folder = built(tmp_path_factory.mktemp("store"), old, config)
    plan = updated(folder, new, tolerance)
    store = PPRStore.open(folder, graph_fingerprint=new.structure_fingerprint())
    assert store.num_roots == new.num_nodes
    assert verify_store(folder) == []
    assert store.moved(store.roots).max(initial=0.0) <= tolerance * (1 + 1e-6)
    assert plan.num_roots - plan.computed_rows >= np.count_nonzero(store.moved(store.roots))
    assert_certified(store, new, config)


def test_rows_that_are_computed_again_are_those_of_a_rebuilt_store(tmp_path):
    graph = random_graph()
    new = with_edges(graph, [0, 5], [100, 90])
    config = config_of("sym", 5, k=8, clusters=4, method="push")
    folder = built(tmp_path / "updated", graph, config)
    plan = updated(folder, new, tolerance=0.0)
    assert 2 < plan.computed_rows < graph.num_nodes
    store = PPRStore.open(folder)
    other = PPRStore.open(built(tmp_path / "rebuilt", new, config))
    computed = np.flatnonzero(store._places.of(store.roots)[0] > 0)
    assert len(computed) == plan.computed_rows
    got, wanted = store.rows(computed), other.rows(computed)
    for name in ("row_ptr", "ids", "weights"):
        assert np.array_equal(getattr(got, name), getattr(wanted, name))
    assert np.allclose(got.missing_mass, wanted.missing_mass, atol=1e-6)  # summed by clusters


def test_a_graph_that_did_not_change_changes_nothing(tmp_path):
    graph = random_graph(60)
    folder = built(tmp_path, graph, config_of(k=4, clusters=2))
    before = (folder / MANIFEST).read_bytes()
    plan = updated(folder, graph, tolerance=0.0)
    assert (plan.computed_rows, plan.changes.any) == (0, False)
    assert (folder / MANIFEST).read_bytes() == before


def test_bounds_add_up_over_updates_and_are_reset_by_computing_rows_again(tmp_path):
    graph = random_graph(120)
    config = config_of("rw", 4, k=6, clusters=3)
    folder = built(tmp_path, graph, config)
    for place in range(4):
        graph = with_edges(graph, [place], [60 + place])
        updated(folder, graph, tolerance=0.3)
        store = PPRStore.open(folder)
        assert_certified(store, graph, config)
        assert len(store.history) == place + 1
        assert store.moved(store.roots).max() <= 0.3
    updated(folder, with_edges(graph, [9], [90]), tolerance=0.0)
    store = PPRStore.open(folder)
    assert not store.moved(store.roots).any()


def test_an_open_store_keeps_its_rows(tmp_path):
    graph = random_graph(80)
    config = config_of(k=4, clusters=2)
    folder = built(tmp_path, graph, config)
    store = PPRStore.open(folder)
    updated(folder, with_edges(graph, [0], [40]), tolerance=0.0)
    assert_certified(store, graph, config)
    assert store.num_nodes == 80


def test_new_nodes_get_rows_and_lost_ones_keep_their_places(tmp_path):
    graph = random_graph(60)
    config = config_of("sym", "inf", k=5, clusters=3)
    folder = built(tmp_path, graph, config)
    row = np.repeat(np.arange(60), graph.out_degree)
    gone = (row == 7) | (graph.indices == 7)
    new = build_graph(
        np.append(row[~gone], [60, 61]), np.append(graph.indices[~gone], [3, 60]), num_nodes=63
    )
    updated(folder, new)
    store = PPRStore.open(folder)
    assert_certified(store, new, config)
    assert store.row(7)[0].tolist() == [7]
    assert store.row(62)[0].tolist() == [62]
    assert store.cluster_of_node.shape == (63,)


def test_roots_stay_a_subset_that_may_grow(tmp_path):
    graph = random_graph(60)
    config = config_of(k=4, clusters=2)
    folder = built(tmp_path, graph, config, roots=np.arange(0, 60, 3))
    new = with_edges(graph, [0, 60], [30, 5], num_nodes=61)
    updated(folder, new)
    assert PPRStore.open(folder).roots.tolist() == list(range(0, 60, 3))
    updated(folder, new, roots=np.array([1, 60]))
    store = PPRStore.open(folder)
    assert store.roots.tolist() == sorted([*range(0, 60, 3), 1, 60])
    assert_certified(store, new, config)


def test_the_plan_writes_nothing(tmp_path):
    graph = random_graph(60)
    folder = built(tmp_path, graph, config_of(k=4, clusters=2))
    names = sorted(path.name for path in folder.iterdir())
    texts = []
    plan = updated(folder, with_edges(graph, [0], [30]), plan_only=True, say=texts.append)
    assert plan.changes.added == 1
    assert texts[0].startswith("update\n  changes      1 edge added")
    assert sorted(path.name for path in folder.iterdir()) == sorted([*names, LOCK])


def test_what_cannot_be_updated_is_refused(tmp_path):
    graph = random_graph(60)
    folder = built(tmp_path / "store", graph, config_of(k=4, clusters=2))
    with pytest.raises(StoreError, match=r"has 40 nodes and .* has 60, expected at least as many"):
        updated(folder, random_graph(40))
    with pytest.raises(StoreError, match="the new graph is directed"):
        updated(folder, build_graph([0], [1], num_nodes=60, directed=True))
    with pytest.raises(ConfigError, match="tolerance is -1"):
        updated(folder, graph, tolerance=-1)
    with pytest.raises(ConfigError, match="tolerance is nan"):
        updated(folder, graph, tolerance=float("nan"))
    with pytest.raises(StoreError, match="not a PPR store"):
        updated(tmp_path / "nothing", graph)
    assert not (tmp_path / "nothing").exists()
    with (
        claimed(folder / LOCK, wait=False),
        pytest.raises(StoreError, match="being updated by another process"),
    ):
        updated(folder, graph)


def test_renumbered_nodes_are_refused(tmp_path):
    names = np.array(["a", "b", "c"])
    graph = build_graph([0, 1], [1, 2], node_names=names)
    folder = built(tmp_path, graph, PPRConfig(k=2, clusters=0))
    with pytest.raises(StoreError, match="first 3 nodes of the new graph do not have the ids"):
        updated(folder, build_graph([0, 1], [1, 2], node_names=names[::-1]))
    updated(folder, build_graph([0, 1, 2], [1, 2, 3], node_names=np.append(names, "long")))
    assert PPRStore.open(folder).num_nodes == 4


def test_a_plan_warns_if_nodes_without_ids_may_be_renumbered(tmp_path):
    graph = random_graph(60)
    folder = built(tmp_path, graph, config_of(k=4, clusters=2))
    order = np.random.default_rng(1).permutation(60)
    source = np.repeat(order, graph.out_degree)
    renumbered = build_graph(source, order[graph.indices], num_nodes=60)
    texts = []
    updated(folder, renumbered, plan_only=True, say=texts.append)
    assert "more than half of the edges are gone: were the nodes numbered anew?" in texts[0]
    updated(folder, with_edges(graph, [0], [30]), plan_only=True, say=texts.append)
    assert "numbered anew" not in texts[1]


def test_an_update_that_was_not_finished_is_continued_or_replaced(tmp_path):
    graph = random_graph(60)
    config = config_of(k=4, clusters=2)
    first, second = with_edges(graph, [0], [30]), with_edges(graph, [1], [31])
    folder = built(tmp_path / "store", graph, config)
    manifest = (folder / MANIFEST).read_bytes()
    updated(folder, first)
    whole = (folder / MANIFEST).read_bytes()
    (folder / MANIFEST).write_bytes(manifest)  # as a kill before the last rename leaves it
    updated(folder, first)
    assert (folder / MANIFEST).read_bytes() == whole
    (folder / MANIFEST).write_bytes(manifest)
    updated(folder, second)
    assert verify_store(folder) == []
    assert_certified(PPRStore.open(folder), second, config)


def test_a_build_is_not_resumed_over_an_update_and_overwrites_all_of_it(tmp_path):
    graph = random_graph(60)
    config = config_of(k=4, clusters=2)
    folder = built(tmp_path / "store", graph, config)
    plain = built(tmp_path / "plain", graph, config)
    updated(folder, with_edges(graph, [0], [30]))
    with pytest.raises(StoreError, match="has been updated since it was built"):
        built(folder, graph, config, existing="resume")
    built(folder, graph, config, existing="overwrite")
    (folder / LOCK).unlink()
    names = [sorted(path.name for path in place.iterdir()) for place in (folder, plain)]
    assert names[0] == names[1]


def test_damage_in_a_generation_is_found(tmp_path):
    graph = random_graph(60)
    folder = built(tmp_path / "store", graph, config_of(k=4, clusters=2))
    updated(folder, with_edges(graph, [0], [30]), tolerance=0.0)
    shutil.copytree(folder, tmp_path / "copy")
    for path in sorted((folder / "generation-00001").iterdir()):
        if path.name in ("build_seconds.json", "manifest.json"):
            continue
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 4
        path.write_bytes(data)
        assert len(verify_store(folder)) >= 1
        shutil.copy(tmp_path / "copy" / "generation-00001" / path.name, path)
    assert verify_store(folder) == []
