import gc

import numpy as np
import pytest

from gpn_scale.errors import ConfigError
from gpn_scale.scratch import GrowingArray, release_pages, scratch_array


@pytest.mark.parametrize(("shape", "dtype"), [((3, 4), np.float32), ((5,), np.int64)])
def test_scratch_is_zero_and_leaves_no_file(tmp_path, shape, dtype):
    array = scratch_array(shape, tmp_path, dtype)
    assert (array.shape, array.dtype) == (shape, dtype)
    assert not array.any()
    array[:] = 7
    assert (array == 7).all()
    assert not list(tmp_path.iterdir())


def test_released_pages_keep_their_content(tmp_path):
    array = scratch_array((1000, 100), tmp_path)
    array[:] = np.arange(100)
    release_pages(array, None, np.ones(3))
    assert (array == np.arange(100)).all()


def test_private_pages_are_not_released(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(5000))
    private = np.load(tmp_path / "a.npy", mmap_mode="c")
    private[:] = 1
    release_pages(private)
    gc.collect()
    assert (private == 1).all()


def test_a_directory_that_cannot_hold_it_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"scratch directory .*missing cannot hold 48 bytes"):
        scratch_array((3, 4), tmp_path / "missing")
    with pytest.raises(ConfigError, match="pass another scratch=, or a larger memory_bytes="):
        scratch_array((1 << 30, 1 << 30), tmp_path)


@pytest.mark.parametrize("memory_bytes", [0, 8, 1000])
def test_a_growing_array_has_all_that_was_added(tmp_path, memory_bytes):
    array = GrowingArray(np.int32, tmp_path, memory_bytes)
    assert array.array().tolist() == []
    for start in range(0, 9, 3):
        array.append(np.arange(start, start + 3))
    array.append(np.empty(0))
    assert len(array) == 9
    assert array.array().tolist() == list(range(9))
    assert array.array().dtype == np.int32
    assert isinstance(array.array(), np.memmap) == (memory_bytes < 36)
    assert not list(tmp_path.iterdir())


def test_what_is_added_may_change_afterwards(tmp_path):
    array, values = GrowingArray(np.int64, tmp_path), np.arange(3)
    array.append(values)
    values[:] = 7
    assert array.array().tolist() == [0, 1, 2]


def test_a_growing_array_that_finds_no_space_is_refused(tmp_path):
    array = GrowingArray(np.int64, tmp_path / "missing", memory_bytes=0)
    with pytest.raises(ConfigError, match=r"scratch directory .*missing cannot hold 24 bytes"):
        array.append(np.arange(3))
