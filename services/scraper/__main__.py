"""`lagscale-scraper`: polls Kafka, writes samples. Settings are read and the scraper's parts put together here only."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import threading
import time
import uuid
from typing import TYPE_CHECKING

import structlog
from tenacity import Retrying, retry_if_exception_type, stop_when_event_set, wait_exponential_jitter
from tenacity.nap import sleep_using_event

from lagscale.errors import SettingsInvalid
from lagscale.health_http import HealthServer
from lagscale.settings import SingleMonitorSettings, load, split_address
from lagscale.store.encryption import Keyring
from lagscale.store.samples.write import REMOVAL_SECONDS
from lagscale.store.sync_connection import ScraperDatabase
from lagscale.telemetry import configure_logging
from services.scraper import metrics
from services.scraper.health import ScraperHealth
from services.scraper.housekeeping import Housekeeping
from services.scraper.settings import ScraperSettings
from services.scraper.worker_reports import WorkerReports
from services.single_monitor import start_registration

if TYPE_CHECKING:
    from services.scraper.spark.query import QueryRunner

log = structlog.get_logger("services.scraper")

#: Pods are given half a minute to end; Spark has this much of it.
_SPARK_STOP_SECONDS = 7.0
_CHECK_SECONDS = 0.5
#: A query that ran for so long was well.
_STABLE_SECONDS = 60.0


def main() -> int:
    """Scrape until SIGTERM or SIGINT."""
    argparse.ArgumentParser(
        prog="lagscale-scraper",
        description="Polls Kafka and writes samples; all settings come from LAGSCALE_* variables: "
        + ", ".join(f"LAGSCALE_{name}".upper() for name in ScraperSettings.model_fields),
    ).parse_args()
    try:
        settings = load(ScraperSettings)
        if SingleMonitorSettings.is_configured(os.environ):
            SingleMonitorSettings.read(os.environ)
        Keyring(settings.secret_keys.get_secret_value())
    except SettingsInvalid as invalid:
        print(f"lagscale-scraper: {invalid.message}", file=sys.stderr)
        return 2
    configure_logging("scraper", settings.log_level, settings.log_format == "json")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    url = settings.database_url.get_secret_value()
    health = ScraperHealth(settings.tick_seconds, metrics.NewestAges())
    try:
        server = HealthServer(
            health, *split_address(settings.scraper_http_listen), facts=lambda: {"leading": health.leading}
        )
    except OSError as error:
        log.error("cannot_listen", error=str(error))
        return 1
    server.start()
    reports = WorkerReports(health.apply_report)
    reports.start()
    if SingleMonitorSettings.is_configured(os.environ):
        start_registration(url, os.environ, stop, tick_seconds=settings.tick_seconds)
    database = ScraperDatabase(url, response_timeout_seconds=REMOVAL_SECONDS + 5.0)
    housekeeping = Housekeeping(database, settings.scraper_retention_hours, lambda: health.leading)
    housekeeping.start()
    log.info("scraper_starting", http=settings.scraper_http_listen, spark=settings.scraper_spark_master)
    # Spark is spoken to in a thread, so that a signal ends the process in time whatever Spark is doing.
    scrape_thread = _ScrapeThread(settings, reports.address, stop)
    scrape_thread.start()
    stop.wait()
    health.draining = True
    log.info("scraper_stopping")
    housekeeping.stop()
    scrape_thread.join(_SPARK_STOP_SECONDS)
    server.stop()
    reports.stop()
    log.info("scraper_stopped", in_order=not scrape_thread.is_alive())
    sys.stderr.flush()
    # Whatever of Spark still runs ends with this process, because its input ends; waiting for it helps nobody.
    os._exit(scrape_thread.failed)


class _QueryEnded(Exception):
    """The streaming query ended by itself."""


class _ScrapeThread(threading.Thread):
    """Starts Spark, keeps a query running, ends both."""

    def __init__(self, settings: ScraperSettings, reports: str, stop: threading.Event) -> None:
        super().__init__(name="scraping", daemon=True)
        self._settings, self._reports, self._stop_asked = settings, reports, stop
        self.failed = 0

    def run(self) -> None:
        """Until the service stops, or the session is lost."""
        from services.scraper.engine.options import EngineOptions
        from services.scraper.spark.query import QueryRunner

        settings = self._settings
        # Spark would take the first python3 of PATH for its workers.
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        try:
            runner = QueryRunner(
                EngineOptions(
                    database_url=settings.database_url.get_secret_value(),
                    secret_keys=settings.secret_keys.get_secret_value(),
                    tick_ms=round(settings.tick_seconds * 1000),
                    slots=settings.scraper_spark_slots,
                    holder=f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}",
                    reports=self._reports,
                    topics_seconds=settings.scraper_topic_discovery_interval_seconds,
                    topics_limit=settings.scraper_max_topics_per_monitor,
                    addresses=settings.address_rules.text,
                    secret_directory=str(settings.secret_dir or ""),
                    clients_limit=settings.scraper_max_kafka_clients,
                    tenant_partitions=settings.scraper_max_tenant_partitions_per_tick,
                ),
                master=settings.scraper_spark_master,
                driver_memory=settings.scraper_spark_driver_memory,
                directory=settings.cache_dir,
            )
        except Exception:
            log.exception("spark_not_started")
            self._fail()
            return
        log.info("spark_started")
        try:
            while not self._stop_asked.is_set():
                # A query that ran well for a while begins with short pauses again.
                Retrying(
                    retry=retry_if_exception_type(_QueryEnded),
                    wait=wait_exponential_jitter(0.5, 30.0),
                    stop=stop_when_event_set(self._stop_asked),
                    sleep=sleep_using_event(self._stop_asked),
                    reraise=True,
                )(self._run_query, runner)
        except _QueryEnded:
            log.info("query_not_restarted", reason="the service stops")
        except Exception:
            log.exception("spark_lost")
            self._fail()
        runner.stop()

    def _run_query(self, runner: QueryRunner) -> None:
        """Run one query; returns when the service stops, or when the query fails after a good while.

        Raises:
            _QueryEnded: it failed soon.
        """
        started_at = time.monotonic()
        runner.start()
        while not self._stop_asked.wait(_CHECK_SECONDS):
            for phase, milliseconds in runner.read_phases().items():
                metrics.PHASE_SECONDS.labels(phase).set(milliseconds / 1000)
            if not runner.is_active():
                metrics.RESTARTS.inc()
                log.error("query_failed", error=runner.describe_failure())
                runner.stop_query()
                if time.monotonic() - started_at > _STABLE_SECONDS:
                    return
                raise _QueryEnded

    def _fail(self) -> None:
        # A lost driver cannot be started again inside this process; its supervisor starts another.
        self.failed = 1
        self._stop_asked.set()


if __name__ == "__main__":
    sys.exit(main())
