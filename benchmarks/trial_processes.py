"""Processes that are killed, stopped and continued from outside, for `kill_trials.py`."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

_LONGEST_SECONDS = 900
"""After this time without an end, a process counts as hanging."""
_OWN_FRAME = re.compile(r'File ".*/(gpn_scale|precompute|launch)/.*", line')
"""A line of a traceback of ours; torchrun prints one of its own if a rank fails."""
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process has ended."""

    code: int | None
    """Its exit code; None if it was killed by the trial."""
    seconds: float
    output: str

    @property
    def sentence(self) -> str:
        """The line on standard error that says why it ended; "" without one."""
        lines = [line for line in self.output.splitlines() if "error: " in line]
        return lines[-1].partition("error: ")[2] if lines else ""


def start(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own, with all its output in `log`."""
    with log.open("wb") as output:
        return subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=os.environ | _ENVIRONMENT,
        )


def ended(process: subprocess.Popen[bytes], log: Path, seconds: float | None = None) -> Ended:
    """Wait for a process, kill it with all its descendants after `seconds`, and say how it ended.

    Raises:
        SystemExit: it hangs, or has printed a traceback.
    """
    began = time.monotonic()
    try:
        code = process.wait(_LONGEST_SECONDS if seconds is None else seconds)
    except subprocess.TimeoutExpired:
        send(family(process.pid), signal.SIGKILL)
        process.wait()
        if seconds is None:
            raise SystemExit(f"{process.args!r} hangs: see {log}") from None
        code = None
    output = log.read_text(encoding="utf-8", errors="replace")
    if code is not None and _OWN_FRAME.search(output):
        raise SystemExit(f"{process.args!r} has printed a traceback: see {log}")
    return Ended(code, time.monotonic() - began, output)


def run(command: list[str], log: Path, seconds: float | None = None) -> Ended:
    """Run a command, and kill it with all its descendants after `seconds`.

    Raises:
        SystemExit: it hangs, fails, or prints a traceback.
    """
    result = ended(start(command, log), log, seconds)
    if result.code not in (0, None):
        raise SystemExit(f"{' '.join(command)} ended with {result.code}: see {log}")
    return result


def family(leader: int) -> list[int]:
    """Return a process and all its descendants, in whatever session they are."""
    members = [leader]
    while True:
        children = [
            int(path.name)
            for path in Path("/proc").glob("[0-9]*")
            if _parent_of(path) in members and int(path.name) not in members
        ]
        if not children:
            return members
        members += children


def rank_process(leader: int, rank: int, seconds: float = 60) -> int:
    """Return the process of a rank that torchrun or mpiexec has started, as soon as it runs."""
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        for process in family(leader):
            variables = _environment_of(process)
            if str(rank) in (variables.get("RANK"), variables.get("PMI_RANK")):
                return process
        time.sleep(0.05)
    raise SystemExit(f"rank {rank} of process {leader} was not started within {seconds} s")


def send(processes: list[int], number: signal.Signals) -> None:
    """Send a signal to processes, of which some may have ended."""
    for process in processes:
        try:
            os.kill(process, number)
        except ProcessLookupError:
            continue


def python(*arguments: str) -> list[str]:
    """Return the command that runs this Python with arguments."""
    return [sys.executable, *arguments]


def _parent_of(path: Path) -> int:
    """Return the parent of the process with this /proc folder; 0 if it has ended."""
    try:
        return int(path.joinpath("stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _environment_of(process: int) -> dict[str, str]:
    try:
        text = Path(f"/proc/{process}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return {}
    return dict(part.split("=", 1) for part in text.split("\0") if "=" in part)
