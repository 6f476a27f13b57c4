"""`GrowingFile`: a file that is appended to, such as a log, also by several processes."""

import io
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gpn_scale import disk
from gpn_scale.files import sync_folder

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class GrowingFile(io.RawIOBase):
    """A file that is read and appended to; unbuffered, and created if it is missing.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, GrowingFile(Path(folder) / "lines") as file:
    ...     file.append(b"one")
    ...     file.sync()
    ...     _ = file.seek(0)
    ...     file.read()
    b'one'

    Args:
        path: The file.
        permissions: Permissions of a new file.

    Raises:
        OSError: the file cannot be opened for reading and writing.
    """

    def __init__(self, path: Path, permissions: int = 0o666) -> None:
        super().__init__()
        is_new = not path.exists()
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK
        self._descriptor = disk.system.open(path, flags, permissions)
        self._path, self._folder = path, path.parent if is_new else None

    def lock(self) -> None:
        """Wait for the exclusive lock of the file, which ends when it is closed."""
        disk.system.lock(self._descriptor, wait=True)

    def append(self, content: bytes) -> None:
        """Write all bytes at the end of the file.

        Raises:
            OSError: not all bytes could be written; a partial write is undone if possible.
        """
        size, rest = os.fstat(self._descriptor).st_size, memoryview(content)
        try:
            while rest:
                rest = rest[disk.system.write(self._descriptor, rest) :]
        except OSError as error:
            error.add_note(str(self._path))
            with suppress(OSError):
                disk.system.truncate(self._descriptor, size)
            raise

    def sync(self) -> None:
        """Wait until the file and its name are on the disk."""
        disk.system.sync(self._descriptor)
        if self._folder is not None:
            sync_folder(self._folder)
            self._folder = None

    def truncate(self, size: int | None = None) -> int:
        """Cut the file off, at the current position unless another is given."""
        size = self.tell() if size is None else size
        disk.system.truncate(self._descriptor, size)
        return size

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Read into a buffer; return the number of bytes."""
        return os.readv(self._descriptor, [buffer])

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a position for reading, and return it."""
        return os.lseek(self._descriptor, offset, whence)

    def close(self) -> None:
        """Close the file, which releases its lock."""
        if not self.closed:
            super().close()
            os.close(self._descriptor)
