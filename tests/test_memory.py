import sys

import numpy as np
import pytest

from gpn_scale import memory


def test_resident_memory_is_known_without_proc_too(monkeypatch):
    now, most = memory.resident_bytes()
    assert 10 << 20 < now <= most

    def unreadable(self, **_):
        raise OSError

    monkeypatch.setattr(memory.Path, "read_text", unreadable)
    assert min(memory.resident_bytes()) >= 10 << 20
    assert memory.peak_rss_bytes() >= 10 << 20


def test_anonymous_memory_grows_with_arrays_and_not_with_mapped_files(tmp_path):
    before = memory.anonymous_bytes()
    array = np.ones(4 << 20)
    after = memory.anonymous_bytes()
    assert after - before >= array.nbytes // 2
    np.save(tmp_path / "array.npy", array)
    mapped = np.load(tmp_path / "array.npy", mmap_mode="r")
    assert mapped.sum() == len(array)
    assert memory.anonymous_bytes() - after < array.nbytes // 2


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
def test_settings_of_the_allocator_are_passed_on(monkeypatch):
    calls = []

    class Library:
        mallopt = staticmethod(lambda *pair: calls.append(pair))
        malloc_trim = staticmethod(lambda pad: calls.append(("trim", pad)))

    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: Library)
    memory.keep_freed_blocks(1000)
    memory.give_back_freed_memory()
    assert calls == [(-3, 1000), (-1, 2000), ("trim", 0)]


@pytest.mark.parametrize("block_bytes", memory.KEPT_BLOCK_BYTES.values())
def test_kept_blocks_are_within_what_glibc_takes(block_bytes):
    assert block_bytes <= 32 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="uses /proc")
def test_the_peak_can_begin_anew():
    np.ones(32 << 20)
    before = memory.peak_rss_bytes()
    memory.give_back_freed_memory()
    memory.forget_peak()
    assert memory.peak_rss_bytes() < before


def test_a_system_without_proc_keeps_its_peak(monkeypatch):
    def missing(self, *_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(memory.Path, "write_text", missing)
    memory.forget_peak()
    assert memory.peak_rss_bytes() >= 10 << 20
