"""`lagscale-scraper`: polls Kafka and writes samples. Only this module reads settings and builds the scraper's parts."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import threading
import uuid

import structlog

from lagscale.errors import SettingsInvalid
from lagscale.health_http import HealthServer
from lagscale.settings import SingleMonitorSettings, load, split_address
from lagscale.store.connection import ScraperDatabase
from lagscale.store.encryption import Keyring
from lagscale.store.samples.write import REMOVAL_SECONDS
from lagscale.telemetry import configure_logging
from services.scraper import deadlines, metrics
from services.scraper.engine.options import EngineOptions
from services.scraper.health import ScraperHealth
from services.scraper.housekeeping import Housekeeping
from services.scraper.settings import ScraperSettings
from services.scraper.worker_reports import WorkerReports
from services.single_monitor import start_registration

log = structlog.get_logger("services.scraper")


def main() -> int:
    """Scrape until SIGTERM or SIGINT."""
    argparse.ArgumentParser(
        prog="lagscale-scraper",
        description="Polls Kafka and writes lag samples. Configured by environment variables only: "
        + ", ".join(f"LAGSCALE_{name}".upper() for name in ScraperSettings.model_fields),
    ).parse_args()
    try:
        settings = load(ScraperSettings)
        if SingleMonitorSettings.is_configured(os.environ):
            SingleMonitorSettings.parse(os.environ)
        Keyring(settings.secret_keys.get_secret_value())
    except SettingsInvalid as invalid:
        print(f"lagscale-scraper: {invalid.message}", file=sys.stderr)
        return 2
    configure_logging("scraper", settings.log_level, settings.log_format == "json")
    # Imported here, so that `--help` and invalid settings answer at once.
    from services.scraper.spark.query import QueryThread, SparkSettings

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    url = settings.database_url.get_secret_value()
    health = ScraperHealth(settings.tick_seconds, metrics.SampleAges())
    try:
        server = HealthServer(
            health, *split_address(settings.scraper_http_listen), facts=lambda: {"leading": health.leading}
        )
    except OSError as error:
        log.error("listen_failed", reason=str(error))
        return 1
    server.start()
    reports = WorkerReports(health.apply_report)
    reports.start()
    if SingleMonitorSettings.is_configured(os.environ):
        start_registration(url, os.environ, stop, tick_seconds=settings.tick_seconds)
    database = ScraperDatabase(url, response_timeout_seconds=REMOVAL_SECONDS + deadlines.REMOVAL_MARGIN_SECONDS)
    housekeeping = Housekeeping(database, settings.scraper_retention_hours, lambda: health.leading)
    housekeeping.start()
    options = EngineOptions(
        database_url=url,
        secret_keys=settings.secret_keys.get_secret_value(),
        tick_ms=round(settings.tick_seconds * 1000),
        slots=settings.scraper_spark_slots,
        holder=f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}",
        reports=reports.address,
        topics_seconds=settings.scraper_topic_discovery_interval_seconds,
        topics_limit=settings.scraper_max_topics_per_monitor,
        addresses=settings.address_rules.text,
        secret_directory=str(settings.secret_dir or ""),
        clients_limit=settings.scraper_max_kafka_clients,
        tenant_partitions=settings.scraper_max_tenant_partitions_per_tick,
    )
    # Spark would take the first python3 of PATH for its workers.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    spark = SparkSettings(settings.scraper_spark_master, settings.scraper_spark_driver_memory, settings.cache_dir)
    # A thread of its own, so that a signal ends the process in time whatever Spark is doing.
    query = QueryThread(options, spark, stop)
    query.start()
    log.info("service_started", http_listen=settings.scraper_http_listen, spark_master=settings.scraper_spark_master)
    stop.wait()
    health.draining = True
    log.info("service_stopping")
    housekeeping.stop()
    query.join(deadlines.THREAD_JOIN_SECONDS)
    server.stop()
    reports.stop()
    log.info("service_stopped", clean=not query.is_alive())
    sys.stderr.flush()
    # What still runs of Spark ends with this process, because its input ends.
    os._exit(int(query.failed))


if __name__ == "__main__":
    sys.exit(main())
