"""The only code that changes files: atomic writes, removals, folders and locks.

A reader sees either the old file or the new one, never a partial one, even after a full disk, a
killed process or a power failure. Locks coordinate independent processes that work on the same
files. All system calls that change anything go through `disk.system`.
"""

import errno
import hashlib
import io
import json
import mmap
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from gpn_scale import disk

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

TEMPORARY = re.compile(r"\.(?P<name>.+)\.[0-9]+\.tmp", re.DOTALL)
"""Pattern of the names of temporary files; `name` is the final name of the file."""
NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}
"""Error numbers of file systems that do not support locks."""
_BUFFER_BYTES = 1 << 17
_NAME_BYTES = 200
"""Longest name that `file_name` keeps; suffixes and temporary names need the rest."""
_NAME_START = 120
_PROCESS = int.from_bytes(os.urandom(4), "little")
"""Distinguishes processes with the same id, such as those of two containers on one volume."""


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file, which replaces `path` when the block ends without an error.

    The content is flushed to disk before the file is renamed, and the new name before this function
    returns. On an error, the new file is removed and `path` keeps its content. A file left by a
    killed process is removed by the next call for the same path.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "result.bin"
    ...     with replacing(path) as file:
    ...         _ = file.write(b"complete")
    ...     path.read_bytes()
    b'complete'
    """
    with _replacement(path) as descriptor:
        raw = _NewFile(descriptor)
        file = io.BufferedWriter(raw, _BUFFER_BYTES)
        try:
            yield file
            if not file.closed:
                file.flush()
            if raw.failure is not None:  # a library may have swallowed the error
                raise raw.failure
        finally:
            raw.is_finished = True
            file.close()


def temporary_path(path: Path) -> Path:
    """Return the name under which this process writes the new content of `path`.

    >>> temporary_path(Path("folder/result.bin")).name.startswith(".result.bin.")
    True
    """
    return path.with_name(f".{path.name}.{os.getpid()}{_PROCESS:010d}.tmp")


@contextmanager
def replacing_map(path: Path, num_bytes: int) -> Iterator[mmap.mmap]:
    """Yield a memory map of a new file of zeros, which replaces `path` as in `replacing`.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "result.bin"
    ...     with replacing_map(path, 3) as mapping:
    ...         mapping[:] = b"abc"
    ...     path.read_bytes()
    b'abc'
    """
    with _replacement(path) as descriptor:
        # On a full disk, writing to a block that is not allocated would kill the process.
        disk.system.allocate(descriptor, num_bytes)
        yield disk.system.map(descriptor, num_bytes)


def scratch_map(folder: Path | None, num_bytes: int) -> mmap.mmap:
    """Return a memory map of zeros in an unnamed file in `folder` (None: the system's default).

    >>> len(scratch_map(None, 3))
    3
    """
    descriptor = disk.system.open_unnamed(folder)
    try:
        disk.system.allocate(descriptor, num_bytes)
        return disk.system.map(descriptor, num_bytes)
    finally:
        os.close(descriptor)


def write_bytes(path: Path, content: bytes) -> None:
    """Replace the content of the file `path`, atomically.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_bytes(Path(folder) / "chart.png", b"PNG")
    ...     (Path(folder) / "chart.png").read_bytes()
    b'PNG'
    """
    with replacing(path) as file:
        file.write(content)


def write_text(path: Path, text: str) -> None:
    """Replace the content of the file `path` with `text`, atomically.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_text(Path(folder) / "notes.md", "# Notes")
    ...     (Path(folder) / "notes.md").read_text()
    '# Notes'
    """
    write_bytes(path, text.encode())


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
    """Return a text as a valid name of a file or folder; different texts get different names.

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


def make_folder(path: Path, *, exist_ok: bool = True) -> None:
    """Create a folder and its missing parents, and flush their names to disk.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     make_folder(Path(folder) / "runs" / "mine")
    ...     (Path(folder) / "runs" / "mine").is_dir()
    True

    Raises:
        FileExistsError: a file has this name; or a folder has it, and `exist_ok` is false.
    """
    if path.is_dir() and exist_ok:
        return
    if not path.parent.exists():
        make_folder(path.parent)
    try:
        disk.system.mkdir(path)
    except FileExistsError:  # perhaps another process has just made it
        if not exist_ok or not path.is_dir():
            raise
    sync_folder(path.parent)


def remove(*paths: Path) -> None:
    """Remove files, and flush the removal to disk; missing files are ignored.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_text(Path(folder) / "old.md", "")
    ...     remove(Path(folder) / "old.md", Path(folder) / "older.md")
    ...     list(Path(folder).iterdir())
    []
    """
    folders = set()
    for path in paths:
        with suppress(FileNotFoundError):
            disk.system.unlink(path)
            folders.add(path.parent)
    for folder in sorted(folders):
        sync_folder(folder)


def remove_folder(path: Path) -> None:
    """Remove an empty folder.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     make_folder(Path(folder) / "plots")
    ...     remove_folder(Path(folder) / "plots")
    ...     list(Path(folder).iterdir())
    []
    """
    disk.system.rmdir(path)


def rename(source: Path, target: Path) -> None:
    """Rename a file or folder, and flush the new name to disk; its content must be there already.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_text(Path(folder) / "old.md", "")
    ...     rename(Path(folder) / "old.md", Path(folder) / "new.md")
    ...     [path.name for path in Path(folder).iterdir()]
    ['new.md']
    """
    disk.system.rename(source, target)
    sync_folder(target.parent)


def remove_left_over(folder: Path, is_own: Callable[[str], bool]) -> None:
    """Remove temporary files of processes that have ended; those of running ones are kept.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / ".model.123.tmp").write_bytes(b"half")
    ...     remove_left_over(Path(folder), lambda name: name == "model")
    ...     list(Path(folder).iterdir())
    []

    Args:
        folder: The folder.
        is_own: Returns whether temporary files with this final name may be removed.
    """
    names = os.listdir(folder) if folder.is_dir() else []
    for name in names:
        match = TEMPORARY.fullmatch(name)
        if match is not None and is_own(match["name"]):
            with suppress(OSError):  # a file that cannot be removed does no harm
                _remove_unless_locked(folder / name)


def sync_folder(path: Path) -> None:
    """Flush the names in a folder to disk.

    >>> sync_folder(Path("."))
    """
    descriptor = disk.system.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        disk.system.sync(descriptor)
    finally:
        os.close(descriptor)


class _NewFile(io.RawIOBase):
    """A file that is being written; writes after a failure are ignored.

    Libraries keep writing after a failure, and these writes must not fail again. The object has no
    file number, so that nothing can write to the file without this module.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self.failure: OSError | None = None
        self.is_finished = False

    def writable(self) -> bool:
        return True

    def write(self, data: "ReadableBuffer") -> int:
        if self.is_finished or self.failure is not None:
            return memoryview(data).nbytes
        try:
            return disk.system.write(self._descriptor, data)
        except OSError as error:
            self.failure = error
            raise

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return os.lseek(self._descriptor, offset, whence)


@contextmanager
def _replacement(path: Path) -> Iterator[int]:
    """Yield the descriptor of a temporary file that becomes `path` if the block succeeds."""
    temporary = temporary_path(path)
    try:
        remove_left_over(path.parent, lambda name: name == path.name)
        descriptor = _open_temporary(temporary)
        try:
            yield descriptor
            disk.system.sync(descriptor)
            disk.system.rename(temporary, path)
        except BaseException:
            with suppress(OSError):
                disk.system.unlink(temporary)
            raise
        finally:
            os.close(descriptor)
        sync_folder(path.parent)
    except BaseException as error:
        error.add_note(str(path))  # write errors name no file, or the temporary one
        raise


def _open_temporary(path: Path) -> int:
    """Return a new, locked file: the lock shows `remove_left_over` that its process is running."""
    while True:
        descriptor = disk.system.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            _lock_if_possible(descriptor)
            if _is_same_file(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            with suppress(OSError):
                disk.system.unlink(path)
            raise
        os.close(descriptor)  # removed before it was locked


def _lock_if_possible(descriptor: int) -> None:
    try:
        disk.system.lock(descriptor, wait=True)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise


def _is_same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _remove_unless_locked(path: Path) -> None:
    """Remove a temporary file unless a running process has locked it."""
    descriptor = disk.system.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        if has_lock(descriptor, wait=False):
            disk.system.unlink(path)
    finally:
        os.close(descriptor)


def has_lock(descriptor: int, *, wait: bool) -> bool:
    """Try to take the exclusive lock of an open file; return whether this process has it.

    >>> with open("/dev/null") as file:
    ...     has_lock(file.fileno(), wait=False)
    True
    """
    try:
        disk.system.lock(descriptor, wait=wait)
    except BlockingIOError:
        return False
    return True
