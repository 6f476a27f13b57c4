"""Whole-or-nothing file writes: a reader sees the old file or the new one, never a part.

And claims, by which processes that know nothing of each other divide work on the same files.
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
    """Yields a temporary path beside `path`; on success it is flushed to disk and renamed over it.

    On an exception the temporary file is removed and `path` keeps what it held. The process id in
    the temporary name keeps two writers apart; a name left over after a crash is never read.
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
    """Replaces the file `path` by `text`, atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Replaces the file `path` by `value` as indented JSON, atomically; NaN is refused."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


@contextmanager
def claimed(path: Path, *, wait: bool) -> Iterator[bool]:
    """Whether the block alone may do what the file `path` stands for; a process that dies frees it.

    Args:
        path: A file for this alone; made if it is not there, and left.
        wait: Until it is free; else the block runs with False if somebody has it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            free = False
        else:
            free = True
        yield free


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
