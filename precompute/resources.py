"""Threads and memory that a build may use, and the amounts that this machine offers."""

import os
from dataclasses import dataclass

import numba


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Threads and memory that a build may use in this rank.

    >>> Resources(threads=2, memory_bytes=1 << 30).threads
    2
    """

    threads: int
    memory_bytes: int


def thread_limit() -> int:
    """Return the largest number of threads that numba allows (`NUMBA_NUM_THREADS`).

    >>> thread_limit() >= 1
    True
    """
    return int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined] # set on import


def default_resources(ranks_per_machine: int = 1) -> Resources:
    """Return one rank's part of this machine's cores, and of 80 % of its free memory.

    The number of threads does not exceed what numba allows.

    >>> default_resources(ranks_per_machine=1024).threads
    1
    """
    cores = len(os.sched_getaffinity(0))
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Resources(
        threads=min(max(1, cores // ranks_per_machine), thread_limit()),
        memory_bytes=int(0.8 * free) // ranks_per_machine,
    )
