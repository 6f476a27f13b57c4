"""Processes that `multiprocessing` has started, and which must not outlive their parent."""

import multiprocessing
import os
import threading
from multiprocessing.connection import wait


def end_with_parent() -> None:
    """Let this process end at once when its parent ends, even if the parent is killed.

    Does nothing in a process that `multiprocessing` has not started. Files that are being written
    are left as a kill leaves them: the old ones, or the new ones.

    >>> end_with_parent()
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        watch = threading.Thread(target=_end_after, args=(parent.sentinel,), daemon=True)
        watch.start()


def _end_after(sentinel: int) -> None:
    """Wait until the process of a sentinel has ended, then end this one."""
    wait([sentinel])
    os._exit(1)
