"""Health over HTTP for probes and people, and the metrics. Reads plain facts from a thread of its own.

A thread, so that an event loop that hangs is told by /livez instead of hanging it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from prometheus_client import REGISTRY
from prometheus_client.exposition import choose_encoder

#: An event loop that has not run for this long is not alive; seconds.
_ALIVE: Final = 10.0
_READ_SECONDS: Final = 5.0
#: How soon the thread sees that it shall end.
_LOOK_SECONDS: Final = 0.1


@dataclass(slots=True)
class Status:
    """What the probes read: set by the wiring, never waits for anything."""

    listening: bool = False
    registered: Callable[[], bool] = lambda: False
    store_up: Callable[[], bool] = lambda: False
    draining: bool = False
    beat_at: float = field(default_factory=time.monotonic)

    def beat(self) -> None:
        """The event loop runs."""
        self.beat_at = time.monotonic()

    def live(self) -> dict[str, bool]:
        """Whether the event loop runs."""
        return {"event_loop": time.monotonic() - self.beat_at < _ALIVE}

    def ready(self) -> dict[str, bool]:
        """Whether calls are answered here. The store has no part in it: an empty Service breaks GetMetricSpec."""
        return {
            "listening": self.listening,
            "registrations_known": self.registered(),
            "not_draining": not self.draining,
        }

    def healthy(self) -> dict[str, bool]:
        """Whether all is well, the store included."""
        return {**self.live(), **self.ready(), "store": self.store_up()}


class StatusServer:
    """Serves a `Status` and the metrics."""

    def __init__(self, status: Status, host: str, port: int) -> None:
        self._server = _server(status, host, port)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_LOOK_SECONDS,), name="status", daemon=True
        )

    @property
    def port(self) -> int:
        """The port in use."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def stop(self) -> None:
        """End at once."""
        self._server.shutdown()
        self._server.server_close()


def _server(status: Status, host: str, port: int) -> ThreadingHTTPServer:
    checks = {"/livez": status.live, "/readyz": status.ready, "/healthz": status.healthy}

    class Handler(BaseHTTPRequestHandler):
        server_version = "lagscale"
        sys_version = ""
        protocol_version = "HTTP/1.1"
        timeout = _READ_SECONDS

        def do_GET(self) -> None:  # the name is the library's
            path = self.path.partition("?")[0]
            if path == "/metrics":
                encode, kind = choose_encoder(self.headers.get("Accept", ""))
                self._send(HTTPStatus.OK, kind, encode(REGISTRY))
            elif path in checks:
                found = checks[path]()
                good = all(found.values())
                body = {"status": "ok" if good else "unavailable", "checks": found}
                self._json(HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE, body)
            else:
                self._json(HTTPStatus.NOT_FOUND, {"status": "not found"})

        def _json(self, code: HTTPStatus, body: dict[str, Any]) -> None:
            self._send(code, "application/json", json.dumps(body).encode())

        def _send(self, code: HTTPStatus, kind: str, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Probes come every few seconds; their lines would bury the others."""

    server = ThreadingHTTPServer((host, port), Handler)
    server.daemon_threads = True
    return server
