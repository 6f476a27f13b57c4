"""Locks and marks on files, between processes."""

import errno
import gc
import signal
import subprocess
import sys

import pytest

from gpn_scale import disk
from gpn_scale.locks import InUse, claimed, is_in_use


def test_one_claim_at_a_time_which_ends_with_its_block_or_process(tmp_path):
    path = tmp_path / "folder" / "lock"
    with claimed(path, wait=False) as first, claimed(path, wait=False) as second:
        assert (first, second) == (True, False)
    with pytest.raises(ValueError, match="failed"), claimed(path, wait=False):
        raise ValueError("failed")
    code = (
        "import sys, time, pathlib; from gpn_scale.locks import claimed\n"
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


def test_a_mark_ends_with_its_object_and_several_may_be_made(tmp_path):
    path = tmp_path / "rows"
    path.touch()
    first, second = InUse(path), InUse(path)
    assert is_in_use(path)
    first.end()
    assert is_in_use(path)
    del second
    gc.collect()
    assert not is_in_use(path)
    with pytest.raises(FileNotFoundError):
        InUse(tmp_path / "missing")


def test_a_mark_of_another_process_is_seen_until_it_is_killed(tmp_path):
    path = tmp_path / "rows"
    path.touch()
    code = (
        "import sys, time, pathlib; from gpn_scale.locks import InUse\n"
        "mark = InUse(pathlib.Path(sys.argv[1])); print('marked', flush=True); time.sleep(600)"
    )
    other = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "marked\n"
    seen = is_in_use(path)
    other.send_signal(signal.SIGKILL)
    other.communicate()
    assert (seen, is_in_use(path)) == (True, False)


def test_without_locks_every_file_counts_as_in_use(tmp_path, monkeypatch):
    def refuse(descriptor, *, wait, shared=False):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(disk.system, "lock", refuse)
    path = tmp_path / "rows"
    path.touch()
    mark = InUse(path)
    assert is_in_use(path)
    mark.end()
