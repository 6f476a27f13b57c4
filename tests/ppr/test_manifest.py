import json

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


def test_a_number_that_is_none_is_refused(tmp_path):
    path = example_store(tmp_path).path
    text = (path / MANIFEST).read_text()
    (path / MANIFEST).write_text(text.replace('"k": 2', '"k": NaN'))
    with pytest.raises(StoreError, match="it holds NaN"):
        read_manifest(path)
