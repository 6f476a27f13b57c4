"""Explains errors of the machine, of files and of other packages in one sentence for the user.

A full disk, a missing permission, too little memory or a damaged file is not a bug in the program.
Actual bugs keep their type and traceback.
"""

import errno
import os
import re
import sys
from concurrent.futures import BrokenExecutor
from types import TracebackType

from gpn_scale.errors import GpnScaleError, MachineError

_NEXT_STEPS = {
    errno.ENOSPC: "free space on this disk, or write to another one",
    errno.EDQUOT: "free space, or write to a disk with a larger quota",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f), or write to another disk",
    errno.EACCES: "give this user permission, or choose another path",
    errno.EPERM: "give this user permission, or choose another path",
    errno.EROFS: "choose a folder that can be written",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "it is a file, but a folder is expected: move it, or choose another path",
    errno.EISDIR: "it is a folder, but a file is expected: move it, or choose another path",
    errno.EEXIST: "the name is already taken: move the file, or choose another path",
    errno.ENOTEMPTY: "the folder is not empty: move its files, or choose another path",
    errno.ELOOP: "its symbolic links form a cycle: replace them",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
    errno.ENFILE: "close other programs, which have too many files open",
    errno.EIO: "check the disk, which fails to read or write",
    errno.ENOMEM: "close other programs, or use a machine with more memory",
}
_ALLOCATION = (
    "can't allocate memory",
    "not enough memory",
    "out of memory",
    "unable to allocate",
    "storage size calculation overflowed",
    "integer multiplication overflow",
    "invalid shape dimension",
    "maximum allowed dimension exceeded",
    "array is too big",
    "failed to allocate",
    "malloc of size",
    "invalid buffer size",
)
"""Parts of the messages of torch, NumPy and Arrow when memory cannot be allocated."""
_LONGEST_REASON = 300
_SYSTEM_ERROR = re.compile(r"\(os error ([0-9]+)\)")


def as_user_error(error: BaseException) -> GpnScaleError | None:
    """Return an error that the user can fix as a `GpnScaleError`; None for a bug.

    >>> print(as_user_error(OSError(errno.ENOSPC, "No space left on device", "run/model")))
    run/model: No space left on device: free space on this disk, or write to another one
    >>> as_user_error(KeyError("epochs")) is None
    True
    """
    if isinstance(error, GpnScaleError):
        return error
    if isinstance(error, BrokenPipeError) and error.filename is None:
        return None  # the reader of standard output has gone, which is not an error
    reason = _reason(error)
    if isinstance(error, MemoryError) or _is_about_memory(error):
        return MachineError(
            f"not enough memory ({reason}): make the model or the batches smaller, close other "
            "programs, or use a machine with more memory"
        )
    if _is_from(error, "pyarrow", "ArrowException"):
        return MachineError(f"a table cannot be read or written ({reason})")
    if isinstance(error, OSError):
        return MachineError(_os_sentence(error))
    if _is_from(error, "safetensors", "SafetensorError"):
        return MachineError(_tensor_sentence(error, reason))
    if isinstance(error, ValueError) and "embedded null" in reason:
        return MachineError("a path contains a zero byte, which is not allowed: choose another one")
    if isinstance(error, UnicodeError):
        return MachineError(f"a name or a text is not valid UTF-8 ({reason})")
    if isinstance(error, RuntimeError) and "Symlink loop" in reason:  # of Path.resolve
        return MachineError(f"{reason}: {_NEXT_STEPS[errno.ELOOP]}")
    if isinstance(error, RecursionError):
        return MachineError("the data is nested too deeply to be read")
    if isinstance(error, BrokenExecutor):
        return MachineError(
            "a process of this command was killed from outside, perhaps because memory ran out "
            f"({reason})"
        )
    return None


class Explained:
    """Replaces errors within a block by those of `as_user_error`; bugs are raised unchanged.

    >>> with Explained():
    ...     raise MemoryError("8 TiB")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    gpn_scale.errors.MachineError: not enough memory (8 TiB): make the model or the batches ...
    """

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        problem = as_user_error(error) if isinstance(error, Exception) else None
        if problem is not None and problem is not error:
            raise problem from error


def _os_sentence(error: OSError) -> str:
    if error.errno is None:
        return f"a file cannot be read or written ({_reason(error)})"
    names = [str(name) for name in (error.filename, error.filename2) if name is not None]
    return _sentence(_noted_path(error) or " and ".join(names), error.errno, str(error.strerror))


def _sentence(path: str, number: int, reason: str) -> str:
    parts = [path or "a file cannot be read or written", reason]
    step = _NEXT_STEPS.get(number)
    return ": ".join(parts if step is None else [*parts, step])


def _noted_path(error: BaseException) -> str:
    """Return the path that `files.replacing` has added as a note, or ""."""
    return "".join(getattr(error, "__notes__", [])[:1])


def _tensor_sentence(error: BaseException, reason: str) -> str:
    """Return a sentence about a file of tensors; safetensors reports system errors as text."""
    path = _noted_path(error)
    number = _SYSTEM_ERROR.search(reason)
    if number is not None:
        return _sentence(path, int(number[1]), os.strerror(int(number[1])))
    return f"{path or 'a model or checkpoint file'} cannot be read or written ({reason})"


def _is_about_memory(error: BaseException) -> bool:
    text = str(error).lower()
    return isinstance(error, RuntimeError | ValueError) and any(
        part in text for part in _ALLOCATION
    )


def _is_from(error: BaseException, package: str, name: str) -> bool:
    """Return whether an error has a class of a package, without importing the package."""
    kind = getattr(sys.modules.get(package), name, None)
    return kind is not None and isinstance(error, kind)


def _reason(error: BaseException) -> str:
    """Return the first line of the error's own text, or the name of its class."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:_LONGEST_REASON] if lines else type(error).__name__
