"""The Spark session, the running query, and the thread of the service that starts, watches and stops them."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tenacity import Retrying, retry_if_exception_type, stop_when_event_set, wait_exponential_jitter
from tenacity.nap import sleep_using_event

from services.scraper import deadlines, metrics
from services.scraper.engine.options import EngineOptions
from services.scraper.engine.rows import COLUMNS
from services.scraper.spark.datasource import FORMAT, LagDataSource

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """How the session is started. The directory is for checkpoints and blocks; its contents may be lost at any time."""

    master: str
    driver_memory: str
    directory: Path


class _QueryEnded(Exception):
    """The streaming query ended by itself."""


class QueryThread(threading.Thread):
    """Starts Spark, keeps a query running, and stops both when `stop` is set; sets it itself when Spark is lost."""

    def __init__(self, options: EngineOptions, spark: SparkSettings, stop: threading.Event) -> None:
        super().__init__(name="query", daemon=True)
        self._options, self._spark, self._stop_asked = options, spark, stop
        self.failed = False

    def run(self) -> None:
        """Run until the service stops, or the session is lost."""
        try:
            runner = QueryRunner(self._options, self._spark)
        except Exception:
            log.exception("spark_start_failed")
            self._fail()
            return
        log.info("spark_started")
        try:
            while not self._stop_asked.is_set():
                # After a stable run the pauses begin with the shortest again.
                Retrying(
                    retry=retry_if_exception_type(_QueryEnded),
                    wait=wait_exponential_jitter(
                        deadlines.MIN_RESTART_PAUSE_SECONDS, deadlines.MAX_RESTART_PAUSE_SECONDS
                    ),
                    stop=stop_when_event_set(self._stop_asked),
                    sleep=sleep_using_event(self._stop_asked),
                    reraise=True,
                )(self._run_query, runner)
        except _QueryEnded:
            log.info("query_restart_skipped", reason="shutting down")
        except Exception:
            log.exception("spark_failed")
            self._fail()
        runner.stop()

    def _run_query(self, runner: QueryRunner) -> None:
        """Run one query; returns when the service stops, or when the query fails after a stable run.

        Raises:
            _QueryEnded: it failed soon.
        """
        started_at = time.monotonic()
        runner.start()
        while not self._stop_asked.wait(deadlines.QUERY_CHECK_SECONDS):
            for phase, milliseconds in runner.read_phases().items():
                metrics.PHASE_SECONDS.labels(phase).set(milliseconds / 1000)
            if not runner.is_active():
                metrics.RESTARTS.inc()
                log.error("query_failed", reason=runner.describe_failure())
                runner.stop_query()
                if time.monotonic() - started_at > deadlines.STABLE_QUERY_SECONDS:
                    return
                raise _QueryEnded

    def _fail(self) -> None:
        # A lost driver cannot be started again in this process; the supervisor restarts the process.
        self.failed = True
        self._stop_asked.set()


class QueryRunner:
    """One session, and one query at a time on it."""

    def __init__(self, options: EngineOptions, spark: SparkSettings) -> None:
        self._options = options
        self._directory = spark.directory / f"spark-{uuid.uuid4().hex[:12]}"
        self._session = _open_session(spark, self._directory)
        self._session.dataSource.register(LagDataSource)
        self._query: Any = None

    def start(self) -> None:
        """Start a query on a new checkpoint: a poll cannot be replayed, and the database is the state.

        Raises:
            PySparkException: Spark refuses.
        """
        checkpoint = self._directory / f"checkpoint-{uuid.uuid4().hex[:12]}"
        options = self._options.to_texts()
        polled = self._session.readStream.format(FORMAT).options(**options).load()
        self._query = (
            polled.where("code is not null")
            .select(*COLUMNS)
            .writeStream.format(FORMAT)
            .queryName("lag")
            .options(**options)
            .option("checkpointLocation", str(checkpoint))
            .trigger(processingTime=f"{self._options.tick_ms} milliseconds")
            .start()
        )

    def is_active(self) -> bool:
        """Whether the query is running."""
        with contextlib.suppress(Exception):  # A lost driver fails in many ways.
            return self._query is not None and bool(self._query.isActive)
        return False

    def describe_failure(self) -> str:
        """Why the query ended; the first line."""
        with contextlib.suppress(Exception):
            return str(self._query.exception() or "").strip().partition("\n")[0][:500]
        return "the driver does not answer"

    def read_phases(self) -> Mapping[str, int]:
        """Milliseconds of the latest batch, by Spark's names of its phases."""
        with contextlib.suppress(Exception):
            last = self._query.lastProgress
            if last is not None:
                return {str(phase): int(spent) for phase, spent in last["durationMs"].items()}
        return {}

    def stop_query(self) -> None:
        """Stop the query; one that does not stop in time ends with the session."""
        if self._query is not None:
            with contextlib.suppress(PySparkException, Exception):
                self._query.stop()
            self._query = None

    def stop(self) -> None:
        """Stop query and session, and remove their files."""
        self.stop_query()
        with contextlib.suppress(Exception):
            self._session.stop()
        shutil.rmtree(self._directory, ignore_errors=True)


def _open_session(spark: SparkSettings, directory: Path) -> SparkSession:
    settings = {
        "spark.master": spark.master,
        "spark.app.name": "lagscale-scraper",
        "spark.driver.memory": spark.driver_memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(directory / "blocks"),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.streaming.minBatchesToRetain": "2",
        "spark.sql.streaming.stopTimeout": str(round(deadlines.SPARK_STOP_SECONDS * 1000)),
        "spark.sql.streaming.numRecentProgressUpdates": "2",
        "spark.sql.streaming.noDataProgressEventInterval": "60000",
        "spark.sql.ui.retainedExecutions": "1",
        "spark.ui.retainedJobs": "1",
        "spark.ui.retainedStages": "1",
        "spark.ui.retainedTasks": "1",
        "spark.task.maxFailures": "1",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
        "spark.sql.redaction.options.regex": "(?i)url|secret|reports",
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={directory} -Duser.timezone=UTC -XX:+UseSerialGC",
    }
    if spark.master.startswith("local"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    directory.mkdir(parents=True, exist_ok=True)
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
