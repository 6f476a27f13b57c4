"""How much memory this process takes."""

import resource
import sys
from pathlib import Path


def resident_bytes() -> tuple[int, int]:
    """Memory of this process now, and the most it has had."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="ignore").splitlines()
        facts = dict(line.split(":", 1) for line in lines)
        return int(facts["VmRSS"].split()[0]) << 10, int(facts["VmHWM"].split()[0]) << 10
    except (OSError, KeyError):  # not Linux
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        most = peak if sys.platform == "darwin" else peak << 10
        return most, most


def peak_rss_bytes() -> int:
    """The most memory that this process has had."""
    return resident_bytes()[1]
