"""How much memory this process takes, and how to take less."""

import ctypes
import resource
import sys
from pathlib import Path

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h


def resident_bytes() -> tuple[int, int]:
    """Memory of this process now, and the most it has had."""
    now, most = _status("VmRSS", "VmHWM")
    return now, most


def peak_rss_bytes() -> int:
    """The most memory that this process has had."""
    return resident_bytes()[1]


def anonymous_bytes() -> int:
    """Memory of this process now that no file stands behind, so that it cannot be taken away."""
    return sum(_status("RssAnon", "RssShmem"))


def steady_memory() -> None:
    """From now on, freed blocks of up to 32 MB are kept for the next ones, as glibc allows.

    Blocks of that size, of which a training step frees a dozen, would else go back to the system
    and come again page by page, a fifth of the step's time (docs/performance.md). What lies free
    at the heap's end goes back beyond 64 MB, and every larger block at once. For programs to
    call: it is for the whole process.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(_M_MMAP_THRESHOLD, 32 << 20)  # the most that glibc takes
        libc.mallopt(_M_TRIM_THRESHOLD, 64 << 20)


def give_back_freed_memory() -> None:
    """Returns all free pages of the heap to the system, between two kinds of work."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)


def _status(*names: str) -> list[int]:
    """Entries of /proc/self/status in bytes; elsewhere the peak for all of them."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="ignore").splitlines()
        facts = dict(line.split(":", 1) for line in lines)
        return [int(facts[name].split()[0]) << 10 for name in names]
    except (OSError, KeyError):  # not Linux
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return [peak if sys.platform == "darwin" else peak << 10] * len(names)
