import json
import re

import pytest

from gpn_scale.errors import StoreError
from gpn_scale.ppr.example import example_store
from gpn_scale.ppr.manifest import (
    BUILD,
    MANIFEST,
    SECONDS,
    Build,
    check_size,
    is_store,
    manifest_shard_info,
    read_build_seconds,
    read_manifest,
)
from gpn_scale.ppr.sealed import sealed
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.verification import verify_store
from tests.ppr.cases import example


def test_a_build_is_read_from_either_file(tmp_path):
    example().build(tmp_path)
    of_manifest = Build.of(read_manifest(tmp_path))
    assert of_manifest == Build.of(json.loads((tmp_path / BUILD).read_text()))
    assert of_manifest.text == (tmp_path / BUILD).read_text()
    assert [of_manifest.shard_rows(index) for index in range(3)] == [(0, 2), (2, 4), (4, 5)]


def test_a_shard_of_another_store_is_not_the_one_of_the_manifest(tmp_path):
    example().build(tmp_path / "a")
    other = example(rows=[[(0, 0.125)]] * 5)
    other.build(tmp_path / "b")
    name = "shard-00000.ppr"
    (tmp_path / "a" / name).write_bytes((tmp_path / "b" / name).read_bytes())
    manifest = read_manifest(tmp_path / "a")
    with pytest.raises(StoreError, match=r"is not the shard that manifest.json names"):
        manifest_shard_info(tmp_path / "a", manifest, Build.of(manifest), 0)


def test_seconds_are_optional(tmp_path):
    assert read_build_seconds(tmp_path) == 0.0
    (tmp_path / SECONDS).write_text('{"seconds": 2.5}')
    assert read_build_seconds(tmp_path) == 2.5
    (tmp_path / SECONDS).write_text("[]")
    assert read_build_seconds(tmp_path) == 0.0


def test_what_is_a_store(tmp_path):
    assert not is_store(tmp_path)
    example().begin(tmp_path)
    assert is_store(tmp_path)
    (tmp_path / BUILD).rename(tmp_path / MANIFEST)
    assert is_store(tmp_path)


def test_sizes(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    check_size(tmp_path / "file", 3)
    with pytest.raises(StoreError, match="is truncated or corrupt: 3 bytes, expected 4"):
        check_size(tmp_path / "file", 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": None}, "k is None, expected a whole number"),
        ({"rows_per_shard": 0}, "rows_per_shard of the store is 0, expected 1 to"),
        ({"num_nodes": 2**63}, "num_nodes of the store is"),
        ({"num_roots": 10**9}, "num_roots of the store is 1000000000, expected 0 to 3"),
        ({"parameters": []}, r"parameters is \[\], expected an object"),
        ({"files": {"clusters.npy": {}}}, "has no entry 'bytes'"),
        ({"files": {}}, "manifest.json does not list clusters.npy"),
        ({"entries": None}, "entries is None, expected a whole number"),
        ({"shards": []}, "lists other shards than the 1 it has"),
        ({"num_nodes": 2**31, "num_roots": 2**31, "rows_per_shard": 1}, "2,147,483,648 shards"),
    ],
)
def test_a_manifest_of_wrong_values_is_refused_though_its_checksum_is_right(
    tmp_path, change, message
):
    path = example_store(tmp_path).path
    manifest = read_manifest(path)
    (path / MANIFEST).write_text(sealed(manifest | change))
    with pytest.raises(StoreError, match=message):
        PPRStore.open(path)
    assert any(re.search(message, problem) for problem in verify_store(path))


def test_a_number_that_is_none_is_refused(tmp_path):
    path = example_store(tmp_path).path
    text = (path / MANIFEST).read_text()
    (path / MANIFEST).write_text(text.replace('"k": 2', '"k": NaN'))
    with pytest.raises(StoreError, match="it holds NaN"):
        read_manifest(path)
