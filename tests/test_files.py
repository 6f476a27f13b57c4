"""Files appear whole or not at all, and what killed processes leave behind is removed."""

import contextlib
import errno
import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale import disk
from gpn_scale.files import (
    file_name,
    make_folder,
    remove,
    remove_folder,
    remove_left_over,
    rename,
    replacing,
    replacing_map,
    scratch_map,
    temporary_path,
    write_bytes,
    write_json,
    write_text,
)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    write_text(path, "old")

    def write_half() -> None:
        with replacing(path) as file:
            file.write(b"ne")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_an_error_that_a_library_keeps_to_itself_still_counts(tmp_path, monkeypatch):
    write_text(tmp_path / "file", "old")
    monkeypatch.setattr(disk.system, "write", full)

    def write_and_hide() -> None:
        with replacing(tmp_path / "file") as file:
            with contextlib.suppress(OSError):
                file.write(bytes(1 << 20))
            monkeypatch.undo()
            file.write(b"the end")

    with pytest.raises(OSError, match="No space left") as failure:
        write_and_hide()
    assert failure.value.__notes__ == [str(tmp_path / "file")]
    assert (tmp_path / "file").read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_the_error_of_the_block_is_kept_on_a_full_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(disk.system, "write", full)
    with pytest.raises(KeyError, match="epochs"), replacing(tmp_path / "file") as file:
        {}[file.write(b"still in the buffer") and "epochs"]
    assert not os.listdir(tmp_path)


def test_short_writes_are_continued_and_seeks_allowed(tmp_path, monkeypatch):
    real = disk.system.write
    monkeypatch.setattr(disk.system, "write", lambda descriptor, data: real(descriptor, data[:7]))
    with replacing(tmp_path / "file") as file:
        file.write(b"0123456789" * 10)
        assert file.tell() == 100
        file.seek(0)
        file.write(b"x")
        file.close()  # as some writers do
    assert (tmp_path / "file").read_bytes() == b"x123456789" + b"0123456789" * 9


def test_a_mapped_file_appears_whole(tmp_path, monkeypatch):
    with replacing_map(tmp_path / "file", 4) as mapping:
        mapping[1:3] = b"ab"
        assert not (tmp_path / "file").exists()
    assert (tmp_path / "file").read_bytes() == b"\0ab\0"
    monkeypatch.setattr(disk.system, "allocate", full)
    with pytest.raises(OSError, match="No space left"), replacing_map(tmp_path / "file", 9):
        pass
    assert (tmp_path / "file").read_bytes() == b"\0ab\0"
    with pytest.raises(OSError, match="No space left"):
        scratch_map(tmp_path, 9)
    assert os.listdir(tmp_path) == ["file"]


LIVING = """
import sys, time, pathlib
from gpn_scale.files import replacing
with replacing(pathlib.Path(sys.argv[1])) as file:
    file.write(b"alive")
    print("writes", flush=True)
    time.sleep(float(sys.argv[2]))
"""


