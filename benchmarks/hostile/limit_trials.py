"""Limits of the machine: small files, little memory, closed streams, full and read-only disks."""

import ctypes
import os
import random
import resource
import signal
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

from hostile.commands import Command, python_command
from hostile.trial import Job, Trial, generator
from hostile.workshop import FINDS_PROBLEMS, JOBS, copy_piece

Limit = Callable[[], None]
_JOBS = (
    *("build", "mend", "plan", "info", "verify", "import", "train", "train rows", "resume"),
    *("predict", "predict some", "predict new", "evaluate", "tables", "report", "compare"),
    *("compare tables", "triage", "update", "compact", "repair", "part", "finish"),
)
HEAD = "| head -1"
_BROKEN_PIPE = 128 + signal.SIGPIPE
_CAP_DAC_OVERRIDE, _DROP_FROM_CHILDREN = 1, 24
_NEW_MOUNTS, _PRIVATE = 0x20000, 0x44000  # CLONE_NEWNS; MS_REC and MS_PRIVATE
_OWN_PROCESS = 0.25


def limit_trials(commands: dict[str, Command], rng_seed: int, count: int) -> list[Trial]:
    """Return trials of all jobs under all limits; a part of them are processes of their own."""
    return [
        _trial(commands, number, generator(rng_seed, "limits", number)) for number in range(count)
    ]


def _trial(commands: dict[str, Command], number: int, rng: random.Random) -> Trial:
    job = JOBS[_JOBS[number % len(_JOBS)]]
    kind = number // len(_JOBS) % 8
    verify = (1,) if job.command in FINDS_PROBLEMS else ()
    settings = {"section": "limits", "number": number, "job": job, "codes": (0, 2, *verify)}
    own = rng.random() < _OWN_PROCESS
    if kind == 0:
        size = rng.choice([0, 1, 4096, 30_000, 200_000])
        limit = partial(_limited, resource.RLIMIT_FSIZE, size)
        return Trial(**settings, limit=limit, own_process=own, note=f"files of {size} bytes")
    if kind == 1:
        size = rng.choice([200, 500, 1000, 2000]) << 20
        limit = partial(_limited_memory, size)
        return Trial(**settings, limit=limit, own_process=own, note=f"{size >> 20} MiB more")
    if kind == 2:
        size = rng.choice([3, 8, 12, 20, 40])
        limit = partial(_limited, resource.RLIMIT_NOFILE, size)
        return Trial(**settings, limit=limit, note=f"{size} open files")
    if kind == 3:
        stream = rng.choice([0, 1, 2])
        settings["codes"] = (0, 1, 2) if stream == 2 else settings["codes"]
        limit = partial(os.close, stream)
        note = f"stream {stream} is closed"
        return Trial(**settings, limit=limit, own_process=True, is_mute=stream == 2, note=note)
    if kind == 4:
        note = "standard output is a full disk"
        return Trial(**settings, limit=_full_output, own_process=own, note=note)
    if kind == 5:
        settings["codes"] = (0, 2, _BROKEN_PIPE, *verify)
        return Trial(**settings, call=partial(_into_head, commands, job), note=HEAD)
    if kind == 6:
        note = "a folder that cannot be written"
        return Trial(**settings, prepare=_read_only, limit=_obeying, note=note)
    kib = rng.choice([0, 8, 64, 300])
    return Trial(
        **settings,
        prepare=partial(_small_disk, kib, job),
        own_process=own,
        note=f"a disk with {kib} KiB left",
    )


def _limited(kind: int, size: int) -> None:
    resource.setrlimit(kind, (size, size))


def _limited_memory(size: int) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _limited(resource.RLIMIT_AS, used + size)


def _unlimited_memory() -> None:
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _full_output() -> None:
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)


def _into_head(commands: dict[str, Command], job: Job, folder: Path) -> int:
    """Run the command with an output of which one line is read; return its exit code."""
    command = python_command(commands[job.command], job.arguments)
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, cwd=folder, preexec_fn=_unlimited_memory
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    return process.wait()


def _read_only(folder: Path) -> None:
    for path, _, names in os.walk(folder):
        for name in names:
            if not os.path.islink(os.path.join(path, name)):
                os.chmod(os.path.join(path, name), 0o444)
        os.chmod(path, 0o555)


def _obeying() -> None:
    """Give up the right of the administrator to write where the rights of files forbid it."""
    libc = ctypes.CDLL(None, use_errno=True)
    kept = ~(1 << _CAP_DAC_OVERRIDE) & 0xFFFFFFFF
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)()
    if libc.capget(header, data) == 0:
        data[0], data[1] = data[0] & kept, data[1] & kept
        libc.prctl(_DROP_FROM_CHILDREN, _CAP_DAC_OVERRIDE, 0, 0, 0)
        libc.capset(header, data)


def _small_disk(kib: int, job: Job, folder: Path) -> None:
    """Move the files to a file system that is nearly full, or limit files if none may be mounted.

    It is mounted for this process and its children alone.
    """
    disk = folder / "disk"
    disk.mkdir()
    used = sum(path.stat().st_size + 4096 for path in folder.rglob("*") if path.is_file())
    libc = ctypes.CDLL(None, use_errno=True)
    size = f"size={used + (kib << 10)}".encode()
    mounted = (
        libc.unshare(_NEW_MOUNTS) == 0
        and libc.mount(b"none", b"/", None, _PRIVATE, None) == 0
        and libc.mount(b"tmpfs", bytes(disk), b"tmpfs", 0, size) == 0
    )
    if not mounted:
        _limited(resource.RLIMIT_FSIZE, kib << 10)
        return
    for piece in job.uses:
        copy_piece(folder, disk, piece)
    os.chdir(disk)
