"""A worker process: the clients and the connection that it keeps between tasks, and the poll of one slot with them."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import pyarrow as pa
import structlog

from lagscale.errors import LagscaleError
from lagscale.store.connection import ScraperDatabase
from services.scraper import deadlines
from services.scraper.engine.options import EngineOptions, build_opener
from services.scraper.engine.rows import build_batches, build_rows
from services.scraper.kafka.open import ClusterOpener
from services.scraper.planning.plan import Slot
from services.scraper.polling.poll import poll_slot
from services.scraper.worker_reports import send_report

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class DatabaseClock:
    """The database's clock: the monotonic clock plus an offset that is measured at each tick.

    `error_ms` is the maximum error of the offset: the database may have read its clock at any time of the round trip.
    """

    offset_ms: float = 0.0
    error_ms: int = 0

    @classmethod
    def learn(cls, database: ScraperDatabase) -> DatabaseClock:
        """Measure the offset; the answer is assumed to take half of the round trip.

        Raises:
            StoreUnavailable: it did not answer.
        """
        before = time.monotonic()
        at_ms, _ = database.now_ms()
        after = time.monotonic()
        return cls(at_ms - (before + after) * 500, ceil((after - before) * 500))

    def __call__(self) -> int:
        return int(time.monotonic() * 1000 + self.offset_ms)


@dataclass(slots=True)
class WorkerResources:
    """The clients and the connection of one process."""

    database: ScraperDatabase
    opener: ClusterOpener


_resources: dict[EngineOptions, WorkerResources] = {}


def get_resources(options: EngineOptions) -> WorkerResources:
    """The resources of this process, created with the first call."""
    if options not in _resources:
        database = ScraperDatabase(options.database_url, application="lagscale-scraper-worker")
        _resources[options] = WorkerResources(database, build_opener(options, options.clients_limit))
    return _resources[options]


def close_resources(options: EngineOptions) -> None:
    """Close the resources of this process."""
    resources = _resources.pop(options, None)
    if resources is not None:
        resources.opener.close()
        resources.database.close()


def run_task(options: EngineOptions, slot: Slot | None, epoch: int, planned_ms: float) -> Iterator[pa.RecordBatch]:
    """Poll one slot, unless the task starts too late. Without a slot the task only warms up the process."""
    resources = get_resources(options)
    try:
        clock = DatabaseClock.learn(resources.database)
    except LagscaleError as error:
        send_report(
            options.reports, "skipped", reason=error.message, clusters=0 if slot is None else len(slot.clusters)
        )
        return
    if slot is None:
        return
    started_ms = clock()
    if started_ms - planned_ms > deadlines.compute_start_delay_seconds(options.tick_ms / 1000) * 1000:
        send_report(options.reports, "skipped", reason="the task started too late", clusters=len(slot.clusters))
        return
    threads = min(deadlines.POLL_THREADS, options.clients_limit)
    results = poll_slot(slot, resources.opener, clock, clock.error_ms, threads)
    send_report(
        options.reports,
        "polled",
        milliseconds=clock() - started_ms,
        clusters=len(results),
        clients_open=len(resources.opener.clients),
    )
    yield from build_batches(build_rows(results, epoch, int(planned_ms)))


# Each task ends with a garbage collection; without this it would traverse all modules again.
gc.freeze()
