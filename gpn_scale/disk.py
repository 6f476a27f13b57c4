"""`Disk`: the system calls that change files, in one object.

Everything that gpn_scale writes goes through `gpn_scale/files.py` and `gpn_scale/growing_file.py`,
which change files only by the methods of `system`. Tests replace it with an object whose calls fail
or are recorded.
"""

import fcntl
import mmap
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class Disk:
    """System calls that change files; descriptors are those of the system.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     descriptor = Disk().open(Path(folder) / "file", os.O_WRONLY | os.O_CREAT)
    ...     Disk().write(descriptor, b"abc")
    ...     os.close(descriptor)
    3
    """

    def open(self, path: Path, flags: int, permissions: int = 0o666) -> int:
        """Open a file for writing, or a folder for `sync`; return its descriptor."""
        return os.open(path, flags | os.O_CLOEXEC, permissions)

    def open_unnamed(self, folder: Path | None) -> int:
        """Open a new file without a name in a folder (None: the system's default)."""
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            return os.dup(file.fileno())

    def write(self, descriptor: int, data: "ReadableBuffer") -> int:
        """Write bytes; return how many were written, which may be fewer."""
        return os.write(descriptor, data)

    def allocate(self, descriptor: int, num_bytes: int) -> None:
        """Reserve the blocks of a file of zeros."""
        os.posix_fallocate(descriptor, 0, num_bytes)

    def map(self, descriptor: int, num_bytes: int) -> mmap.mmap:
        """Map a file into memory, to read and change it."""
        return mmap.mmap(descriptor, num_bytes)

    def truncate(self, descriptor: int, num_bytes: int) -> None:
        """Cut a file off."""
        os.ftruncate(descriptor, num_bytes)

    def sync(self, descriptor: int) -> None:
        """Wait until a file, or the names in a folder, are on the disk."""
        os.fsync(descriptor)

    def lock(self, descriptor: int, *, wait: bool, shared: bool = False) -> None:
        """Take the lock of a file, exclusive or shared, which ends when the file is closed.

        Raises:
            BlockingIOError: another process has it, and `wait` is false.
        """
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fcntl.flock(descriptor, kind if wait else kind | fcntl.LOCK_NB)

    def rename(self, source: Path, target: Path) -> None:
        """Give a file another name, and replace the file that has it."""
        os.replace(source, target)

    def unlink(self, path: Path) -> None:
        """Remove the name of a file."""
        os.unlink(path)

    def mkdir(self, path: Path) -> None:
        """Make a folder."""
        os.mkdir(path)

    def rmdir(self, path: Path) -> None:
        """Remove an empty folder."""
        os.rmdir(path)


system = Disk()
"""The disk in use."""
