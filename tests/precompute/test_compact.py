"""Folding the generations of a store."""

import shutil

import numpy as np
import pytest

from gpn_scale.errors import StoreError
from gpn_scale.locks import claimed
from gpn_scale.ppr.manifest import LOCK, MANIFEST
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.verification import verify_store
from precompute.compact import compact_store
from tests.precompute.engines import config_of, random_graph
from tests.precompute.test_update import assert_certified, built, updated, with_edges


@pytest.fixture
def grown(tmp_path):
    """A store after three updates, its graph and its configuration."""
    graph, config = random_graph(80), config_of("sym", 4, k=5, clusters=3)
    folder = built(tmp_path / "store", graph, config)
    for place in range(3):
        graph = with_edges(graph, [place, 80 + place], [40, place], num_nodes=81 + place)
        updated(folder, graph, tolerance=0.1)
    return folder, graph, config


def content(store):
    rows = store.rows(store.roots)
    return (
        rows.row_ptr,
        rows.ids,
        rows.weights,
        rows.missing_mass,
        rows.cut_mass,
        store.moved(store.roots),
        store.cluster_of_node,
        store.roots,
    )


def total_bytes(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_folded_store_has_the_same_rows_bounds_and_history(grown, tmp_path):
    folder, graph, config = grown
    store = PPRStore.open(folder)
    before, history = content(store), store.history
    cut = store.cut_mass_of_node
    del store
    assert compact_store(folder) == []
    store = PPRStore.open(folder)
    assert all(np.array_equal(*pair) for pair in zip(before, content(store), strict=True))
    assert np.allclose(store.cut_mass_of_node, cut, atol=1e-6)
    assert store.history == history
    assert verify_store(folder) == []
    assert_certified(store, graph, config)
    rebuilt = built(tmp_path / "rebuilt", graph, config)
    assert total_bytes(folder) < 1.5 * total_bytes(rebuilt)  # tiny: JSON counts for much of it
    assert {path.name for path in folder.iterdir()} == {
        "generation-00004",
        "manifest.json",
        "build_seconds.json",
        LOCK,
    }


def test_a_folded_store_can_be_updated_again(grown):
    folder, graph, config = grown
    compact_store(folder)
    graph = with_edges(graph, [5], [50])
    updated(folder, graph, tolerance=0.0)
    assert_certified(PPRStore.open(folder), graph, config)


def test_what_is_in_use_stays_until_the_next_call(grown):
    folder, _, _ = grown
    reader = PPRStore.open(folder)
    before = content(reader)
    assert compact_store(folder) == [".", *(f"generation-0000{number}" for number in (1, 2, 3))]
    again = reader.rows(reader.roots)
    assert np.array_equal(again.weights, before[2])
    del reader
    assert compact_store(folder) == []
    assert verify_store(folder) == []


def test_a_call_that_was_killed_is_continued(grown, tmp_path):
    folder, _, _ = grown
    shutil.copytree(folder, tmp_path / "before")
    compact_store(folder)
    whole = (folder / MANIFEST).read_bytes()
    # As a kill before the manifest is replaced leaves it: the new generation without its end.
    again = tmp_path / "before"
    shutil.copytree(folder / "generation-00004", again / "generation-00004")
    (again / "generation-00004" / "manifest.json").unlink()
    assert compact_store(again) == []
    assert (again / MANIFEST).read_bytes() == whole


def test_a_plain_store_has_nothing_to_fold(tmp_path):
    folder = built(tmp_path, random_graph(40), config_of(k=4, clusters=2))
    before = (folder / MANIFEST).read_bytes()
    assert compact_store(folder) == []
    assert (folder / MANIFEST).read_bytes() == before


def test_it_waits_for_no_other_process(grown):
    with (
        claimed(grown[0] / LOCK, wait=False),
        pytest.raises(StoreError, match="being updated by another process"),
    ):
        compact_store(grown[0])
