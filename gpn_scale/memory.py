"""How much memory this process takes, and how to take less."""

import ctypes
import resource
import sys
from pathlib import Path

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
KEPT_BLOCK_BYTES = {"exact": 1 << 20, "minibatch": 32 << 20}  # glibc takes no more
"""By mode of training, for `keep_freed_blocks`."""


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


def keep_freed_blocks(up_to_bytes: int) -> None:
    """From now on, freed blocks up to this size are kept for the next ones, as glibc allows.

    Larger ones go back to the system at once, and so does what lies free at the heap's end beyond
    twice the size. A step of minibatch mode frees a dozen blocks of 10 to 20 MB; to map them again
    page by page would take a fifth of its time (docs/performance.md). Blocks of exact mode are as
    large as the graph, and holes between them would cost a quarter of its memory. Left alone, glibc
    keeps what was freed once, up to 32 MB. For programs to call: it is for the whole process.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(_M_MMAP_THRESHOLD, up_to_bytes)
        libc.mallopt(_M_TRIM_THRESHOLD, 2 * up_to_bytes)


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
