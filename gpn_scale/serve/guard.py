"""Checks that every request passes first (host, token, size), and its log.

This is plain ASGI around the application, because it must be fast: it runs for every request.
"""

import hmac
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from gpn_scale.messages import message_format, say
from gpn_scale.serve.answers import json_bytes
from gpn_scale.serve.settings import ServeSettings
from gpn_scale.serve.web import ASGIApp, HTTPException, Message, Receive, Scope, Send

OPEN_PATHS = ("/", "/health", "/docs", "/docs.css", "/openapi.json")
"""Routes without a token, which reveal nothing about the graph; files under /static need none
either."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""Content security policy: pages load nothing from other sites and run no inline code."""
_HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_NO_STORE = (b"cache-control", b"no-store")
_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
UNKNOWN_ROUTE = "unknown"
"""Route of a request for an unknown address."""

Observe = Callable[[str, str, int, float], None]
"""Called with method, route, status and seconds of each request."""


class Guard:
    """Checks host, origin, token and size of requests; logs and counts answers.

    Args:
        app: The application.
        settings: Limits and token.
        observe: Counts requests.
    """

    def __init__(self, app: ASGIApp, settings: ServeSettings, observe: Observe) -> None:
        self._app, self._settings, self._observe = app, settings, observe
        own = f"[{settings.host}]" if ":" in settings.host else settings.host
        self._hosts = frozenset((*_LOCAL_NAMES, own.lower()))
        self._token = None if settings.token is None else settings.token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        request_id = secrets.token_hex(8)
        headers: dict[bytes, bytes] = dict(scope["headers"])
        exchange = _Exchange(send, request_id)
        state = scope.setdefault("state", {})
        state["request_id"], state["is_trusted"] = request_id, self._is_trusted(headers)
        try:
            refusal = self._refusal(scope, headers)
            if refusal is not None:
                await exchange.answer(*refusal)
            else:
                limited = self._limited(receive)
                await self._app(scope, limited, exchange.send)
        finally:
            self._note(scope, exchange.status, time.perf_counter() - began, request_id)

    def _refusal(
        self, scope: Scope, headers: Mapping[bytes, bytes]
    ) -> tuple[int, str, Iterable[tuple[bytes, bytes]]] | None:
        """Return status, sentence and headers of a refused request; None if it may pass."""
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if self._settings.is_local and _name(host) not in self._hosts:
            sentence = "the request names another host than this service: use http://127.0.0.1"
            return 421, sentence, ()
        if scope["method"] not in ("GET", "HEAD", "OPTIONS") and _is_foreign(headers, host):
            return 403, "the request comes from a page of another site, which is not allowed", ()
        path = scope["path"]
        is_open = path in OPEN_PATHS or path.startswith("/static/")
        if not is_open and not scope["state"]["is_trusted"]:
            sentence = "the request needs the header Authorization: Bearer TOKEN with the token"
            return 401, sentence, ((b"www-authenticate", b"Bearer"),)
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length[:19]) > self._settings.max_body:
            return 413, self._too_large, ((b"connection", b"close"),)
        return None

    def _is_trusted(self, headers: Mapping[bytes, bytes]) -> bool:
        if self._token is None:
            return True
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        # Compare in constant time, so that the duration reveals nothing about the token.
        return hmac.compare_digest(given.strip(), self._token) and kind.lower() == b"bearer"

    @property
    def _too_large(self) -> str:
        return f"the body is too large, expected at most {self._settings.max_body:,} bytes"

    def _limited(self, receive: Receive) -> Receive:
        """Return a function that counts the body while it arrives, and stops at the limit."""
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._settings.max_body:
                raise HTTPException(413, self._too_large, {"connection": "close"})
            return message

        return counted

    def _note(self, scope: Scope, status: int, seconds: float, request_id: str) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        route = _route(scope)
        self._observe(method, route, status, seconds)
        milliseconds = round(1000 * seconds, 2)
        text = f"{method} {route} {status} {milliseconds} ms"
        if message_format() == "text":
            say("request", text)
        else:
            facts: dict[str, Any] = {"method": method, "route": route, "status": status}
            say("request", text, **facts, milliseconds=milliseconds, request=request_id)


_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))


class _Exchange:
    """The answer to one request: adds headers and records the status."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send, self._id = send, request_id.encode()
        self.status = 500
        """Status of the answer; 500 until the answer has begun."""

    async def send(self, message: Message) -> None:
        """Pass on a part of the answer."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message.get("headers", ()))
            if not any(name == b"cache-control" for name, _ in headers):
                headers.append(_NO_STORE)
            message["headers"] = [*headers, *_HEADERS, (b"x-request-id", self._id)]
        await self._send(message)

    async def answer(
        self, status: int, sentence: str, more: Iterable[tuple[bytes, bytes]] = ()
    ) -> None:
        """Send a whole answer with an error."""
        body = json_bytes({"error": sentence})
        headers = [(b"content-type", b"application/json"), *more]
        headers.append((b"content-length", str(len(body)).encode()))
        start: dict[str, Any] = {"type": "http.response.start", "status": status}
        await self.send({**start, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})


def _name(host: str) -> str:
    """Return the host of a header without its port."""
    name, _, port = host.rpartition(":")
    return name if name and port.isdigit() else host


def _is_foreign(headers: Mapping[bytes, bytes], host: str) -> bool:
    """Return whether the headers show that a page of another site made the request."""
    if headers.get(b"sec-fetch-site", b"none") not in (b"same-origin", b"none"):
        return True
    origin = headers.get(b"origin")
    if origin is None:
        return False
    try:
        return urlsplit(origin.decode("latin-1")).netloc.lower() != host
    except ValueError:
        return True


def _route(scope: Scope) -> str:
    """Return the template of a request's route, which contains no id."""
    route = scope.get("route")
    return str(getattr(route, "path_format", None) or getattr(route, "path", UNKNOWN_ROUTE))
