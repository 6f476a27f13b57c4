"""`FailingDisk`: the system's disk, of which one call fails."""

import errno
import os
from collections.abc import Callable
from typing import Any

from gpn_scale.disk import Disk

CALLS = ("open", "open_unnamed", "write", "allocate", "map", "truncate", "sync", "lock", "rename")
CALLS += ("unlink", "mkdir", "rmdir")
"""All calls of a disk."""
ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EACCES": errno.EACCES, "torn": errno.ENOSPC}
"""Kinds of failures; `torn` writes half of the bytes before it fails."""


class FailingDisk(Disk):
    """A disk that makes all calls but one.

    Args:
        fails: Number of the call that fails, from 1; 0 for none.
        kind: How it fails; one of `ERRORS`. A torn write fails at writes only.
    """

    def __init__(self, fails: int = 0, kind: str = "EIO") -> None:
        self.fails, self.kind = fails, kind
        self.calls: list[str] = []
        """Names of the calls so far."""
        self.has_failed = False

    def _call(self, name: str, real: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        self.calls.append(name)
        if len(self.calls) == self.fails and (self.kind != "torn" or name == "write"):
            self.has_failed = True
            if self.kind == "torn":
                descriptor, data = arguments
                real(descriptor, memoryview(data).cast("B")[: memoryview(data).nbytes // 2])
            number = ERRORS[self.kind]
            raise OSError(number, os.strerror(number))
        return real(*arguments, **keywords)


def _counted(name: str) -> Callable[..., Any]:
    real = getattr(Disk, name)

    def call(self: FailingDisk, *arguments: Any, **keywords: Any) -> Any:
        return self._call(name, real.__get__(self), *arguments, **keywords)

    return call


for _name in CALLS:
    setattr(FailingDisk, _name, _counted(_name))
