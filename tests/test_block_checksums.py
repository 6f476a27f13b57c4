from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale import block_checksums as module
from gpn_scale.block_checksums import block_checksums, checksum_of, damaged_blocks, read_exactly


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
        assert read_exactly(file.fileno(), 2, 4) == b"cdef"
        assert read_exactly(file.fileno(), 2, 0) == b""
        assert read_exactly(file.fileno(), 2, 5) is None
