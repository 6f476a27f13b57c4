"""The application: all routes of a service, its error handling, and the guard around it."""

import traceback
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from gpn_scale import __version__
from gpn_scale.errors import GpnScaleError
from gpn_scale.messages import say
from gpn_scale.serve.about_routes import about_routes, page_routes
from gpn_scale.serve.decision_routes import decision_routes
from gpn_scale.serve.failures import RequestFailure
from gpn_scale.serve.guard import Guard
from gpn_scale.serve.new_node_routes import new_node_routes
from gpn_scale.serve.node_routes import json_answer, node_routes
from gpn_scale.serve.reloading import Reloader
from gpn_scale.serve.service import Service
from gpn_scale.serve.web import (
    ASGIApp,
    FastAPI,
    HTTPException,
    Request,
    RequestValidationError,
    Response,
)
from gpn_scale.serve.work import BusyError, SlowError

_SENTENCES = {
    400: "the body cannot be read: it is nested too deeply, no UTF-8, or has a number too long",
    404: "there is no such address; /docs lists all",
    405: "the address does not take this method; /docs lists what it takes",
}


def application(service: Service, reloader: Reloader | None = None) -> ASGIApp:
    """Return the application of a service.

    Args:
        service: State that all requests share.
        reloader: Checks for a swapped model while the application runs; None to keep the model.
    """
    app = FastAPI(
        title="gpn_scale",
        version=__version__,
        description="Predictions, explanations and decisions about the nodes of a graph.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan(service, reloader),
    )
    for router in (
        node_routes(service),
        new_node_routes(service),
        decision_routes(service),
        about_routes(service),
        page_routes(app),
    ):
        app.include_router(router)
    _add_errors(app, service)
    return Guard(app, service.settings, service.metrics.observe)


def _lifespan(service: Service, reloader: Reloader | None) -> Any:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        watching: AbstractAsyncContextManager[None] | None = None
        if reloader is not None:
            watching = reloader.watching()
            await watching.__aenter__()
        try:
            yield
        finally:
            if watching is not None:
                await watching.__aexit__(None, None, None)
            service.work.close()

    return lifespan


def _add_errors(app: FastAPI, service: Service) -> None:
    """Turn every error into one sentence with the right status."""

    @app.exception_handler(RequestFailure)
    async def failed(_: Request, failure: RequestFailure) -> Response:
        return json_answer({"error": failure.sentence, **failure.fields}, failure.status)

    @app.exception_handler(GpnScaleError)
    async def refused(_: Request, error: GpnScaleError) -> Response:
        return json_answer({"error": " ".join(str(error).split())}, 422)

    @app.exception_handler(BusyError)
    async def busy(_: Request, error: BusyError) -> Response:
        answer = json_answer({"error": "the service is busy: ask again in a moment"}, 503)
        answer.headers["retry-after"] = "1"
        return answer

    @app.exception_handler(SlowError)
    async def slow(_: Request, error: SlowError) -> Response:
        seconds = service.settings.request_seconds
        return json_answer({"error": f"the answer took longer than {seconds:g} seconds"}, 504)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        return json_answer({"error": _validation_sentence(error)}, 422)

    @app.exception_handler(HTTPException)
    async def refused_by_framework(_: Request, error: HTTPException) -> Response:
        # The framework says 400 of a body that it cannot parse, for other reasons than its syntax.
        status = 422 if error.status_code == 400 else error.status_code
        sentence = _SENTENCES.get(error.status_code, str(error.detail))
        answer = json_answer({"error": sentence}, status)
        answer.headers.update(error.headers or {})
        return answer

    @app.exception_handler(500)
    async def fault(request: Request, error: Exception) -> Response:
        request_id = request.scope["state"]["request_id"]
        text = "".join(traceback.format_exception(error))
        message = f"request {request_id} failed: {type(error).__name__}"
        say("fault", message, level="error", text=f"error: {message}\n{text}", traceback=text)
        sentence = "the service failed to answer; see its log under the id of the request"
        return json_answer({"error": sentence, "request": request_id}, 500)


def _validation_sentence(error: RequestValidationError) -> str:
    """Return the first fault of a request in one sentence."""
    first: Any = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part not in ("query", "body", "path"))
    if first["type"] == "json_invalid":
        reason = first.get("ctx", {}).get("error", "")
        return f"the body is not JSON ({reason} at character {place}), expected an object"
    if not place and isinstance(first["input"], bytes):
        return "the body is not sent as JSON: add the header Content-Type: application/json"
    subject = place if place else "the body"
    more = len(error.errors()) - 1
    return f"{subject}: {first['msg']}" + (f" (and {more} more)" if more else "")
