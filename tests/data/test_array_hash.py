"""Hashes depend on names, types, shapes and contents, and not on how an array is stored."""

import numpy as np
import pytest

from gpn_scale.data import array_hash as module
from gpn_scale.data.array_hash import array_hash, byte_chunks

ARRAYS = [("a", np.arange(6, dtype=np.int32)), ("b", None)]


@pytest.mark.parametrize(
    "other",
    [
        [("x", np.arange(6, dtype=np.int32))],
        [("a", np.arange(6, dtype=np.int64))],
        [("a", np.arange(6, dtype=np.int32).reshape(2, 3))],
        [("a", np.arange(1, 7, dtype=np.int32))],
        [],
    ],
)
def test_other_arrays_have_another_hash(other):
    assert array_hash(other) != array_hash(ARRAYS)
    assert array_hash(ARRAYS[:1]) == array_hash(ARRAYS)


@pytest.mark.parametrize("chunk", [1, 5, 1000])
def test_storage_and_chunks_make_no_difference(tmp_path, monkeypatch, chunk):
    array = np.arange(12.0).reshape(3, 4)
    expected = array_hash([("a", array)])
    monkeypatch.setattr(module, "_HASH_BYTES", chunk)
    np.save(tmp_path / "a.npy", array)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    for same in (mapped, np.asfortranarray(array), array):
        assert array_hash([("a", same)]) == expected
        assert b"".join(byte_chunks(same)) == array.tobytes()
