"""Atomic file writes and locks between processes.

A reader sees the old file or the new one, never a part of it. Locks divide work on the same files
among processes that know nothing of each other.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success it is flushed to disk and renamed to `path`.

    On an exception the temporary file is removed and `path` keeps its content. The process id in
    the temporary name keeps two writers apart; a file left over after a crash is never read.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "result.bin"
    ...     with replacing(path) as temporary:
    ...         _ = temporary.write_bytes(b"complete")
    ...     path.read_bytes()
    b'complete'
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        _flush(temporary)
        os.replace(temporary, path)
        _flush(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Replace the content of the file `path` with `text`, atomically.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_text(Path(folder) / "notes.md", "# Notes")
    ...     (Path(folder) / "notes.md").read_text()
    '# Notes'
    """
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Replace the content of the file `path` with `value` as indented JSON, atomically.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_json(Path(folder) / "facts.json", {"epochs": 30})
    ...     json.loads((Path(folder) / "facts.json").read_text())
    {'epochs': 30}

    Raises:
        ValueError: `value` holds NaN or infinity, which JSON does not have.
    """
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


@contextmanager
def claimed(path: Path, *, wait: bool) -> Iterator[bool]:
    """Try to take the exclusive lock on the file `path`; yield whether this process has it.

    The lock is released at the end of the block, or when the process ends for any reason.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, claimed(Path(folder) / "lock", wait=True) as first:
    ...     with claimed(Path(folder) / "lock", wait=False) as second:
    ...         first, second
    (True, False)

    Args:
        path: A file that serves only as the lock. It is created if missing, and never removed.
        wait: Wait until the lock is free. Otherwise the block runs at once, with False if another
            process holds the lock.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            acquired = False
        else:
            acquired = True
        yield acquired


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
