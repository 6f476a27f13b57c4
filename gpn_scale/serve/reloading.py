"""Looking for a swapped model, a changed graph, an updated store or a new promise, and using it."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress

from gpn_scale.errors import GpnScaleError
from gpn_scale.messages import say
from gpn_scale.serve.served_model import ModelSource, Stamp
from gpn_scale.serve.service import Service


class Reloader:
    """Looks at the files of a run now and then, and swaps the model when they have changed.

    The new model is opened in a thread. Requests are answered from the old one until the new one
    is complete, and go on being so if it cannot be used: a graph that has changed waits for the
    update of its store, and the other way round.

    Args:
        service: The service whose model is swapped.
        source: Where the model is.
        stamp: Stamp of the files before the current model was opened.
    """

    def __init__(self, service: Service, source: ModelSource, stamp: Stamp) -> None:
        self._service, self._source, self._stamp = service, source, stamp
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="reload")
        self.is_loading = False

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Look for changes until the end of the block."""
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
        """Look once, load what has changed, and return whether the model was swapped."""
        stamp = self._source.stamp()
        if stamp == self._stamp:
            return False
        self.is_loading = True
        self._stamp = stamp  # a broken file is not tried again until it changes
        service = self._service
        try:
            model = self._source.opened(self._source.load_graph())
        except (GpnScaleError, OSError) as error:
            service.reload_error = " ".join(str(error).split())
            service.metrics.count_reload("failed")
            message = f"what has changed is not used, the old one answers: {service.reload_error}"
            say("reload", message, level="error", model=service.model.fingerprint)
            return False
        finally:
            self.is_loading = False
        service.use(model)
        service.reload_error = None
        service.metrics.count_reload("loaded")
        say("reload", f"now answering from model {model.fingerprint}", model=model.fingerprint)
        return True
