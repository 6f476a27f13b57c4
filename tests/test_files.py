import errno
import fcntl
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.files import (
    claimed,
    file_name,
    remove_abandoned,
    replacing,
    temporary_path,
    write_json,
    write_text,
)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    write_text(path, "old")

    def write_half() -> None:
        with replacing(path) as temporary:
            temporary.write_text("ne")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


WRITER = """
import pathlib, sys, time
from gpn_scale import files
files._PROCESS = 7
with files.replacing(pathlib.Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    print(temporary, flush=True)
    time.sleep(600)
"""


def test_only_what_a_dead_process_has_left_is_removed(tmp_path):
    command = [sys.executable, "-c", WRITER, tmp_path / "file"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        temporary = tmp_path / Path(writer.stdout.readline().strip()).name
        assert temporary.name == f".file.{writer.pid}0000000007.tmp"
        assert not remove_abandoned(temporary)
        assert temporary.read_text() == "half"
        writer.kill()
    assert remove_abandoned(temporary)
    assert list(tmp_path.iterdir()) == []
    assert not remove_abandoned(temporary)


def test_what_is_no_temporary_file_of_ours_stays(tmp_path):
    (tmp_path / "link").symlink_to("/dev/full")
    (tmp_path / "folder").mkdir()
    assert not remove_abandoned(tmp_path / "link")
    assert not remove_abandoned(tmp_path / "folder")
    assert len(list(tmp_path.iterdir())) == 2


def test_a_temporary_file_that_is_removed_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    path, lock = tmp_path / "file", fcntl.flock
    removals = [temporary_path(path)]

    def remove_first(descriptor, operation):
        if removals:
            removals.pop().unlink()
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    with replacing(path) as temporary:
        assert temporary.exists()
        temporary.write_text("new")
    assert path.read_text() == "new"


def test_files_are_written_where_nothing_can_be_locked(tmp_path, monkeypatch):
    def refuse(descriptor, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with replacing(tmp_path / "file") as temporary:
        temporary.write_text("new")
        assert not remove_abandoned(temporary)
    assert (tmp_path / "file").read_text() == "new"


def test_json_refuses_what_json_does_not_have(tmp_path):
    write_json(tmp_path / "a.json", {"a": 1.5})
    assert json.loads((tmp_path / "a.json").read_text()) == {"a": 1.5}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", float("nan"))
    assert json.loads((tmp_path / "a.json").read_text()) == {"a": 1.5}


def test_one_claim_at_a_time_which_ends_with_its_block_or_process(tmp_path):
    path = tmp_path / "folder" / "lock"
    with claimed(path, wait=False) as first, claimed(path, wait=False) as second:
        assert (first, second) == (True, False)
    with pytest.raises(ValueError, match="failed"), claimed(path, wait=False):
        raise ValueError("failed")
    code = (
        "import sys, time, pathlib; from gpn_scale.files import claimed\n"
        "with claimed(pathlib.Path(sys.argv[1]), wait=True): print('has it', flush=True); "
        "time.sleep(600)"
    )
    other = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "has it\n"
    with claimed(path, wait=False) as mine:
        assert not mine
    other.send_signal(signal.SIGKILL)
    other.communicate()
    with claimed(path, wait=True) as mine:
        assert mine


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
