"""Repair of plain and updated stores, to the byte."""

import numpy as np
import pytest

from gpn_scale.errors import StoreError
from gpn_scale.locks import claimed
from gpn_scale.ppr.manifest import CLUSTERS, LOCK
from gpn_scale.ppr.shard import shard_name
from gpn_scale.ppr.verification import verify_store
from precompute import repair
from precompute.compact import compact_store
from precompute.repair import repair_store
from tests.precompute.engines import config_of, random_graph
from tests.precompute.test_update import ONE_THREAD, built, updated, with_edges


def content(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != LOCK
    }


@pytest.mark.parametrize("method", ["sweep", "push"])
@pytest.mark.parametrize("clusters", [0, 3])
def test_damaged_shards_come_back_to_the_byte(tmp_path, method, clusters):
    graph = random_graph(600)
    config = config_of("sym", 4, k=5, clusters=clusters, method=method)
    folder = built(tmp_path, graph, config, roots=np.arange(0, 600, 2))
    updated(folder, with_edges(graph, [0, 600], [300, 2], num_nodes=601), tolerance=0.01)
    before = content(folder)
    (folder / shard_name(0)).unlink()
    path = folder / "generation-00001" / shard_name(0)
    data = bytearray(path.read_bytes())
    data[-70] ^= 1
    path.write_bytes(data)
    assert len(verify_store(folder)) == 2
    assert repair_store(folder, resources=ONE_THREAD) == [folder / shard_name(0), path]
    assert content(folder) == before
    assert repair_store(folder, resources=ONE_THREAD) == []


def test_other_damage_is_refused(tmp_path):
    folder = built(tmp_path, random_graph(60), config_of(k=4, clusters=2))
    (folder / shard_name(0)).unlink()
    data = bytearray((folder / "graph_indices.npy").read_bytes())
    data[-3] ^= 1
    (folder / "graph_indices.npy").write_bytes(data)
    with pytest.raises(StoreError, match=r"graph_indices\.npy is damaged"):
        repair_store(folder, resources=ONE_THREAD)


def test_folded_rows_are_refused(tmp_path):
    graph = random_graph(60)
    folder = built(tmp_path, graph, config_of(k=4, clusters=2))
    updated(folder, with_edges(graph, [0], [30]))
    compact_store(folder)
    assert repair_store(folder, resources=ONE_THREAD) == []
    (folder / "generation-00002" / shard_name(0)).unlink()
    with pytest.raises(StoreError, match="on several graphs before they were folded"):
        repair_store(folder, resources=ONE_THREAD)


def test_a_store_that_is_being_updated_or_unfinished_is_refused(tmp_path):
    folder = built(tmp_path, random_graph(60), config_of(k=4, clusters=2))
    with (
        claimed(folder / LOCK, wait=False),
        pytest.raises(StoreError, match="being updated by another process"),
    ):
        repair_store(folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(StoreError, match="unfinished"):
        repair_store(folder)


@pytest.mark.parametrize("bit", [0x01, 0x40], ids=["another cluster", "out of range"])
def test_damaged_clusters_are_not_used(tmp_path, bit):
    folder = built(tmp_path, random_graph(60), config_of(k=4, clusters=2))
    path, shard = folder / CLUSTERS, folder / shard_name(0)
    data = bytearray(path.read_bytes())
    data[-17 if bit == 0x40 else -20] ^= bit  # int32, so that a number ends at -17
    path.write_bytes(data)
    shard.unlink()
    with pytest.raises(StoreError, match=r"clusters\.npy is damaged: its checksum is"):
        repair_store(folder, resources=ONE_THREAD)
    assert not shard.exists()


def test_rows_that_differ_from_the_listed_ones_are_not_written(tmp_path, monkeypatch):
    folder = built(tmp_path, random_graph(60), config_of(k=4, clusters=2))
    shard = folder / shard_name(0)
    shard.unlink()
    true_totals = repair.row_totals
    monkeypatch.setattr(repair, "row_totals", lambda engine: true_totals(engine) * 1.5)
    with pytest.raises(StoreError, match="computes rows that differ from the stored ones"):
        repair_store(folder, resources=ONE_THREAD)
    assert not shard.exists()
