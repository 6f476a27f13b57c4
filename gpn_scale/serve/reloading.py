"""Detects a swapped model, a changed graph, an updated store or a new promise, and loads it."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress

from gpn_scale.errors import GpnScaleError
from gpn_scale.messages import say
from gpn_scale.serve.served_model import ModelSource, Stamp
from gpn_scale.serve.service import Service


class Reloader:
    """Checks the files of a run regularly, and swaps the model when they have changed.

    The new model is opened in a thread. Requests are answered from the old one until the new one
    is ready, and also if the new one cannot be used: a changed graph waits for the update of its
    store, and vice versa.

    Args:
        service: The service whose model is swapped.
        source: Location of the model.
        stamp: Stamp of the files before the current model was opened.
    """

    def __init__(self, service: Service, source: ModelSource, stamp: Stamp) -> None:
        self._service, self._source, self._stamp = service, source, stamp
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="reload")
        self.is_loading = False

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Check for changes until the end of the block."""
        task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            self._pool.shutdown(wait=False, cancel_futures=True)

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._service.settings.poll_seconds)
            await loop.run_in_executor(self._pool, self.look)

    def look(self) -> bool:
        """Check once, load what has changed, and return whether the model was swapped."""
        stamp = self._source.stamp()
        if stamp == self._stamp:
            return False
        self.is_loading = True
        self._stamp = stamp  # do not retry a broken file until it changes
        service = self._service
        try:
            model = self._source.opened(self._source.load_graph())
        except (GpnScaleError, OSError) as error:
            service.reload_error = " ".join(str(error).split())
            service.metrics.count_reload("failed")
            message = (
                "the changed files cannot be used, so the old model keeps answering: "
                f"{service.reload_error}"
            )
            say("reload", message, level="error", model=service.model.fingerprint)
            return False
        finally:
            self.is_loading = False
        service.use(model)
        service.reload_error = None
        service.metrics.count_reload("loaded")
        say("reload", f"now answering from model {model.fingerprint}", model=model.fingerprint)
        return True
