"""The record of a disk: what a loss of power leaves, and that a careless writer is found out."""

import os
from contextlib import contextmanager

import pytest

from gpn_scale import disk
from gpn_scale.disk import Disk
from gpn_scale.files import make_folder, remove, write_bytes
from gpn_scale.growing_file import GrowingFile
from tests.faults.recording_disk import RecordingDisk, read_tree
from tests.faults.trials import temporaries


@contextmanager
def recorded(folder, monkeypatch):
    record = RecordingDisk(folder)
    monkeypatch.setattr(disk, "system", record)
    yield record
    monkeypatch.undo()


def contents(record, name):
    """What a file holds after a loss of power, over all moments and ways."""
    return {tree.get(name) for _, tree in record.crashes}


def test_a_replaced_file_is_old_or_new(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"old")
    with recorded(tmp_path, monkeypatch) as record:
        write_bytes(tmp_path / "file", b"new content")
    assert contents(record, "file") == {b"old", b"new content"}
    assert record.versions == {"file": {b"old", b"new content"}}
    left = {tree[name] for _, tree in record.crashes for name in temporaries(tree)}
    assert left == {b"", b"new c", bytes(11), b"new content"}
    assert record.crashes[-1][1] == read_tree(tmp_path) == {"file": b"new content"}


def careless(path, content, *steps):
    """Replace a file, but leave out a step."""
    temporary = path.with_name(".file.1.tmp")
    descriptor = disk.system.open(temporary, os.O_WRONLY | os.O_CREAT)
    disk.system.write(descriptor, content)
    if "sync" in steps:
        disk.system.sync(descriptor)
    os.close(descriptor)
    disk.system.rename(temporary, path)
    folder = disk.system.open(path.parent, os.O_RDONLY)
    if "sync folder" in steps:
        disk.system.sync(folder)
    os.close(folder)


def test_a_file_that_is_renamed_before_it_is_synced_may_be_torn(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"old")
    with recorded(tmp_path, monkeypatch) as record:
        careless(tmp_path / "file", b"new!", "sync folder")
    assert contents(record, "file") == {b"old", b"", b"ne", bytes(4), b"new!"}


def test_a_name_that_is_never_synced_may_be_lost(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"old")
    with recorded(tmp_path, monkeypatch) as record:
        careless(tmp_path / "file", b"new!", "sync")
        assert dict(record.root.tree("none", "all")) == {"file": b"old"}
        assert dict(record.root.tree("all", "none")) == {"file": b"new!"}
        write_bytes(tmp_path / "other", b"")
    assert dict(record.root.tree("none", "none")) == {"file": b"new!", "other": b""}
    assert record.crashes[0][0].startswith("after call 1 (open .file.1.tmp), none names")


def test_what_is_appended_is_safe_when_it_is_synced(tmp_path, monkeypatch):
    (tmp_path / "lines").write_bytes(b"one\n")
    with recorded(tmp_path, monkeypatch) as record, GrowingFile(tmp_path / "lines") as file:
        file.append(b"two\n")
        torn = contents(record, "lines")
        file.sync()
        file.append(b"three\n")
        file.truncate(4)
    assert torn == {b"one\n", b"one\ntw", b"one\n\0\0\0\0", b"one\ntwo\n"}
    three = {b"one\ntwo\n" + end for end in (b"", b"thr", bytes(6), b"three\n")}
    assert contents(record, "lines") == torn | three
    assert record.grown == {"lines"}


def test_folders_and_removals_may_be_lost_until_they_are_synced(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"old")
    with recorded(tmp_path, monkeypatch) as record:
        make_folder(tmp_path / "a")
        write_bytes(tmp_path / "a" / "inside", b"1")
        record.crashes.clear()
        remove(tmp_path / "file")
        disk.system.mkdir(tmp_path / "b")
        disk.system.rmdir(tmp_path / "b")
    states = [set(tree) for _, tree in record.crashes]
    assert {"a", "a/inside"} in states
    assert {"a", "a/inside", "b"} in states
    assert all({"a", "a/inside"} <= state for state in states)
    assert read_tree(tmp_path) == {"a": None, "a/inside": b"1"}


def test_what_is_outside_of_the_folder_is_not_recorded(tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    with recorded(tmp_path / "in", monkeypatch) as record:
        write_bytes(tmp_path / "out", b"1")
        os.close(disk.system.open_unnamed(tmp_path))
    assert not record.crashes
    assert (tmp_path / "out").read_bytes() == b"1"


@pytest.mark.parametrize("size", [0, 3, 9])
def test_writes_at_a_position_are_followed(tmp_path, monkeypatch, size):
    with recorded(tmp_path, monkeypatch) as record:
        descriptor = disk.system.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
        disk.system.write(descriptor, bytes(range(size)))
        os.lseek(descriptor, 2, os.SEEK_SET)
        disk.system.write(descriptor, memoryview(b"xy"))
        os.close(descriptor)
    content = (tmp_path / "file").read_bytes()
    assert content in contents(record, "file")
    assert isinstance(disk.system, Disk)
