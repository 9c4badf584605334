"""The Spark session and the running query; the service starts, watches and stops them from here."""

from __future__ import annotations

import contextlib
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from services.scraper.engine.options import EngineOptions
from services.scraper.spark.datasource import NAME, LagDataSource
from services.scraper.spark.transform import select_written

_STOP_MS = 4000


class QueryRunner:
    """One session, and one query at a time on it.

    Args:
        options: for the stream's processes.
        master: Spark's master.
        driver_memory: the driver's heap.
        directory: a directory for checkpoints and blocks, which may be lost at any time.
    """

    def __init__(self, options: EngineOptions, *, master: str, driver_memory: str, directory: Path) -> None:
        self._options = options
        self._directory = directory / f"spark-{uuid.uuid4().hex[:12]}"
        self._session = _session(master, driver_memory, self._directory)
        self._session.dataSource.register(LagDataSource)
        self._query: Any = None

    def start(self) -> None:
        """Start a query on a fresh checkpoint: a poll cannot be replayed, and the database is the state.

        Raises:
            PySparkException: Spark refuses.
        """
        checkpoint = self._directory / f"checkpoint-{uuid.uuid4().hex[:12]}"
        source = self._session.readStream.format(NAME).options(**self._options.texts()).load()
        self._query = (
            select_written(source)
            .writeStream.format(NAME)
            .queryName("lag")
            .options(**self._options.texts())
            .option("checkpointLocation", str(checkpoint))
            .trigger(processingTime=f"{self._options.tick_ms} milliseconds")
            .start()
        )

    def is_active(self) -> bool:
        """Whether the query runs."""
        with contextlib.suppress(Exception):  # A driver that is gone says so in many ways.
            return self._query is not None and bool(self._query.isActive)
        return False

    def describe_failure(self) -> str:
        """Why the query ended; its first line."""
        with contextlib.suppress(Exception):
            return str(self._query.exception() or "").strip().partition("\n")[0][:500]
        return "the driver does not answer"

    def read_phases(self) -> Mapping[str, int]:
        """Milliseconds of the newest batch by Spark's names of its phases."""
        with contextlib.suppress(Exception):
            last = self._query.lastProgress
            if last is not None:
                return {str(phase): int(spent) for phase, spent in last["durationMs"].items()}
        return {}

    def stop_query(self) -> None:
        """End the query; one that does not end in time is left to the session's end."""
        if self._query is not None:
            with contextlib.suppress(PySparkException, Exception):
                self._query.stop()
            self._query = None

    def stop(self) -> None:
        """End query and session, and remove what they kept."""
        self.stop_query()
        with contextlib.suppress(Exception):
            self._session.stop()
        shutil.rmtree(self._directory, ignore_errors=True)


def _session(master: str, driver_memory: str, directory: Path) -> SparkSession:
    settings = {
        "spark.master": master,
        "spark.app.name": "lagscale-scraper",
        "spark.driver.memory": driver_memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(directory / "blocks"),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.streaming.minBatchesToRetain": "2",
        "spark.sql.streaming.stopTimeout": str(_STOP_MS),
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
    if master.startswith("local"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    directory.mkdir(parents=True, exist_ok=True)
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
