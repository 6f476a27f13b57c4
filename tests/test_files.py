import io
import json
import signal
import subprocess
import sys

import pytest

from gpn_scale import memory
from gpn_scale.files import claimed, replacing, write_json, write_text
from gpn_scale.progress import ProgressMeter


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


def test_json_refuses_what_json_does_not_have(tmp_path):
    write_json(tmp_path / "a.json", {"a": 1.5})
    assert json.loads((tmp_path / "a.json").read_text()) == {"a": 1.5}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", float("nan"))
    assert json.loads((tmp_path / "a.json").read_text()) == {"a": 1.5}


def lines_of(**options):
    stream = io.StringIO()
    with ProgressMeter("train", "epoch", stream=stream, seconds=0.0, **options) as meter:
        meter.update(4, "going well")
        meter.update(10)
    return stream.getvalue().splitlines()


def test_plain_lines_tell_rate_and_time_left():
    first, second = lines_of(total=10)
    assert first.startswith("train: epoch 4/10, ")
    assert "epoch/s" in first
    assert "s left at most, going well" in first
    assert second.startswith("train: epoch 10/10, ")


def test_without_a_total_no_end_is_promised():
    assert all("left" not in line and "/10" not in line for line in lines_of(total=None))


def test_other_ranks_are_silent():
    assert lines_of(total=10, silent=True) == []


def test_nothing_done_says_nothing():
    stream = io.StringIO()
    with ProgressMeter("train", "epoch", 5, stream=stream):
        pass
    assert stream.getvalue() == ""


def test_on_a_terminal_there_is_a_bar():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    with ProgressMeter("train", "epoch", 10, done=2, stream=stream) as meter:
        meter.update(10, "done")
    assert "10/10" in stream.getvalue()
    assert "100%" in stream.getvalue()


def test_resident_memory_is_told_without_proc_too(monkeypatch):
    now, most = memory.resident_bytes()
    assert 10 << 20 < now <= most

    def unreadable(self, **_):
        raise OSError

    monkeypatch.setattr(memory.Path, "read_text", unreadable)
    assert min(memory.resident_bytes()) >= 10 << 20
    assert memory.peak_rss_bytes() >= 10 << 20


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
