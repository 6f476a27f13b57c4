"""Slow work is bounded in number and time."""

import asyncio
import threading

import pytest

from gpn_scale.serve.work import BusyError, SlowError, SlowWork


def work_of(**more):
    return SlowWork(**{"threads": 1, "queue": 1, "seconds": 30.0} | more)


def test_a_function_runs_in_a_thread_and_returns():
    async def main():
        work = work_of()
        name = await work.run(lambda: threading.current_thread().name)
        assert name.startswith("slow-work")
        assert await work.run(divmod, 7, 4) == (1, 3)
        assert await work.run(sorted, [1, 2], reverse=True) == [2, 1]
        with pytest.raises(ZeroDivisionError):
            await work.run(divmod, 1, 0)
        assert work.unfinished == 0
        work.close()

    asyncio.run(main())


def test_a_full_queue_refuses_and_recovers():
    async def main():
        work, ready, go = work_of(), threading.Event(), threading.Event()

        def wait():
            ready.set()
            go.wait()

        tasks = [asyncio.create_task(work.run(wait)) for _ in range(2)]
        while not ready.is_set():
            await asyncio.sleep(0.001)
        assert work.unfinished == 2
        with pytest.raises(BusyError):
            await work.run(int)
        go.set()
        await asyncio.gather(*tasks)
        assert await work.run(int) == 0
        work.close()

    asyncio.run(main())


def test_work_that_takes_too_long_is_given_up_and_its_thread_stays_busy():
    async def main():
        work, go = work_of(seconds=0.02, queue=0), threading.Event()
        with pytest.raises(SlowError):
            await work.run(go.wait)
        with pytest.raises(BusyError):
            await work.run(int)
        go.set()
        while work.unfinished:
            await asyncio.sleep(0.001)
        work.close()

    asyncio.run(main())


def test_a_closed_pool_takes_nothing():
    async def main():
        work = work_of()
        work.close()
        with pytest.raises(BusyError):
            await work.run(int)
        assert work.unfinished == 0

    asyncio.run(main())
