"""Atomic file writes and locks between processes.

A reader sees the old file or the new one, never a part of it. Locks divide work on the same files
among processes that know nothing of each other.
"""

import fcntl
import hashlib
import json
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_NAME_BYTES = 200
"""Longest name that `file_name` leaves as it is; suffixes and temporary names need the rest."""
_NAME_START = 120
_PROCESS = int.from_bytes(os.urandom(4), "little")
"""Tells processes with the same id apart, such as those of two containers on one volume."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success it is flushed to disk and renamed to `path`.

    On an exception the temporary file is removed and `path` keeps its content. The temporary name
    differs between processes, also of different machines. Until the end the file is locked, so that
    `remove_abandoned` knows what is left over after a crash; such a file is never read.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "result.bin"
    ...     with replacing(path) as temporary:
    ...         _ = temporary.write_bytes(b"complete")
    ...     path.read_bytes()
    b'complete'
    """
    temporary, lock = temporary_path(path), None
    try:
        lock = _create_locked(temporary)
        yield temporary
        _flush(temporary)
        os.replace(temporary, path)
        _flush(path.parent)
    except BaseException as error:
        error.add_note(str(path))  # errors of writing name no file, or the temporary one
        raise
    finally:
        temporary.unlink(missing_ok=True)
        if lock is not None:
            os.close(lock)


def temporary_path(path: Path) -> Path:
    """Return the name under which this process writes the new content of `path`.

    >>> temporary_path(Path("folder/result.bin")).name.startswith(".result.bin.")
    True
    """
    return path.with_name(f".{path.name}.{os.getpid()}{_PROCESS:010d}.tmp")


def remove_abandoned(temporary: Path) -> bool:
    """Remove a temporary file of `replacing` if its process is gone; return whether it was removed.

    A file that cannot be locked, for whatever reason, stays.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "result.bin"
    ...     with replacing(path) as temporary:
    ...         while_written = remove_abandoned(temporary)
    ...     left_over = temporary_path(path)
    ...     _ = left_over.write_bytes(b"half")
    ...     while_written, remove_abandoned(left_over)
    (False, True)
    """
    try:
        descriptor = os.open(temporary, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        temporary.unlink(missing_ok=True)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


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


def file_name(text: str) -> str:
    """Return a text as the name of one file or folder, different for different texts.

    Most texts stay as they are. Others, such as paths, get their separators and leading dots
    replaced by `%` and two digits, and very long ones end in a hash.

    >>> file_name("synthetic:nodes=100,classes=3"), file_name("../graphs/mine")
    ('synthetic:nodes=100,classes=3', '%2E.%2Fgraphs%2Fmine')
    """
    is_plain = not text.startswith(".") and text and not set(text) & set("%/\\\0")
    name = text if is_plain else text.replace("%", "%25")
    if not is_plain:
        for character in "/\\\0":
            name = name.replace(character, f"%{ord(character):02X}")
        name = f"%2E{name[1:]}" if name.startswith(".") else name or "%"
    encoded = name.encode(errors="surrogateescape")
    if len(encoded) <= _NAME_BYTES:
        return name
    digest = hashlib.blake2b(encoded, digest_size=8).hexdigest()
    return f"{encoded[:_NAME_START].decode(errors='ignore')}%{digest}"


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
    with open(path, "ab", opener=_open_at_once) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            acquired = False
        else:
            acquired = True
        yield acquired


class InUse:
    """A mark of this process on a file, which `is_in_use` sees; it ends with the object or process.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rows"
    ...     _ = path.write_bytes(b"")
    ...     mark = InUse(path)
    ...     before = is_in_use(path)
    ...     mark.end()
    ...     before, is_in_use(path)
    (True, False)

    Args:
        path: An existing file. On a file system without locks, the mark has no effect.

    Raises:
        OSError: the file cannot be opened.
        BlockingIOError: another process is about to remove the file.
    """

    def __init__(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        self.end = weakref.finalize(self, os.close, descriptor)
        """Remove the mark."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            self.end()
            raise
        except OSError:
            pass  # without locks, nobody can tell that the file is free, so it is not removed


def is_in_use(path: Path) -> bool:
    """Return whether any process has an `InUse` mark on the file `path`, or it cannot be told.

    >>> is_in_use(Path("no_file"))
    False
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting, as opening a pipe would until somebody reads from it."""
    return os.open(path, flags | os.O_NONBLOCK, 0o666)


def _create_locked(path: Path) -> int:
    """Create a file and lock it; return its descriptor."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        with suppress(OSError):  # some file systems have no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):  # removed as abandoned before it was locked
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        os.close(descriptor)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
