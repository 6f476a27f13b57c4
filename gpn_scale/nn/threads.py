"""Run whole jobs on several threads, instead of dividing single operations among them."""

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
    """Restrict operations to the calling thread; yield the number of threads torch had.

    A chunk of the flows has hundreds of operations of a few microseconds each. Dividing each of
    them between two threads gains almost nothing, and on a busy core each operation then waits for
    milliseconds.
    """
    # Without OpenMP, torch cannot change the number of threads later.
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
    """Run the jobs and pass each result to `take`, in order and in the calling thread.

    There are as many threads as torch has in the calling thread, at most `workers`, and 1 on any
    device but the CPU. A single thread is the calling one. Several are a pool created for this call
    (0.1 ms), so that no forked process inherits a pool without threads. They run in inference mode:
    they record no gradients and may write into tensors of the caller. An error in a job is raised
    here; jobs that have not started are dropped.

    Each thread has its own `scratch`. The calling thread allocates all of them: memory that a pool
    thread frees would go back to the system, and the next call would wait for its pages again.

    >>> squares: list[int] = []
    >>> options = {"scratch": list, "device": torch.device("cpu"), "workers": 2}
    >>> run_in_order(lambda _, job: job**2, [1, 2, 3], squares.append, **options)
    >>> squares
    [1, 4, 9]
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
            own = idle.pop()  # one per thread, so never empty
            try:
                # Inference mode is set per thread, like torch's number of threads.
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
