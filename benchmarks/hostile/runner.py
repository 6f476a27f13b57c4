"""Runs trials in forked processes, several at a time, each in a folder of its own.

This process imports the commands once and starts no thread, so that a fork of it is as good as a
fresh process and costs milliseconds. Whatever a command does, crashes and hangs included, ends with
its process.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hostile.commands import ROOT, Command, python_command
from hostile.results import results_of
from hostile.trial import Trial
from hostile.workshop import add_special_files, copy_piece

MEMORY = 6 << 30
"""Address space that a trial gets beyond what this process has: allocations fail, not machines."""
CANARY = "CANARY"
"""A file that a crafted pickle makes in the folder of its trial when it is run."""
_POLL_SECONDS, _PAUSE_SECONDS = 0.004, 5
_OWN_PROCESS_FACTOR = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a trial ended."""

    trial: Trial
    code: int | None
    """Exit code; None if a signal ended it or it was still running after its time."""
    signal: int = 0
    is_late: bool = False
    out: str = ""
    err: str = ""
    canary: bool = False
    results: dict[str, str] = field(default_factory=dict)
    """Hashes of what the command has written, if they are compared."""
    fault: str = ""
    """What a check of the trial found."""
    broken: str = ""
    """Traceback of a fault of the trial itself, which then proves nothing."""
    seconds: float = 0.0


class Runner:
    """Runs trials on the files of a workshop.

    Args:
        workshop: Folder with whole files; never changed.
        commands: The commands by name.
        processes: Number of trials at a time.
        seconds: Longest time of a trial.
    """

    def __init__(
        self, workshop: Path, commands: dict[str, Command], processes: int, seconds: float
    ) -> None:
        self.workshop, self._commands = workshop, commands
        self._processes, self._seconds = processes, seconds

    def run(self, trials: Iterable[Trial]) -> Iterator[Ending]:
        """Yield how each trial ended, in any order."""
        waiting = iter(trials)
        running: dict[int, _Running] = {}
        before = time.monotonic()
        try:
            while True:
                while len(running) < self._processes and (trial := next(waiting, None)):
                    process = self._start(trial)
                    running[process.number] = process
                if not running:
                    return
                before, pause = time.monotonic(), time.monotonic() - before
                for number in list(running):
                    if pause > _PAUSE_SECONDS:  # everything was stopped, as by SIGSTOP
                        running[number].began += pause
                    if (ending := running[number].poll()) is not None:
                        del running[number]
                        yield ending
                time.sleep(_POLL_SECONDS)
        finally:
            for process in running.values():
                process.kill()

    def _start(self, trial: Trial) -> "_Running":
        folder = self.workshop.with_name(f"trial-{trial.section}-{trial.number}".replace(" ", "_"))
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        sys.stdout.flush()
        pipes = [os.pipe() for _ in range(3)]
        number = os.fork()
        if number == 0:
            self._child(trial, folder, [writer for _, writer in pipes])
        for reader, writer in pipes:
            os.close(writer)
            os.set_blocking(reader, False)
        seconds = self._seconds * (_OWN_PROCESS_FACTOR if trial.own_process else 1)
        return _Running(
            trial, folder, number, [_Stream(each) for each, _ in pipes], time.monotonic(), seconds
        )

    def _child(self, trial: Trial, folder: Path, writers: list[int]) -> None:
        """Run the trial, send how it ended, and end this process."""
        record: dict[str, Any] = {}
        try:
            os.setsid()
            files = folder / "files"
            files.mkdir()
            _redirect(*writers[:2])
            os.chdir(files)
            record = self._run_here(trial, files)
        except BaseException:  # a fault of the trial itself
            record = {"broken": traceback.format_exc()}
        finally:
            os.write(writers[2], json.dumps(record).encode())
            os._exit(0)

    def _run_here(self, trial: Trial, files: Path) -> dict[str, Any]:
        for piece in trial.job.uses:
            copy_piece(self.workshop, files, piece)
        add_special_files(files)
        trial.prepare(files)
        if trial.own_process:
            code = self._run_process(trial)
        else:
            code = _run_call(trial, self._commands[trial.job.command], files)
        if code is not None and code < 0:
            return {"signal": -code}
        record: dict[str, Any] = {"code": code}
        if code == 0 and trial.is_compared:
            record["results"] = results_of(trial.job, files)
        if code == 0 and trial.check is not None:
            record["fault"] = trial.check(files)
        return record

    def _run_process(self, trial: Trial) -> int:
        words = [os.fsencode(word) for word in trial.words]
        command = python_command(self._commands[trial.job.command], [])
        return subprocess.run(
            [*command, *words],
            preexec_fn=trial.limit,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        ).returncode


