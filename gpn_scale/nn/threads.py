"""Whole jobs on several threads, where torch's own threads would share single operations."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

Job = TypeVar("Job")
Result = TypeVar("Result")
Scratch = TypeVar("Scratch")


@contextmanager
def _one_thread(device: torch.device) -> Iterator[int]:
    """Keeps operations on the calling thread; gives the number of threads they would have had.

    A chunk of the flows has hundreds, of some microseconds each. Handing halves of them to a second
    thread gains next to nothing, and where other work holds a core each waits for milliseconds.
    """
    # Without OpenMP, torch cannot change its mind about threads later on.
    openmp: bool = torch.backends.openmp.is_available()  # type: ignore[no-untyped-call]
    if device.type != "cpu" or not openmp:
        yield 1
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)


def run_in_order(
    work: Callable[[Scratch, Job], Result],
    jobs: Sequence[Job],
    take: Callable[[Result], None],
    *,
    scratch: Callable[[], Scratch],
    device: torch.device,
    workers: int,
) -> None:
    """Does the jobs and gives each result to `take`, in order and in the calling thread.

    There are as many threads as torch has in the calling one, but at most `workers`, and 1 for
    another device than the CPU; `work` keeps to its thread. One thread is the calling one. Several
    are a pool made for this call (0.1 ms), so that no forked process inherits one without threads.
    They run in inference mode: they record no gradients, and may write into tensors of the caller.
    An error in a job surfaces here; jobs that have not begun are dropped.

    Each thread has a `scratch` of its own. The calling thread makes them all: what a thread of the
    pool frees would go back to the system, and the next call wait for the pages again.
    """
    with _one_thread(device) as threads:
        workers = min(workers, threads, len(jobs))
        if workers <= 1:
            own = scratch()
            for job in jobs:
                take(work(own, job))
            return
        idle = [scratch() for _ in range(workers)]

        def work_in_pool(job: Job) -> Result:
            own = idle.pop()  # as many as threads, so there is one
            try:
                # Modes belong to a thread, as torch's number of threads does.
                with torch.inference_mode():
                    return work(own, job)
            finally:
                idle.append(own)

        with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            try:
                for result in pool.map(work_in_pool, jobs):
                    take(result)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
