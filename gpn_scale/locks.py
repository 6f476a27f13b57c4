"""Locks on files between independent processes; a lock ends with its process."""

import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpn_scale import disk
from gpn_scale.files import NO_LOCKS, has_lock, make_folder


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
    make_folder(path.parent)
    # Opening a pipe without O_NONBLOCK would block until a process reads from it.
    descriptor = disk.system.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK)
    try:
        yield has_lock(descriptor, wait=wait)
    finally:
        os.close(descriptor)


class InUse:
    """A mark that this process uses a file, for `is_in_use`; it ends with the object or process.

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
        descriptor = disk.system.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.end = weakref.finalize(self, os.close, descriptor)
        """Remove the mark."""
        try:
            disk.system.lock(descriptor, wait=False, shared=True)
        except BlockingIOError:
            self.end()
            raise
        except OSError as error:
            if error.errno not in NO_LOCKS:  # without locks, no file counts as free
                self.end()
                raise


def is_in_use(path: Path) -> bool:
    """Return whether any process has an `InUse` mark on `path`; True if this cannot be determined.

    >>> is_in_use(Path("no_file"))
    False
    """
    try:
        descriptor = disk.system.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    try:
        disk.system.lock(descriptor, wait=False)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)
