"""Open shards: every flipped bit and every cut of the file is noticed, none ends the process."""

import os
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.block_checksums import BLOCK_BYTES
from gpn_scale.errors import StoreError
from gpn_scale.ppr.open_shard import OpenShard
from gpn_scale.ppr.shard import ShardInfo, read_shard_info, write_shard
from tests.ppr.cases import flip
from tests.ppr.test_rows import rows_of
from tests.ppr.test_shard import NUM_NODES, written


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk():
    with mock.patch("os.fsync"):
        yield


def opened(path):
    return OpenShard(path, read_shard_info(path), NUM_NODES)


@given(data=st.data())
def test_no_flipped_bit_escapes(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("shard") / "shard"
    written(path, [2, 1])
    whole = read_shard_info(path)
    flip(path, data.draw(st.integers(0, path.stat().st_size - 1)), data.draw(st.integers(0, 7)))
    try:
        shard = opened(path)
        shard.check_all()
    except StoreError:
        return
    assert shard.info != whole  # which the store compares: a header of another build or position


def test_a_damaged_block_is_named_with_its_rows(tmp_path):
    path = tmp_path / "shard"
    rows, _ = written(path, [30] * 2000, num_clusters=0)
    info = read_shard_info(path)
    start = len(info.prefix())
    for name, (_, _, offset) in info.layout().items():
        flip(path, start + offset + 4)
        block = (offset + 4) // BLOCK_BYTES
        shard = opened(path)
        shard.check_blocks(other for other in range(info.num_blocks) if other != block)
        with pytest.raises(StoreError, match=rf"in block {block}, which .* rows \d+ to \d+, its"):
            shard.check_blocks([block])
        flip(path, start + offset + 4)
        first, last = shard.rows_of_block(block)
        assert 0 <= first <= last < rows.num_rows, name
    ids = info.layout()["ids"][2]
    first, last = shard.rows_of_block(ids // BLOCK_BYTES + 1)
    kept = slice(rows.row_ptr[first], rows.row_ptr[last + 1])
    begin = ((ids // BLOCK_BYTES + 1) * BLOCK_BYTES - ids) // 4
    assert kept.start <= begin < rows.row_ptr[first + 1]
    assert kept.stop >= begin + BLOCK_BYTES // 4 > rows.row_ptr[last]


@pytest.mark.parametrize("size", [0, 70, -9, -1])
def test_a_file_that_is_cut_short_while_it_is_open(tmp_path, size):
    path = tmp_path / "shard"
    written(path, [30] * 2000)
    shard = opened(path)
    os.truncate(path, size % path.stat().st_size)
    with pytest.raises(StoreError, match=r"is truncated: .* bytes, expected .*existing='resume'"):
        shard.check_size()
    if size >= 0:
        with pytest.raises(StoreError, match="is truncated"):
            shard.check_blocks([shard.info.num_blocks - 1])


def test_files_that_are_no_shards(tmp_path):
    path = tmp_path / "shard"
    written(path, [2, 1])
    info = read_shard_info(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StoreError, match="is truncated: "):
        OpenShard(path, info, NUM_NODES)
    path.unlink()
    with pytest.raises(StoreError, match="is missing or cannot be read"):
        OpenShard(path, info, NUM_NODES)
    os.mkfifo(path)
    with pytest.raises(StoreError, match="is not a regular file"):
        OpenShard(path, info, NUM_NODES)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("ids", NUM_NODES, r"an id is out of the range \[0, 10000\)"),
        ("ids", -1, r"an id is out of the range"),
        ("weights", np.nan, "a number of weights is negative or not finite"),
        ("weights", np.inf, "a number of weights is negative or not finite"),
        ("weights", -0.5, "a number of weights is negative or not finite"),
        ("missing_mass", np.nan, "a number of missing_mass is negative or not finite"),
        ("cut_mass", -0.5, "a number of cluster_mass is negative or not finite"),
        ("row_ptr", 99, "a row pointer is out of range"),
        ("row_ptr", 0, "row pointers are not in order"),
    ],
)
def test_numbers_out_of_range_are_refused_even_with_the_right_checksum(
    tmp_path, field, value, message
):
    rows = rows_of([2, 1, 1])
    array = getattr(rows, field).copy()
    array.reshape(-1)[-2] = value
    info = ShardInfo(build="b", clusters="c", first=0, rows=3, entries=4, num_clusters=2)
    write_shard(tmp_path / "shard", info, replace(rows, **{field: array}))
    with pytest.raises(StoreError, match=message):
        opened(tmp_path / "shard").check_all()


def test_a_read_error_is_reported(tmp_path, monkeypatch):
    written(tmp_path / "shard", [2, 1])
    shard = opened(tmp_path / "shard")
    monkeypatch.setattr(os, "preadv", mock.Mock(side_effect=OSError(5, "Input/output error")))
    with pytest.raises(StoreError, match=r"cannot be read \(.*Input/output error"):
        shard.check_blocks([0])
