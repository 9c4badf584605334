"""Health over HTTP for probes and people, and the metrics; and the facts behind it, from the pipeline's reports."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import structlog
from prometheus_client import REGISTRY
from prometheus_client.exposition import choose_encoder

from services.scraper import metrics

log = structlog.get_logger(__name__)

#: Spark may take this long to start on a busy machine before the process counts as stuck; seconds.
_START_SECONDS = 180.0
_LIVE_SECONDS = 60.0
_READ_SECONDS = 5.0


class Health:
    """What is known of the pipeline. Reports come from one thread, probes from others; facts are single fields."""

    def __init__(self, tick_seconds: float, ages: metrics.NewestAges) -> None:
        self._ages = ages
        self._recent = max(5 * tick_seconds, 15.0)
        self._live = max(10 * tick_seconds, _LIVE_SECONDS)
        self._started = time.monotonic()
        self._planned_at = 0.0
        self._batch_at = 0.0
        self._written_at = 0.0
        self.leading = False
        self.store_up = False
        self.draining = False

    def hear(self, report: dict[str, Any]) -> None:
        """Take in a report of the pipeline."""
        kind = report.get("kind")
        if kind == "plan":
            self._hear_plan(report)
        elif kind == "batch":
            self._hear_batch(report)
        elif kind == "topics":
            metrics.SCOPES.clear()
            for code, count in report["counts"].items():
                metrics.SCOPES.labels(code).set(count)
        elif kind == "polled":
            metrics.POLL_SECONDS.observe(report["milliseconds"] / 1000)
        elif kind == "skipped":
            metrics.SKIPPED.inc()
            log.warning("slot_skipped", reason=report["reason"], clusters=report["clusters"])

    def _hear_plan(self, report: dict[str, Any]) -> None:
        self._planned_at = time.monotonic()
        if report["leading"] != self.leading:
            log.info("leading" if report["leading"] else "standing_by", epoch=report["epoch"])
        if report["store"] != self.store_up:
            log.info("store_up") if report["store"] else log.warning("store_away", error=report.get("error", ""))
        self.leading, self.store_up = report["leading"], report["store"]
        metrics.LEADING.set(int(self.leading))
        if not self.store_up:
            metrics.STORE_ERRORS.inc()
        if "targets" in report:
            metrics.TARGETS.set(report["targets"])

    def _hear_batch(self, report: dict[str, Any]) -> None:
        self._batch_at = time.monotonic()
        if report["lost_lease"]:
            metrics.NOT_STORED.labels("lease").inc(report["made"])
            log.warning("lease_lost", batch=report["batch"])
        elif report["store_error"]:
            metrics.STORE_ERRORS.inc()
            log.warning("batch_not_stored", batch=report["batch"], error=report["store_error"])
        else:
            self._written_at = self._batch_at
        metrics.ROUNDS.inc(report["stored"])
        metrics.SAMPLES.inc(report["samples"])
        for reason in ("doubled", "late", "future"):
            metrics.NOT_STORED.labels(reason).inc(report[reason])
        for name, count in report["codes"].items():
            metrics.POLLS.labels(*name.split(":", 1)).inc(count)
        for cluster, age_ms in report["ages_ms"].items():
            self._ages.note(cluster, age_ms)
        if report["since_plan_ms"]:
            metrics.BATCH_SECONDS.observe(report["since_plan_ms"] / 1000)

    def live(self) -> dict[str, bool]:
        """Whether the pipeline moves at all, or is still starting."""
        now = time.monotonic()
        starting = self._planned_at == 0.0 and now - self._started < _START_SECONDS
        return {"pipeline_moves": starting or now - self._planned_at < self._live}

    def ready(self) -> dict[str, bool]:
        """Whether it leads and wrote a batch lately, or stands by warm."""
        now = time.monotonic()
        return {
            "warm": self._batch_at > 0.0,
            "plans": now - self._planned_at < self._recent and self._planned_at > 0.0,
            "writes_or_stands_by": now - self._written_at < self._recent if self.leading else self.store_up,
            "not_draining": not self.draining,
        }

    def healthy(self) -> dict[str, bool]:
        """All of it, and the store."""
        return {**self.live(), **self.ready(), "store": self.store_up}


class HealthServer:
    """Serves a `Health` and the metrics."""

    def __init__(self, health: Health, host: str, port: int) -> None:
        """Bind the address.

        Raises:
            OSError: it is taken.
        """
        self._server = _server(health, host, port)
        self._thread = threading.Thread(target=self._server.serve_forever, name="health", daemon=True)

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


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A prober that went away is no news."""
        log.debug("probe_failed", exc_info=True)


def _server(health: Health, host: str, port: int) -> ThreadingHTTPServer:
    checks: dict[str, Callable[[], dict[str, bool]]] = {
        "/livez": health.live,
        "/readyz": health.ready,
        "/healthz": health.healthy,
    }

    class Handler(BaseHTTPRequestHandler):
        server_version = "lagscale"
        sys_version = ""
        protocol_version = "HTTP/1.1"
        timeout = _READ_SECONDS

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                encode, kind = choose_encoder(self.headers.get("Accept", ""))
                self._send(HTTPStatus.OK, kind, encode(REGISTRY))
            elif path in checks:
                found = checks[path]()
                good = all(found.values())
                body = {"status": "ok" if good else "unavailable", "leading": health.leading, "checks": found}
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

    return _Server((host, port), Handler)
