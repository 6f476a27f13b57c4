"""Routes about the service itself: health, graph, metrics, documentation and explorer."""

import hashlib
from importlib.resources import files
from typing import Any

from gpn_scale import __version__
from gpn_scale.serve.answers import Answer
from gpn_scale.serve.documentation import documentation_page, style_sheet
from gpn_scale.serve.failures import RequestFailure
from gpn_scale.serve.features import MOST_COLUMNS, column_kinds
from gpn_scale.serve.metrics import CONTENT_TYPE
from gpn_scale.serve.node_routes import COMMON, documented, json_answer
from gpn_scale.serve.queries import SORTABLE
from gpn_scale.serve.schemas import GraphAnswer, HealthAnswer
from gpn_scale.serve.served_model import ServedModel
from gpn_scale.serve.service import Service
from gpn_scale.serve.web import APIRouter, FastAPI, Request, Response
from gpn_scale.triage.promise import PROMISE_CONDITION

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
"""Types of the files of the explorer; others are not served."""


def about_routes(service: Service) -> APIRouter:
    """Return the routes that describe the service and its graph."""
    router = APIRouter(tags=["service"], responses=documented(421, 500))

    @router.get("/health", response_model=HealthAnswer, summary="Whether the service answers.")
    async def health(request: Request) -> Response:
        trusted = request.scope["state"]["is_trusted"]
        return json_answer(_health(service) if trusted else {"status": "ok"})

    @router.get(
        "/graph", response_model=GraphAnswer, responses=COMMON, summary="The graph and the model."
    )
    async def graph() -> Response:
        model = service.model
        return json_answer(model.once("graph", lambda: graph_facts(model)))

    @router.get(
        "/metrics",
        responses=documented(401) | {200: {"content": {"text/plain": {}}}},
        response_class=Response,
        summary="Metrics for Prometheus.",
    )
    async def metrics() -> Response:
        return Response(service.metrics.text(), headers={"content-type": CONTENT_TYPE})

    return router


def page_routes(app: FastAPI) -> APIRouter:
    """Return the routes of pages for people, which the OpenAPI description omits."""
    router = APIRouter(include_in_schema=False)
    static = static_files()

    @router.get("/docs")
    async def documentation() -> Response:
        return Response(documentation_page(app.openapi()), media_type=_TYPES[".html"])

    @router.get("/docs.css")
    async def documentation_style() -> Response:
        return Response(style_sheet(), media_type=_TYPES[".css"])

    @router.get("/")
    async def explorer(request: Request) -> Response:
        return _file(static["index.html"], request)

    @router.get("/static/{name}")
    async def static_file(request: Request, name: str) -> Response:
        if name not in static:
            raise RequestFailure(404, "there is no such file")
        return _file(static[name], request)

    return router


StaticFile = tuple[bytes, str, str]
"""Content, type and tag of a file."""


def static_files() -> dict[str, StaticFile]:
    """Return the files of the explorer by name; no other files can be requested."""
    loaded = {}
    for file in (files("gpn_scale.serve") / "static").iterdir():
        suffix = f".{file.name.rpartition('.')[2]}"
        if suffix in _TYPES:
            content = file.read_bytes()
            tag = hashlib.blake2b(content, digest_size=12).hexdigest()
            loaded[file.name] = (content, _TYPES[suffix], f'"{tag}"')
    return loaded


def _file(file: StaticFile, request: Request) -> Response:
    content, kind, tag = file
    headers = {"etag": tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=kind, headers=headers)


def _health(service: Service) -> Answer:
    model = service.model
    answer: Answer = {
        "status": "ok",
        "model": model.fingerprint,
        "graph": model.graph.name,
        "num_nodes": model.graph.num_nodes,
        "version": __version__,
    }
    if service.reload_error is not None:
        answer["reload_error"] = service.reload_error
    return answer


def graph_facts(model: ServedModel) -> Answer:
    """Return the facts about the graph and the model that clients need."""
    graph, columns = model.graph, column_kinds(model.graph)
    promise: dict[str, Any] | None = None
    if model.promise is not None:
        promise = {
            "error": model.promise.error,
            "confidence": model.promise.confidence,
            "threshold": model.promise.threshold,
            "answered": model.promise.answered,
            "condition": PROMISE_CONDITION,
        }
    return {
        "name": graph.name,
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
        "directed": graph.directed,
        "weighted": graph.edge_weight is not None,
        "classes": list(model.classes),
        "parts": list(model.table.parts),
        "condition": model.condition,
        "promise": promise,
        "columns": [{"name": name, "kind": kind} for name, kind in columns[:MOST_COLUMNS]],
        "num_columns": len(columns),
        "sortable": list(SORTABLE),
        "reasons": sorted(set(model.kinds)),
        "store": model.store is not None,
    }
