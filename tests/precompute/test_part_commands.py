"""Parts from the command line, in one process and in several."""

import re
import signal
import subprocess
import sys
import time

import pytest

from precompute.cli import main
from tests.precompute.command import PUSH, REPOSITORY, arguments, build, content


def test_two_processes_at_once_one_of_them_killed(data, tmp_path):
    """Both compute all of the same store in one folder, and neither disturbs the other."""
    more = [*PUSH, "--threads", "1"]
    assert build(data, tmp_path / "one", *more) == 0
    command = [sys.executable, "-m", "precompute", *arguments(data, tmp_path / "s", *more)]
    processes = [
        subprocess.Popen([*command, "--part", part], cwd=REPOSITORY, stderr=subprocess.DEVNULL)
        for part in ("1/1", "1/1")
    ]
    while not list((tmp_path / "s").glob("shard-*")) and processes[0].poll() is None:
        time.sleep(0.005)
    processes[0].send_signal(signal.SIGKILL)
    assert [process.wait() for process in processes] in ([-signal.SIGKILL, 0], [0, 0])
    assert main(["finish", str(tmp_path / "s")]) == 0
    assert content(tmp_path / "s") == content(tmp_path / "one")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--part", "0/4"], "part is 0/4, expected .*parts are numbered from 1 .* --part I/N"),
        (["--part", "5/4"], "part is 5/4, expected a number from 1/4 to 4/4"),
        (["--part", "1/0"], "part is 1/0, expected at least 1"),
        (["--part", "a/b"], "--part got 'a/b', expected two whole numbers I/N, such as 3/16"),
        (["--part", "3"], "--part got '3', expected two whole numbers"),
        (["--part", "1/2/3"], "--part got '1/2/3', expected two whole numbers"),
        (["--part", f"1/{'9' * 5000}"], "--part got '1/9*', expected two whole numbers"),
        (["--part", "1/2", "--method", "sweep"], "but method is 'sweep'.* --part I/N, --method"),
        (["--part", "1/2", "--overwrite"], "but existing is 'overwrite'.*--overwrite"),
    ],
)
def test_bad_parts_give_one_sentence(data, tmp_path, capsys, more, message):
    assert build(data, tmp_path / "s", *more) == 2
    errors = capsys.readouterr().err
    assert re.search(rf"^error: .*{message}", errors, re.MULTILINE)
    assert "Traceback" not in errors
    assert not (tmp_path / "s").exists()


def test_the_commands_tell_what_to_do_next(data, tmp_path, capsys):
    out = tmp_path / "s"
    assert build(data, out, *PUSH, "--part", "2/3", "--plan-only") == 0
    assert not out.exists()
    assert build(data, out, *PUSH, "--part", "2/3", "--resume") == 0
    assert "part 2/3 is complete" in capsys.readouterr().out
    assert main(["finish", str(out)]) == 2
    assert "(on the command line: --part 1/3, --part 3/3)" in capsys.readouterr().err
    for part in ("1/3", "3/3"):
        assert build(data, out, *PUSH, "--part", part) == 0
    assert f"gpn-precompute finish {out}" in capsys.readouterr().out
    assert main(["finish", str(out)]) == 0
    assert "700 rows of 700 nodes" in capsys.readouterr().out
