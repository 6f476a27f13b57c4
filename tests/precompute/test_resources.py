"""Threads and memory that a build gets unless it is given them."""

import os

import numba

from precompute.resources import default_resources, thread_limit


def test_ranks_of_one_machine_share_it(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(os, "sysconf", {"SC_AVPHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}.get)
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 8)
    alone, shared = default_resources(1), default_resources(2)
    assert (alone.threads, alone.memory_bytes) == (8, 3_276_800)
    assert (shared.threads, shared.memory_bytes) == (4, 1_638_400)
    assert default_resources(10_000).threads == 1


def test_threads_are_limited_by_those_of_numba(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 3)
    assert thread_limit() == 3
    assert default_resources(1).threads == 3
    assert default_resources(4).threads == 2
