"""Metrics of a running service for Prometheus; the only module that imports its client."""

import os
from collections.abc import Callable

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

CONTENT_TYPE = CONTENT_TYPE_LATEST
FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable with the folder in which several processes combine their metrics."""
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


disable_created_metrics()  # type: ignore[no-untyped-call] # times of creation double the output


class ServiceMetrics:
    """Counts and times of requests by route, the loaded model, and the queue of slow work.

    Args:
        queue_length: Returns the number of requests that wait for slow work or run it.
    """

    def __init__(self, queue_length: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        names = ["method", "route", "status"]
        self._requests = Counter(
            "gpn_requests", "Requests answered.", names, registry=self._registry
        )
        self._seconds = Histogram(
            "gpn_request_seconds",
            "Time from request to answer.",
            ["route"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._model = Gauge(
            "gpn_model_info",
            "The loaded model, as labels of the value 1.",
            ["model", "graph", "version"],
            registry=self._registry,
            multiprocess_mode="max",
        )
        self._reloads = Counter(
            "gpn_reloads", "Attempts to load a swapped model.", ["result"], registry=self._registry
        )
        self._queue = Gauge(
            "gpn_slow_requests",
            "Requests that wait for slow work or run it.",
            registry=self._registry,
            multiprocess_mode="sum",
        )
        self._queue_length = queue_length

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request; the route is a template and never holds an id."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def show_model(self, model: str, graph: str, version: str) -> None:
        """Record the model that answers from now on."""
        if FOLDER_VARIABLE not in os.environ:
            self._model.clear()
        self._model.labels(model, graph, version).set(1)

    def count_reload(self, result: str) -> None:
        """Count an attempt to load a swapped model, as `loaded` or `failed`."""
        self._reloads.labels(result).inc()

    def text(self) -> bytes:
        """Return all metrics in the format of Prometheus."""
        self._queue.set(self._queue_length())
        if FOLDER_VARIABLE not in os.environ:
            return generate_latest(self._registry)
        everyone = CollectorRegistry()
        MultiProcessCollector(everyone)  # type: ignore[no-untyped-call]
        return generate_latest(everyone)