def test_files_of_killed_processes_are_removed_and_those_of_living_ones_stay(tmp_path):
    path, other = tmp_path / "file", tmp_path / ".other.12345.tmp"
    other.write_bytes(b"")
    command = [sys.executable, "-c", LIVING, str(path), "600"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "writes\n"
        (temporary,) = tmp_path.glob(".file.*.tmp")
        write_text(path, "mine")
        assert temporary.exists()
        process.kill()
    write_text(path, "mine again")
    assert not temporary.exists()
    assert other.exists()
    remove_left_over(tmp_path, lambda name: name == "other")
    assert os.listdir(tmp_path) == ["file"]
    remove_left_over(tmp_path / "missing", lambda name: True)


def test_a_file_that_cannot_be_removed_is_in_nobodys_way(tmp_path):
    for name in (".file.1.tmp", ".file.3.tmp"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / ".file.2.tmp").mkdir()
    write_text(tmp_path / "file", "text")
    assert sorted(os.listdir(tmp_path)) == [".file.2.tmp", "file"]


def test_a_file_that_is_removed_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    real, times = disk.system.lock, []

    def late(descriptor, *, wait):
        if not times:
            temporary_path(tmp_path / "file").unlink()
        times.append(wait)
        real(descriptor, wait=wait)

    monkeypatch.setattr(disk.system, "lock", late)
    write_text(tmp_path / "file", "text")
    assert times == [True, True]
    assert (tmp_path / "file").read_text() == "text"


def test_a_file_system_without_locks_is_written_and_nothing_removed(tmp_path, monkeypatch):
    def refuse(descriptor, *, wait):
        raise OSError(errno.ENOLCK, "No locks available")

    (tmp_path / ".file.12345.tmp").write_bytes(b"")
    monkeypatch.setattr(disk.system, "lock", refuse)
    write_text(tmp_path / "file", "text")
    assert sorted(os.listdir(tmp_path)) == [".file.12345.tmp", "file"]


def test_a_link_under_the_temporary_name_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("old")
    temporary_path(tmp_path / "file").symlink_to(tmp_path / "precious")
    with pytest.raises(FileExistsError):
        write_bytes(tmp_path / "file", b"new")
    assert (tmp_path / "precious").read_text() == "old"


def test_everything_is_on_the_disk_before_it_counts(tmp_path, monkeypatch):
    """The content before the name, the name before the end; likewise names that come and go."""
    calls = []

    def recorded(name, real):
        def call(*arguments, **keywords):
            calls.append(name)
            return real(*arguments, **keywords)

        return call

    for name in ("write", "sync", "rename", "unlink", "mkdir"):
        monkeypatch.setattr(disk.system, name, recorded(name, getattr(disk.system, name)))
    write_text(tmp_path / "file", "text")
    assert calls == ["write", "sync", "rename", "sync"]
    calls.clear()
    make_folder(tmp_path / "a" / "b")
    assert calls == ["mkdir", "sync", "mkdir", "sync"]
    make_folder(tmp_path / "a" / "b")
    assert calls == ["mkdir", "sync", "mkdir", "sync"]
    calls.clear()
    remove(tmp_path / "file", tmp_path / "none")
    assert calls == ["unlink", "unlink", "sync"]
    calls.clear()
    rename(tmp_path / "a", tmp_path / "c")
    assert calls == ["rename", "sync"]
    assert (tmp_path / "c" / "b").is_dir()


def test_folders_are_made_once_and_never_over_a_file(tmp_path):
    make_folder(tmp_path / "folder")
    with pytest.raises(FileExistsError):
        make_folder(tmp_path / "folder", exist_ok=False)
    write_text(tmp_path / "file", "")
    with pytest.raises(FileExistsError):
        make_folder(tmp_path / "file")
    with pytest.raises(NotADirectoryError):
        make_folder(tmp_path / "file" / "inside")
    with pytest.raises(OSError, match="not empty"):
        remove_folder(tmp_path)
    remove_folder(tmp_path / "folder")
    assert os.listdir(tmp_path) == ["file"]


def test_json_refuses_what_json_does_not_have(tmp_path):
    write_json(tmp_path / "a.json", {"a": 1.5})
    assert json.loads((tmp_path / "a.json").read_text()) == {"a": 1.5}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", float("nan"))
    assert json.loads((tmp_path / "a.json").read_text()) == {"a": 1.5}


@given(text=st.text(max_size=400))
def test_any_text_becomes_the_name_of_one_file(text):
    name = file_name(text)
    assert name not in {"", ".", ".."}
    assert not set(name) & set("/\\\0")
    assert len(name.encode(errors="surrogateescape")) <= 200


@given(texts=st.lists(st.text(alphabet="./%\\A2F\0", max_size=8), min_size=2, unique=True))
def test_different_texts_have_different_names(texts):
    assert len(set(map(file_name, texts))) == len(texts)


@pytest.mark.parametrize(
    "text", ["CoraML", "synthetic:nodes=20,classes=3", "GPN[train.epochs=2;mode=exact]", "a.b", "Ä"]
)
def test_usual_names_stay_as_they_are(text):
    assert file_name(text) == text


def test_long_names_differ_in_their_hash():
    names = {file_name("x" * 300 + ending) for ending in "abc"}
    assert len(names) == 3
    assert all(name.startswith("x" * 100) for name in names)
