"""Single files of a store: shards byte by byte, and JSON with its checksum."""

import json
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.errors import StoreError
from gpn_scale.ppr.shard import (
    FORMAT,
    FORMAT_VERSION,
    ShardInfo,
    check_shard_data,
    checksum,
    differences,
    file_checksum,
    map_shard,
    read_sealed,
    read_shard_info,
    sealed,
    write_shard,
)
from tests.ppr.cases import flip
from tests.ppr.test_rows import rows_of


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk():
    with mock.patch("os.fsync"):
        yield


def written(path, counts, num_clusters=2):
    rows = rows_of(counts, num_clusters)
    info = ShardInfo(
        build="b",
        clusters="c" if num_clusters else None,
        first=7,
        rows=rows.num_rows,
        entries=rows.num_entries,
        num_clusters=num_clusters,
    )
    write_shard(path, info, rows)
    return rows, info


@pytest.mark.parametrize("num_clusters", [0, 3])
@pytest.mark.parametrize("counts", [[], [0], [2, 0, 1], [5] * 40])
def test_a_shard_comes_back_as_it_was_written(tmp_path, counts, num_clusters):
    path = tmp_path / "shard"
    rows, info = written(path, counts, num_clusters)
    read = read_shard_info(path)
    assert replace(read, checksum="") == info
    assert read.num_bytes == path.stat().st_size
    check_shard_data(path, read)
    mapped = map_shard(path, read)
    for name in ("row_ptr", "ids", "weights", "missing_mass", "cut_mass"):
        np.testing.assert_array_equal(getattr(mapped, name), getattr(rows, name), strict=True)
        assert not getattr(mapped, name).flags.writeable or not getattr(mapped, name).size


def test_names_in_the_header_are_those_of_the_format(tmp_path):
    """Files of earlier versions must stay readable, whatever the fields of `Rows` are called."""
    written(tmp_path / "shard", [2, 1])
    data = (tmp_path / "shard").read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    arrays = {name: place["dtype"] for name, place in header["arrays"].items()}
    assert arrays == {
        "row_ptr": "<i8",
        "ids": "<i4",
        "weights": "<f4",
        "missing_mass": "<f4",
        "cluster_mass": "<f2",
    }
    assert all(place["offset"] % 64 == 0 for place in header["arrays"].values())


def test_bytes_of_the_format(tmp_path):
    """The checksum was recorded with the first writer of format version 2."""
    written(tmp_path / "shard", [2, 1])
    assert file_checksum(tmp_path / "shard") == "1ebe922ec552100ab3a75f85942f616a"


@given(data=st.data())
def test_no_flipped_bit_escapes(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("shard") / "shard"
    written(path, [2, 1])
    flip(path, data.draw(st.integers(0, path.stat().st_size - 1)), data.draw(st.integers(0, 7)))
    with pytest.raises(StoreError, match="corrupt"):
        check_shard_data(path, read_shard_info(path))


def test_a_shard_that_shrank_is_not_mapped(tmp_path):
    path = tmp_path / "shard"
    written(path, [2, 1])
    info = read_shard_info(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StoreError, match="is truncated: "):
        map_shard(path, info)
    path.unlink()
    with pytest.raises(StoreError, match="is missing or cannot be mapped"):
        map_shard(path, info)
    with pytest.raises(StoreError, match="is missing or cannot be read"):
        file_checksum(path)


def test_sealed_text_depends_on_the_content_alone(tmp_path):
    value = {"format": FORMAT, "format_version": FORMAT_VERSION, "b": 1, "a": [None, 0.5]}
    assert sealed(value) == sealed(dict(reversed(value.items())))
    path = tmp_path / "sealed.json"
    path.write_text(sealed(value))
    read = read_sealed(path)
    assert {name: read[name] for name in value} == value
    path.write_text(sealed(value).replace("0.5", "0.6"))
    with pytest.raises(StoreError, match="wrong checksum") as caught:
        read_sealed(path)
    assert caught.value.arguments == ("existing=resume",)


def test_checksums_of_files_start_anywhere(tmp_path):
    (tmp_path / "file").write_bytes(b"abcdef")
    assert file_checksum(tmp_path / "file", start=2) == checksum(b"cdef")


@pytest.mark.parametrize(
    ("stored", "wanted", "exact", "clause"),
    [
        ({"k": 1}, {"k": 1}, False, ""),
        ({"k": 1, "more": 2}, {"k": 1}, False, ""),
        ({"k": 1, "more": 2}, {"k": 1}, True, "more: stored 2, wanted nothing"),
        ({"k": 1}, {"k": 1.0}, False, ""),
        ({"k": 1}, {"k": 1.0}, True, "k: stored 1, wanted 1.0"),
        ({}, {"num_nodes": 3}, False, "num nodes: stored nothing, wanted 3"),
    ],
)
def test_differences_are_named(stored, wanted, exact, clause):
    none = {"parameters": {}}
    assert differences(stored | none, wanted | none, exact=exact) == clause
    parameters = differences({"parameters": stored}, {"parameters": wanted}, exact=exact)
    assert parameters == (clause and "parameter " + clause.replace("num nodes", "num_nodes"))
