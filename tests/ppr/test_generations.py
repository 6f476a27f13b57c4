"""Places of rows in several generations, against a dictionary."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.errors import StoreError
from gpn_scale.ppr.generations import (
    generation_folder,
    remove_generation,
    was_updated,
)
from gpn_scale.ppr.manifest_schema import is_generation_folder
from gpn_scale.ppr.rows import Rows
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.updated_manifest import next_number, write_updated_manifest
from gpn_scale.ppr.writer import StoreWriter

NODES = 12


def write_rows(folder, roots, value, rows_per_shard):
    """Write a row for each root: itself, with a weight that tells the generation."""
    writer = StoreWriter.begin(
        folder,
        graph_fingerprint=f"graph {value}",
        parameters={"teleport": 0.5},
        num_nodes=NODES,
        roots=roots,
        num_clusters=0,
        rows_per_shard=rows_per_shard,
        k=1,
    )
    for index in range(writer.num_shards):
        start, stop = writer.shard_rows(index)
        nodes = roots[start:stop]
        rows = Rows(
            row_ptr=np.arange(len(nodes) + 1),
            ids=nodes.astype(np.int32),
            weights=np.full(len(nodes), value, np.float32),
            missing_mass=np.full(len(nodes), 1.0 - value, np.float32),
            cut_mass=np.empty((len(nodes), 0), np.float16),
        )
        writer.write_shard(index, rows)
    moved = np.full(NODES, value, np.float32)
    writer.finish(moved=moved)


sets_of_nodes = st.sets(st.integers(0, NODES - 1)).map(sorted)


@given(
    first=st.just(list(range(NODES))) | st.sets(st.integers(0, NODES - 1), min_size=1).map(sorted),
    later=st.lists(sets_of_nodes, max_size=3),
    per_shard=st.integers(1, 5),
    asked=st.lists(st.integers(0, NODES - 1)),
)
def test_rows_come_from_the_newest_generation(tmp_path_factory, first, later, per_shard, asked):
    folder = tmp_path_factory.mktemp("store")
    write_rows(folder, np.array(first), 0.125, per_shard)
    newest = dict.fromkeys(first, 0.125)
    for number, nodes in enumerate(later, start=1):
        value = 0.125 * (number + 1)
        roots = np.array(nodes, np.int64)
        write_rows(folder / generation_folder(number), roots, value, per_shard)
        store = PPRStore.open(folder)
        assert next_number(store.manifest) == number
        newest |= dict.fromkeys(nodes, value)
        write_updated_manifest(store, number, roots=np.array(sorted(newest)), record={"n": number})
    store = PPRStore.open(folder)
    assert store.roots.tolist() == sorted(newest)
    assert len(store.history) == len(later)
    nodes = [node for node in asked if node in newest]
    rows = store.rows(np.array(nodes, np.int64))
    assert rows.ids.tolist() == nodes
    assert rows.weights.tolist() == [newest[node] for node in nodes]
    assert store.missing_mass.tolist() == [1.0 - newest[node] for node in sorted(newest)]
    assert store.num_entries == len(newest)
    if len(newest) == NODES:
        assert set(store.moved(store.roots).tolist()) == {0.125 * (len(later) + 1)}
    without = sorted(set(range(NODES)) - set(newest))
    if without:
        with pytest.raises(StoreError, match="is not among"):
            store.rows([without[0]])


def test_names_of_folders():
    assert is_generation_folder(generation_folder(123456))
    assert not is_generation_folder("generation-1")


def test_removing_a_generation_leaves_other_files(tmp_path):
    folder = tmp_path / generation_folder(1)
    write_rows(folder, np.arange(3), 0.5, 2)
    (folder / "notes.txt").write_text("mine")
    assert not was_updated(folder)
    remove_generation(folder)
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


def test_a_store_whose_manifest_is_damaged_may_have_been_updated(tmp_path):
    write_rows(tmp_path, np.arange(3), 0.5, 2)
    (tmp_path / "manifest.json").write_text("{")
    assert not was_updated(tmp_path)
    (tmp_path / generation_folder(1)).mkdir()
    assert was_updated(tmp_path)
    (tmp_path / "manifest.json").unlink()
    assert not was_updated(tmp_path)
