"""Measures the memory of this process, and makes it use less."""

import contextlib
import ctypes
import os
import resource
import sys
from pathlib import Path

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # numbers of the options in glibc's malloc.h
KEPT_BLOCK_BYTES = {"exact": 1 << 20, "minibatch": 32 << 20}  # 32 MiB is glibc's maximum
"""Argument of `keep_freed_blocks` for each training mode."""


def resident_bytes() -> tuple[int, int]:
    """Return the resident memory of this process: now, and at its peak.

    >>> now, peak = resident_bytes()
    >>> now > 0 and peak > 0
    True
    """
    now, peak = _status("VmRSS", "VmHWM")
    return now, peak


def physical_bytes() -> int:
    """Return the total memory of this machine, free or not.

    >>> physical_bytes() > 1 << 28
    True
    """
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def peak_rss_bytes() -> int:
    """Return the peak of this process's resident memory.

    >>> peak_rss_bytes() > 1 << 20  # more than a MiB
    True
    """
    return resident_bytes()[1]


def forget_peak() -> None:
    """Reset the peak of this process's resident memory; has no effect except on Linux.

    >>> before = peak_rss_bytes()
    >>> forget_peak()
    >>> peak_rss_bytes() <= before
    True
    """
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def anonymous_bytes() -> int:
    """Return the resident memory that is not backed by a file, which cannot be reclaimed.

    >>> anonymous_bytes() > 0
    True
    """
    return sum(_status("RssAnon", "RssShmem"))


def keep_freed_blocks(up_to_bytes: int) -> None:
    """Make glibc keep freed blocks up to this size for later allocations, in the whole process.

    Larger blocks go back to the system at once, and so does free memory at the end of the heap
    beyond twice this size. A step of minibatch mode frees a dozen blocks of 10 to 20 MB; mapping
    them again page by page would take a fifth of its time (docs/performance.md). In exact mode the
    blocks are as large as the graph, and the holes between them would cost a quarter of its memory.
    By default, glibc raises its limit to the largest block freed so far, up to 32 MB. Only programs
    should call this function, not libraries.

    >>> keep_freed_blocks(KEPT_BLOCK_BYTES["minibatch"])
    >>> KEPT_BLOCK_BYTES["minibatch"] >> 20  # MiB
    32
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(_M_MMAP_THRESHOLD, up_to_bytes)
        libc.mallopt(_M_TRIM_THRESHOLD, 2 * up_to_bytes)


def give_back_freed_memory() -> None:
    """Return all free pages of the heap to the system; useful between two phases of a program.

    >>> block = bytearray(1 << 20)
    >>> del block
    >>> give_back_freed_memory()
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)


def _status(*names: str) -> list[int]:
    """Return entries of /proc/self/status in bytes; on other systems the peak for each of them."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="ignore").splitlines()
        facts = dict(line.split(":", 1) for line in lines)
        return [int(facts[name].split()[0]) << 10 for name in names]
    except (OSError, KeyError):  # not Linux
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return [peak if sys.platform == "darwin" else peak << 10] * len(names)
