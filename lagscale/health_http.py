"""HTTP server for health checks and metrics; each service passes its checks.

It runs in threads of its own, so that /livez reports a blocked event loop instead of blocking with it. Own code because
prometheus-client's server serves metrics only, and the web frameworks are dependencies of the API only.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Protocol

import structlog
from prometheus_client import REGISTRY
from prometheus_client.exposition import choose_encoder

log = structlog.get_logger(__name__)

_READ_SECONDS: Final = 5.0
#: Delay until the thread notices a shutdown.
_POLL_SECONDS: Final = 0.1


class HealthChecks(Protocol):
    """Named checks; a set passes if all are true. They never block."""

    def live(self) -> dict[str, bool]:
        """Checks of /livez: whether the process works."""
        ...

    def ready(self) -> dict[str, bool]:
        """Checks of /readyz: whether it serves."""
        ...

    def healthy(self) -> dict[str, bool]:
        """Checks of /healthz: all, and the store."""
        ...


class HealthServer:
    """Serves /livez, /readyz, /healthz and /metrics.

    Args:
        checks: read at every request.
        host, port: listen address; port 0 picks a free port.
        facts: further keys of each response.

    Raises:
        OSError: the address is in use.
    """

    def __init__(
        self, checks: HealthChecks, host: str, port: int, facts: Callable[[], Mapping[str, Any]] = dict
    ) -> None:
        self._server = _HealthHTTPServer((host, port), _build_handler(checks, facts))
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_SECONDS,), name="status", daemon=True
        )

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Start serving."""
        self._thread.start()

    def stop(self) -> None:
        """Stop at once."""
        self._server.shutdown()
        self._server.server_close()


class _HealthHTTPServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that closes its connection is not an error."""
        log.debug("health_request_failed", exc_info=True)


def _build_handler(checks: HealthChecks, facts: Callable[[], Mapping[str, Any]]) -> type[BaseHTTPRequestHandler]:
    paths = {"/livez": checks.live, "/readyz": checks.ready, "/healthz": checks.healthy}

    class HealthHandler(BaseHTTPRequestHandler):
        server_version = "lagscale"
        sys_version = ""
        protocol_version = "HTTP/1.1"
        timeout = _READ_SECONDS

        def do_GET(self) -> None:  # named by the library
            path = self.path.partition("?")[0]
            if path == "/metrics":
                encode, kind = choose_encoder(self.headers.get("Accept", ""))
                self._send(HTTPStatus.OK, kind, encode(REGISTRY))
            elif path in paths:
                results = paths[path]()
                passed = all(results.values())
                body = {"status": "ok" if passed else "unavailable", **facts(), "checks": results}
                self._json(HTTPStatus.OK if passed else HTTPStatus.SERVICE_UNAVAILABLE, body)
            else:
                self._json(HTTPStatus.NOT_FOUND, {"status": "not found"})

        def _json(self, code: HTTPStatus, body: Mapping[str, Any]) -> None:
            self._send(code, "application/json", json.dumps(body).encode())

        def _send(self, code: HTTPStatus, kind: str, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Health checks come every few seconds; they are not logged."""

    return HealthHandler
