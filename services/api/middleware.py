"""ASGI middleware of the API: the client's address, the size of a body, and metrics of each request."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Sequence
from http import HTTPStatus

import structlog
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from services.api import metrics

log = structlog.get_logger(__name__)

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
#: Probed every few seconds; they would flood the log.
_UNLOGGED_ROUTES = frozenset({"/livez", "/readyz", "/healthz", "/metrics"})


class ClientAddressMiddleware:
    """Sets the client's address of a request; `find_client_address` reads it.

    Args:
        app: what serves the request.
        trusted: addresses and networks of proxies whose `X-Forwarded-For` is trusted: the client is its last address that
            is none of theirs. Without any the header is ignored, because anybody can write it.
    """

    def __init__(self, app: ASGIApp, trusted: Sequence[str] = ()) -> None:
        # Annotated for the server's own types of the same protocol.
        self._app: ASGIApp = app
        if trusted:
            self._app = ProxyHeadersMiddleware(app, list(trusted))  # type: ignore[arg-type, assignment]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (address := find_client_address(scope)) is not None:
            # In one spelling, or an IPv4 proxy would not be recognized on an IPv6 socket.
            scope["client"] = (address, scope["client"][1])
        await self._app(scope, receive, send)


def find_client_address(scope: Scope) -> str | None:
    """The client's address in one spelling; None if it is unknown."""
    client = scope.get("client")
    try:
        address = None if not client else ipaddress.ip_address(client[0].partition("%")[0])
    except ValueError:
        # A proxy that hides the address, or a peer without one: what it wrote is not recorded.
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return None if address is None else str(mapped or address)


class BodyLimitMiddleware:
    """Refuses bodies of more than `max_bytes` bytes, by `Content-Length` or as they are read.

    The framework's own limit answers with plain text, which is not a problem document.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        content_length = Headers(scope=scope).get("Content-Length", "")
        too_large = content_length.isdecimal() and int(content_length) > self._max_bytes
        received = 0

        async def receive_limited() -> Message:
            nonlocal received
            # Raised within the application, whose handlers turn it into a problem document.
            if too_large:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_bytes:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return message

        await self._app(scope, receive_limited, send)


class MetricsMiddleware:
    """Counts, times and logs each request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_at = time.monotonic()
        status = 500

        async def capture_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, capture_status)
        finally:
            self._record_request(scope, status, time.monotonic() - started_at)

    @staticmethod
    def _record_request(scope: Scope, status: int, seconds: float) -> None:
        # The route is known once the router has matched; requests without a route share one label.
        route = getattr(scope.get("route"), "path", "none")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        metrics.REQUESTS.labels(method, route, status).inc()
        metrics.REQUEST_SECONDS.labels(route).observe(seconds)
        if route not in _UNLOGGED_ROUTES:
            log.info("request_served", method=method, route=route, status=status, ms=round(seconds * 1000, 1))
