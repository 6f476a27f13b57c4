"""Facts about torchrun: its attempts to run a command, and its report at the end."""

import os
import subprocess
import sys
from pathlib import Path

_WAITS_AND_PRINTS = """
import sys, time
process, line, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
end = time.monotonic() + seconds
while time.monotonic() < end:
    try:
        with open(f"/proc/{process}/stat") as file:
            state = file.read().rpartition(")")[2].split()[0]
    except OSError:
        break
    if state in "ZX":  # ended, but its parent has not asked for the exit code yet
        break
    time.sleep(0.02)
sys.stderr.write(line + "\\n")
"""
_WAIT_SECONDS = 60.0
"""Time after which the line is printed even though torchrun is still running."""


def repeat_after_torchrun(line: str) -> None:
    """Print a line again on standard error, below torchrun's own report of a failed rank.

    A small separate process waits until torchrun has ended. Nothing is printed without torchrun,
    or if torchrun will restart the ranks.
    """
    if not _is_last_attempt():
        return
    arguments = [str(os.getppid()), line, str(_WAIT_SECONDS)]
    command = [sys.executable, "-I", "-S", "-c", _WAITS_AND_PRINTS, *arguments]
    # In a session of its own, so that torchrun does not end it with the ranks.
    subprocess.Popen(
        command, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )


def launch_id() -> str:
    """Return an id that all attempts of one call of torchrun share; "" without torchrun.

    If neither the user nor torchrun has chosen an id, torchrun's process identifies the call.
    """
    run_id = os.environ.get("TORCHELASTIC_RUN_ID", "")
    if run_id != "none":
        return run_id
    parent = os.getppid()
    started = Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[19]
    return f"none {os.uname().nodename} {parent} {started}"


def is_restarted() -> bool:
    """Return whether torchrun has started this process again, after a rank was lost."""
    return _number("RESTART_COUNT") > 0


def _is_last_attempt() -> bool:
    """Return whether torchrun started this process and will not start it again."""
    is_launched = "TORCHELASTIC_RUN_ID" in os.environ
    return is_launched and _number("RESTART_COUNT") >= _number("MAX_RESTARTS")


def _number(name: str) -> int:
    return int(os.environ.get(f"TORCHELASTIC_{name}", "0"))
