"""The API's Prometheus metrics, and the middleware that feeds them. Labels hold routes, never paths or names."""

from __future__ import annotations

import time

import structlog
from prometheus_client import Counter, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = structlog.get_logger(__name__)

REQUESTS = Counter("lagscale_api_requests", "Requests by method, route and status.", ["method", "route", "status"])
REQUEST_SECONDS = Histogram(
    "lagscale_api_request_seconds",
    "Duration of requests by route, seconds.",
    ["route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
PREFLIGHT_PROBES = Counter(
    "lagscale_api_looks", "Looks at clusters, by `ok` or the named state that ended them.", ["outcome"]
)
TENANT_RATE_LIMITED = Counter("lagscale_api_over_rate", "Requests refused because their tenant made too many.")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
#: Asked every few seconds by machines; they would drown the log.
_UNLOGGED_ROUTES = frozenset({"/livez", "/readyz", "/healthz", "/metrics"})


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
        # The route is known once the router has matched; what matched none has one label for all.
        route = getattr(scope.get("route"), "path", "none")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        REQUESTS.labels(method, route, status).inc()
        REQUEST_SECONDS.labels(route).observe(seconds)
        if route not in _UNLOGGED_ROUTES:
            log.info("request_served", method=method, route=route, status=status, ms=round(seconds * 1000, 1))
