"""What the scraper's probes read, from the pipeline's reports; `lagscale.health_http` serves it."""

from __future__ import annotations

import time
from typing import Any

import structlog

from services.scraper import metrics

log = structlog.get_logger(__name__)

#: Spark may take this long to start on a busy machine before the process counts as stuck; seconds.
_START_LIMIT_SECONDS = 180.0
_LIVE_SECONDS = 60.0


class ScraperHealth:
    """What is known of the pipeline. Reports come from one thread, probes from others; facts are single fields."""

    def __init__(self, tick_seconds: float, ages: metrics.NewestAges) -> None:
        self._ages = ages
        self._ready_age_seconds = max(5 * tick_seconds, 15.0)
        self._live_age_seconds = max(10 * tick_seconds, _LIVE_SECONDS)
        self._started = time.monotonic()
        self._planned_at = 0.0
        #: The most of one process since the newest plan.
        self._max_clients = 0
        self._batch_at = 0.0
        self._written_at = 0.0
        self.leading = False
        self.store_up = False
        self.draining = False

    def apply_report(self, report: dict[str, Any]) -> None:
        """Take in a report of the pipeline."""
        kind = report.get("kind")
        if kind == "plan":
            self._apply_plan(report)
        elif kind == "batch":
            self._apply_batch(report)
        elif kind == "topics":
            metrics.SCOPES.clear()
            for code, count in report["counts"].items():
                metrics.SCOPES.labels(code).set(count)
        elif kind == "large":
            metrics.LARGE_SECONDS.observe(report["seconds"])
            self._count_rounds(report)
        elif kind == "polled":
            metrics.POLL_SECONDS.observe(report["milliseconds"] / 1000)
            self._max_clients = max(self._max_clients, report["clients_open"])
            metrics.CLIENTS.set(self._max_clients)
        elif kind == "skipped":
            metrics.SKIPPED.inc()
            log.warning("slot_skipped", reason=report["reason"], clusters=report["clusters"])

    def _apply_plan(self, report: dict[str, Any]) -> None:
        self._planned_at = time.monotonic()
        self._max_clients = 0
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

    def _apply_batch(self, report: dict[str, Any]) -> None:
        self._batch_at = time.monotonic()
        if report["lost_lease"]:
            metrics.NOT_STORED.labels("lease").inc(report["built"])
            log.warning("lease_lost", batch=report["batch"])
        elif report["store_error"]:
            metrics.STORE_ERRORS.inc()
            log.warning("batch_not_stored", batch=report["batch"], error=report["store_error"])
        else:
            self._written_at = self._batch_at
        self._count_rounds(report)
        for reason in ("doubled", "late", "future"):
            metrics.NOT_STORED.labels(reason).inc(report[reason])
        for cluster, age_ms in report["ages_ms"].items():
            self._ages.set_age(cluster, age_ms)
        if report["since_plan_ms"]:
            metrics.BATCH_SECONDS.observe(report["since_plan_ms"] / 1000)

    @staticmethod
    def _count_rounds(report: dict[str, Any]) -> None:
        metrics.ROUNDS.inc(report["stored"])
        metrics.SAMPLES.inc(report["samples"])
        for name, count in report["codes"].items():
            metrics.POLLS.labels(*name.split(":", 1)).inc(count)

    def live(self) -> dict[str, bool]:
        """Whether the pipeline moves at all, or is still starting."""
        now = time.monotonic()
        starting = self._planned_at == 0.0 and now - self._started < _START_LIMIT_SECONDS
        return {"pipeline_moves": starting or now - self._planned_at < self._live_age_seconds}

    def ready(self) -> dict[str, bool]:
        """Whether it leads and wrote a batch lately, or stands by warm."""
        now = time.monotonic()
        return {
            "warm": self._batch_at > 0.0,
            "plans": now - self._planned_at < self._ready_age_seconds and self._planned_at > 0.0,
            "writes_or_stands_by": now - self._written_at < self._ready_age_seconds if self.leading else self.store_up,
            "not_draining": not self.draining,
        }

    def healthy(self) -> dict[str, bool]:
        """All of it, and the store."""
        return {**self.live(), **self.ready(), "store": self.store_up}
