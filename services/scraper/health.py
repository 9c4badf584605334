"""Health of the scraper from the reports of Spark's processes; `lagscale.health_http` serves it."""

from __future__ import annotations

import time
from typing import Any

import structlog

from services.scraper import deadlines, metrics

log = structlog.get_logger(__name__)


class ScraperHealth:
    """State of the query. Reports come from one thread, probes from others; each fact is one field."""

    def __init__(self, tick_seconds: float, ages: metrics.SampleAges) -> None:
        self._ages = ages
        self._ready_age_seconds = deadlines.compute_ready_seconds(tick_seconds)
        self._live_age_seconds = deadlines.compute_live_seconds(tick_seconds)
        self._started = time.monotonic()
        self._planned_at = 0.0
        #: Highest number in one process since the latest plan.
        self._max_clients = 0
        self._batch_at = 0.0
        self._written_at = 0.0
        self.leading = False
        self.store_up = False
        self.draining = False

    def apply_report(self, report: dict[str, Any]) -> None:
        """Apply one report."""
        kind = report.get("kind")
        if kind == "plan":
            self._apply_plan(report)
        elif kind == "batch":
            self._apply_batch(report)
        elif kind == "topics":
            metrics.DISCOVERY.clear()
            for code, count in report["counts"].items():
                metrics.DISCOVERY.labels(code).set(count)
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
        elif kind == "aborted":
            # The query fails with its task, which is counted when it is restarted.
            log.warning("batch_aborted", batch=report["batch"])

    def _apply_plan(self, report: dict[str, Any]) -> None:
        self._planned_at = time.monotonic()
        self._max_clients = 0
        if report["leading"] != self.leading:
            log.info("lease_acquired" if report["leading"] else "lease_lost", epoch=report["epoch"])
        if report["store"] != self.store_up:
            if report["store"]:
                log.info("store_recovered")
            else:
                log.warning("store_unavailable", reason=report.get("reason", ""))
        self.leading, self.store_up = report["leading"], report["store"]
        metrics.LEADING.set(int(self.leading))
        if not self.store_up:
            metrics.STORE_ERRORS.inc()
        if "targets" in report:
            metrics.TARGETS.set(report["targets"])

    def _apply_batch(self, report: dict[str, Any]) -> None:
        self._batch_at = time.monotonic()
        if report["lost_lease"]:
            metrics.DISCARDED.labels("lease_lost").inc(report["built"])
            log.warning("lease_lost", during="batch_write", batch=report["batch"])
        elif report["store_error"]:
            metrics.STORE_ERRORS.inc()
            log.warning("batch_write_failed", batch=report["batch"], reason=report["store_error"])
        else:
            self._written_at = self._batch_at
        self._count_rounds(report)
        for reason, name in (("duplicate", "doubled"), ("late", "late"), ("future", "future")):
            metrics.DISCARDED.labels(reason).inc(report[name])
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
        """Whether ticks are planned, or Spark is still starting."""
        now = time.monotonic()
        starting = self._planned_at == 0.0 and now - self._started < deadlines.STARTUP_SECONDS
        return {"query_live": starting or now - self._planned_at < self._live_age_seconds}

    def ready(self) -> dict[str, bool]:
        """Whether it leads and wrote a batch lately, or is a warm standby."""
        now = time.monotonic()
        return {
            "warm": self._batch_at > 0.0,
            "planning": now - self._planned_at < self._ready_age_seconds and self._planned_at > 0.0,
            "writing_or_standby": now - self._written_at < self._ready_age_seconds if self.leading else self.store_up,
            "not_draining": not self.draining,
        }

    def healthy(self) -> dict[str, bool]:
        """All checks, and the store."""
        return {**self.live(), **self.ready(), "store": self.store_up}
