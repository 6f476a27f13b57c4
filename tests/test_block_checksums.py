import os
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale import block_checksums as module
from gpn_scale.block_checksums import (
    block_checksums,
    checksum_of,
    damaged_blocks,
    file_hash,
    has_hash,
    read_exactly_into,
    text_checksum,
)


@given(data=st.binary(max_size=100), cuts=st.lists(st.integers(0, 100)), size=st.integers(1, 40))
def test_hashes_do_not_depend_on_how_bytes_come(data, cuts, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_BYTES", size)
        edges = sorted({0, len(data), *(cut for cut in cuts if cut <= len(data))})
        chunks = [memoryview(data)[a:b] for a, b in pairwise(edges)]
        table = block_checksums(chunks)
        expected = [checksum_of(data[i : i + size]) for i in range(0, len(data), size)]
        assert table.tolist() == expected
        assert table.dtype == np.uint64
        assert damaged_blocks(memoryview(data), table) == []


@given(data=st.binary(min_size=1, max_size=100), place=st.integers(0, 799))
def test_a_flipped_bit_is_in_its_block(data, place):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_BYTES", 16)
        table, place = block_checksums([memoryview(data)]), place % (8 * len(data))
        changed = bytearray(data)
        changed[place // 8] ^= 1 << place % 8
        assert damaged_blocks(memoryview(changed), table) == [place // 8 // 16]


def test_reading_beyond_the_end(tmp_path):
    (tmp_path / "file").write_bytes(b"abcdef")
    with (tmp_path / "file").open("rb") as file:
        buffer = bytearray(4)
        assert read_exactly_into(file.fileno(), 2, memoryview(buffer))
        assert buffer == b"cdef"
        assert read_exactly_into(file.fileno(), 9, memoryview(b""))
        assert not read_exactly_into(file.fileno(), 3, memoryview(buffer))


def test_parts_of_a_read_are_joined(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"abcdef")
    whole = os.preadv
    monkeypatch.setattr(os, "preadv", lambda d, buffers, at: whole(d, [buffers[0][:2]], at))
    with (tmp_path / "file").open("rb") as file:
        buffer = bytearray(5)
        assert read_exactly_into(file.fileno(), 1, memoryview(buffer))
        assert buffer == b"bcdef"


def test_hashes_of_files_and_texts(tmp_path):
    (tmp_path / "file").write_bytes(b"abcdef" * 300_000)
    path, digest = tmp_path / "file", text_checksum("abcdef" * 300_000)
    assert file_hash(path) == f"1800000-{digest}"
    assert has_hash(path, file_hash(path))
    assert has_hash(path, digest)  # of an earlier version
    assert not has_hash(path, f"1800001-{digest}")
    path.write_bytes(b"Abcdef" * 300_000)
    assert not has_hash(path, f"1800000-{digest}")
    os.truncate(path, 1 << 42)  # which takes an hour to read
    assert not has_hash(path, f"1800000-{digest}")
    assert text_checksum("a", memoryview(b"b")) == text_checksum("ab") != text_checksum("ba")
