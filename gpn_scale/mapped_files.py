"""Handling of memory-mapped files that can no longer be read or written.

If a mapped file is truncated, or the disk of a growing one is full, the next access to its map
raises the signal SIGBUS, which would end the process without a message. Python code cannot handle
it: the same instruction would raise it again forever. So a handler of the C library prints one
sentence and ends the process.
"""

import ctypes
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int)


@contextmanager
def bus_errors_explained(say: Callable[[str], None], exit_code: int) -> Iterator[None]:
    """Within the block, end the process with a message if a mapped file fails.

    >>> with bus_errors_explained(print, exit_code=2):
    ...     sum(bytes(3))
    0

    Args:
        say: Prints the sentence.
        exit_code: Exit code of the process.
    """

    def end(_: int) -> None:
        try:
            say(_sentence())
        finally:
            os._exit(exit_code)

    library = ctypes.CDLL(None)
    library.signal.argtypes = ctypes.c_int, ctypes.c_void_p
    library.signal.restype = ctypes.c_void_p
    handler = _HANDLER(end)  # must live as long as it may be called
    before = library.signal(signal.SIGBUS, ctypes.cast(handler, ctypes.c_void_p))
    try:
        yield
    finally:
        library.signal(signal.SIGBUS, before)


def truncated_files(maps: str) -> list[str]:
    """Return the mapped files that are shorter than their maps, each once.

    >>> truncated_files("7f00-7f10 r--p 00000000 00:00 0 [heap]")
    []

    Args:
        maps: Text like that of `/proc/self/maps`.
    """
    paths = []
    for line in maps.splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) < 6 or fields[1][0] != "r" or not fields[5].startswith("/"):
            continue
        start, stop = (int(part, 16) for part in fields[0].split("-"))
        try:
            size = os.stat(fields[5]).st_size
        except OSError:
            continue
        # A map ends with its last page, of which the file may fill a part.
        missing = int(fields[2], 16) + stop - start - size >= os.sysconf("SC_PAGE_SIZE")
        if missing and fields[5] not in paths:
            paths.append(fields[5])
    return paths


def _sentence() -> str:
    try:
        paths = truncated_files(Path("/proc/self/maps").read_text(errors="replace"))
    except OSError:
        paths = []
    if paths:
        return (
            f"{paths[0]} was truncated while it was in use: restore it, and keep other programs "
            "from changing files in use"
        )
    return (
        "a file that is mapped into memory cannot be read or written: its disk is full or fails; "
        "free space on it, or use another one"
    )
