"""Slow work of a service: a few threads, a short queue, and a limit on the time of a request."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

Result = TypeVar("Result")


class BusyError(Exception):
    """All threads are busy and the queue is full."""


class SlowError(Exception):
    """A request exceeded its time limit."""


class SlowWork:
    """Runs functions in threads, so that requests for known nodes never wait for them.

    A function that takes too long is not interrupted, since Python cannot do that; its thread
    stays busy until it ends, and further requests are refused once the queue is full.

    Args:
        threads: Number of threads.
        queue: Number of requests that may wait for a thread.
        seconds: Longest time from request to answer.
    """

    def __init__(self, *, threads: int, queue: int, seconds: float) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="slow-work")
        self._most, self._seconds = threads + queue, seconds
        self._lock = threading.Lock()
        self._unfinished = 0

    @property
    def unfinished(self) -> int:
        """Number of functions that run or wait."""
        return self._unfinished

    async def run(self, function: Callable[..., Result], *arguments: Any, **more: Any) -> Result:
        """Return what a function returns.

        Raises:
            BusyError: the queue is full.
            SlowError: the time is over.
        """
        with self._lock:
            if self._unfinished >= self._most:
                raise BusyError
            self._unfinished += 1
        try:
            future = self._pool.submit(partial(function, *arguments, **more))
        except RuntimeError:  # the pool is shut down
            self._end()
            raise BusyError from None
        future.add_done_callback(self._end)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._seconds)
        except TimeoutError:
            raise SlowError from None

    def close(self) -> None:
        """Accept no further work, and drop waiting work."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _end(self, _: object = None) -> None:
        with self._lock:
            self._unfinished -= 1
