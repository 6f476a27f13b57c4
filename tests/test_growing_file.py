"""Appends: all of it or nothing, durable with the name of the file, and under a lock."""

import errno
import os

import pytest

from gpn_scale import disk
from gpn_scale.growing_file import GrowingFile


def test_what_is_appended_follows_what_is_there(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"one\n")
    with GrowingFile(path) as file:
        assert file.readable()
        assert file.seekable()
        assert file.readline() == b"one\n"
        file.append(b"two\n")
        file.seek(0)
        assert file.read() == b"one\ntwo\n"
        file.seek(4)
        assert file.truncate() == 4
    assert file.closed
    assert path.read_bytes() == b"one\n"


def test_a_new_file_has_its_permissions_and_its_name_is_synced_once(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(disk.system, "sync", lambda descriptor: synced.append(os.fstat(descriptor)))
    with GrowingFile(tmp_path / "new", 0o600) as file:
        assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600
        file.append(b"a")
        file.sync()
        file.sync()
    inodes = [tmp_path / "new", tmp_path, tmp_path / "new"]
    assert [facts.st_ino for facts in synced] == [path.stat().st_ino for path in inodes]


@pytest.mark.parametrize("written", [0, 2])
def test_what_a_full_disk_has_taken_of_it_is_removed(tmp_path, monkeypatch, written):
    real, path = disk.system.write, tmp_path / "lines"
    path.write_bytes(b"one\n")

    def fill(descriptor, data):
        if fill.left == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        fill.left -= 1
        return real(descriptor, data[:1])

    fill.left = written
    monkeypatch.setattr(disk.system, "write", fill)
    with GrowingFile(path) as file, pytest.raises(OSError, match="No space left") as failure:
        file.append(b"two\n")
    assert failure.value.__notes__ == [str(path)]
    assert path.read_bytes() == b"one\n"


def test_short_writes_are_continued(tmp_path, monkeypatch):
    real = disk.system.write
    monkeypatch.setattr(disk.system, "write", lambda descriptor, data: real(descriptor, data[:2]))
    with GrowingFile(tmp_path / "lines") as file:
        file.append(b"abcde")
    assert (tmp_path / "lines").read_bytes() == b"abcde"


def test_the_lock_ends_with_the_file(tmp_path):
    with GrowingFile(tmp_path / "lines") as first:
        first.lock()
        with GrowingFile(tmp_path / "lines") as second, pytest.raises(BlockingIOError):
            disk.system.lock(second.fileno(), wait=False)
    with GrowingFile(tmp_path / "lines") as third:
        disk.system.lock(third.fileno(), wait=False)
