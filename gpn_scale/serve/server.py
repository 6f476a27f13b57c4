"""Starts and stops a service: its socket, its processes, its signals."""

import logging
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch
import uvicorn

from gpn_scale.child_process import end_with_parent
from gpn_scale.data.graph import Graph
from gpn_scale.errors import RunError
from gpn_scale.messages import Level, say
from gpn_scale.progress import ProgressMeter
from gpn_scale.serve.application import application
from gpn_scale.serve.decisions import DecisionLog
from gpn_scale.serve.metrics import FOLDER_VARIABLE
from gpn_scale.serve.reloading import Reloader
from gpn_scale.serve.served_model import ModelSource, Stamp
from gpn_scale.serve.service import Service
from gpn_scale.serve.settings import ServeSettings
from gpn_scale.serve.web import ASGIApp

_STOPS = (signal.SIGINT, signal.SIGTERM)
_WATCH_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True)
class ServeRequest:
    """Everything that a process of a service needs; can be sent to another process."""

    source: ModelSource
    settings: ServeSettings
    decisions: Path
    run: str
    """Fingerprint of the run, for the file of decisions."""
    graph: str
    """Name of the graph."""
    threads: int = 1
    """Number of threads of torch in each process."""
    stamp: Stamp = ()
    """Stamp of the files before the graph was loaded."""


def serve(request: ServeRequest, graph: Graph) -> None:
    """Answer requests until a signal ends the process; requests that have begun are finished.

    Args:
        request: The model to serve, and the settings.
        graph: The graph of the run.

    Raises:
        RunError: the address cannot be used, or the decisions are those of another run.
        GpnScaleError: the model or the store cannot be used.
    """
    settings = request.settings
    with bind(settings.host, settings.port) as bound:
        DecisionLog(request.decisions, request.run, request.graph)  # fail early on a wrong file
        if settings.workers == 1:
            announce = _announcement(settings, bound)
            _answer(request, bound, graph, request.stamp, announce=announce)
        else:
            with ProgressMeter("predict", "node", graph.num_nodes) as meter:
                request.source.opened(graph, meter.update)  # once, before the processes start
            _supervise(request, bound)


def bind(host: str, port: int) -> socket.socket:
    """Return a socket bound to this address; connections wait until the service answers.

    Raises:
        RunError: the address is in use or does not belong to this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        # Two sockets may share an address until one of them listens, so listen at once.
        bound.listen(1)
    except OSError as error:
        bound.close()
        raise RunError(
            f"port {port} of {host} cannot be used ({error.strerror}): choose another port, or "
            "end the program that uses it",
            arguments=("port", "host"),
        ) from error
    return bound


def _announcement(settings: ServeSettings, bound: socket.socket) -> Callable[[], None]:
    port = bound.getsockname()[1]
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    url = f"http://{host}:{port}/"
    return lambda: say("address", f"answering at {url}", result=True, url=url)


def _answer(
    request: ServeRequest,
    bound: socket.socket,
    graph: Graph,
    stamp: Stamp,
    *,
    announce: Callable[[], None],
    silent: bool = False,
) -> None:
    """Answer requests in this process until a signal arrives."""
    decisions = DecisionLog(request.decisions, request.run, request.graph)
    with ProgressMeter("predict", "node", graph.num_nodes, silent=silent) as meter:
        # Only the service refers to the model, so that a swap releases its store.
        service = Service(request.source.opened(graph, meter.update), decisions, request.settings)
    torch.set_num_threads(request.threads)
    reloader = Reloader(service, request.source, stamp)
    server = _Server(application(service, reloader), request.settings, announce)
    server.run([bound])
    if service.work.unfinished or reloader.is_loading:
        # Their threads cannot be interrupted, and their results are no longer needed.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


class _Server(uvicorn.Server):
    """A server that announces when it answers, and ends with exit code 0 on a signal."""

    def __init__(self, app: ASGIApp, settings: ServeSettings, announce: Callable[[], None]) -> None:
        _log_messages()
        config = uvicorn.Config(
            app,
            loop="uvloop",
            http="httptools",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=int(settings.request_seconds) + 5,
        )
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and announce the address."""
        await super().startup(sockets)
        if self.started:
            self._announce()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on the first signal, at once on the second; neither is raised again."""
        previous = {number: signal.signal(number, self.handle_exit) for number in _STOPS}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


class _Messages(logging.Handler):
    """Turns the server's log into messages; the application reports bugs itself."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a warning or an error."""
        if "Exception in ASGI application" not in record.getMessage():
            level: Level = "error" if record.levelno >= logging.ERROR else "warning"
            say("server", record.getMessage(), level=level)


def _log_messages() -> None:
    logger = logging.getLogger("uvicorn.error")
    logger.handlers, logger.propagate = [_Messages(logging.WARNING)], False


def _supervise(request: ServeRequest, bound: socket.socket) -> None:
    """Keep several processes running until a signal arrives, then let them finish."""
    stopping = threading.Event()
    previous = {number: signal.signal(number, lambda *_: stopping.set()) for number in _STOPS}
    context = multiprocessing.get_context("spawn")
    announce = _announcement(request.settings, bound)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[FOLDER_VARIABLE] = folder

        answers, announced = context.Event(), False

        def started() -> BaseProcess:
            process = context.Process(target=_work, args=(request, bound, answers.set))
            process.start()
            return process

        try:
            processes = [started() for _ in range(request.settings.workers)]
            while not stopping.wait(_WATCH_SECONDS):
                if answers.is_set() and not announced:
                    announced = True
                    announce()
                for place, process in enumerate(processes):
                    if not process.is_alive():
                        code = process.exitcode
                        say("server", f"a process ended with code {code}", level="error")
                        processes[place] = started()
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.join()
            del os.environ[FOLDER_VARIABLE]
            for number, handler in previous.items():
                signal.signal(number, handler)


def _work(request: ServeRequest, bound: socket.socket, announce: Callable[[], None]) -> None:
    """Answer requests in a worker process; the parent has written the files that it maps."""
    end_with_parent()
    stamp = request.source.stamp()
    _answer(request, bound, request.source.load_graph(), stamp, announce=announce, silent=True)
