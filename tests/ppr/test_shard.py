"""Shards of a store, byte by byte."""

import json
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from gpn_scale.ppr.open_shard import OpenShard
from gpn_scale.ppr.sealed import file_checksum
from gpn_scale.ppr.shard import ShardInfo, read_shard_info, write_shard
from tests.ppr.test_rows import rows_of


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk():
    with mock.patch("os.fsync"):
        yield


NUM_NODES = 10_000


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
    shard = OpenShard(path, read, num_nodes=NUM_NODES)
    shard.check_all()
    mapped = shard.rows
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
    """The checksum was recorded with the first writer of format version 3."""
    written(tmp_path / "shard", [2, 1])
    assert file_checksum(tmp_path / "shard") == "1a622d191ba46ee095a2de9db8264486"