def _run_call(trial: Trial, command: Command, files: Path) -> int:
    """Run a command in this process; return its exit code."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if trial.limit is not None:
        trial.limit()
    try:
        code = command.main(list(trial.words)) if trial.call is None else trial.call(files)
    except SystemExit as ending:  # as argparse ends a command
        code = int(ending.code or 0)
    except BaseException:
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            continue
    return code


def _redirect(out: int, err: int) -> None:
    """Let the standard streams of this process lead to pipes, which no limit of files concerns."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)


class _Stream:
    """The reading end of a pipe, and what has come out of it."""

    def __init__(self, number: int) -> None:
        self.number, self.content = number, b""

    @property
    def text(self) -> str:
        """All that has come so far."""
        return self.content.decode(errors="replace")

    def drain(self) -> None:
        """Read what is there, without waiting."""
        try:
            while part := os.read(self.number, 1 << 16):
                self.content += part
        except BlockingIOError:
            return


@dataclass(slots=True)
class _Running:
    """A trial that has been started."""

    trial: Trial
    folder: Path
    number: int
    streams: list[_Stream]
    """Standard output, standard error, and how the trial ended."""
    began: float
    seconds: float
    is_stopped: bool = False

    def poll(self) -> Ending | None:
        """Return how the trial ended; None while it is running."""
        for stream in self.streams:
            stream.drain()
        done, status = os.waitpid(self.number, os.WNOHANG)
        if done == 0:
            if time.monotonic() > self.began + self.seconds:
                self.kill()
                return self._ending(None, is_late=True)
            self._stop_service()
            return None
        self._kill_group()
        return self._ending(status, is_late=False)

    def kill(self) -> None:
        """End the trial and all processes that it has started."""
        self._kill_group()
        os.waitpid(self.number, 0)

    def _kill_group(self) -> None:
        try:
            os.killpg(self.number, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return

    def _stop_service(self) -> None:
        is_served = bool(self.trial.stop_at) and self.trial.stop_at in self.streams[0].text
        if is_served and not self.is_stopped:
            os.kill(self.number, signal.SIGTERM)
            self.is_stopped = True

    def _ending(self, status: int | None, *, is_late: bool) -> Ending:
        for stream in self.streams:
            stream.drain()
            os.close(stream.number)
        out, err, last = (stream.text for stream in self.streams)
        record: dict[str, Any] = json.loads(last or "{}")
        number, code = record.get("signal", 0), record.get("code")
        if status is not None and os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
        elif status is not None and not record:  # the command has ended the process itself
            code = os.WEXITSTATUS(status)
        ending = Ending(
            trial=self.trial,
            code=code,
            signal=number,
            is_late=is_late,
            canary=(self.folder / "files" / CANARY).exists(),
            results=record.get("results", {}),
            fault=record.get("fault", ""),
            seconds=time.monotonic() - self.began,
            out=out,
            err=err,
            broken=record.get("broken", ""),
        )
        _remove(self.folder)
        return ending


def _remove(folder: Path) -> None:
    """Remove the folder of a trial, also one that was made read-only."""
    for path, names, _ in os.walk(folder):
        os.chmod(path, 0o700)
        del names
    shutil.rmtree(folder, ignore_errors=True)
