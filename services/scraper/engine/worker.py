"""A worker process: the clients and the connection that it keeps between tasks, and the poll of one slot with them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import structlog

from lagscale.errors import LagscaleError
from lagscale.store.connection import ScraperDatabase
from services.scraper import deadlines
from services.scraper.engine.options import EngineOptions
from services.scraper.engine.rows import build_batches, build_rows
from services.scraper.kafka.open import ClusterOpener, build_opener
from services.scraper.planning.plan import Slot
from services.scraper.polling.poll import DatabaseClock, poll_slot
from services.scraper.worker_reports import send_report

log = structlog.get_logger(__name__)


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
    clusters = 0 if slot is None else len(slot.clusters)
    try:
        clock = DatabaseClock.learn(resources.database)
    except LagscaleError as error:
        send_report(options.reports, "skipped", reason=error.message, clusters=clusters)
        return
    if slot is None:
        return
    started_ms = clock.now_ms()
    if started_ms - planned_ms > deadlines.compute_start_delay_seconds(options.tick_ms / 1000) * 1000:
        send_report(options.reports, "skipped", reason="the task started too late", clusters=clusters)
        return
    results = poll_slot(slot, resources.opener, clock, min(deadlines.POLL_THREADS, options.clients_limit))
    took, clients_open = clock.now_ms() - started_ms, len(resources.opener.clients)
    send_report(options.reports, "polled", milliseconds=took, clusters=len(results), clients_open=clients_open)
    yield from build_batches(build_rows(results, epoch, int(planned_ms)))


# Each task ends with a garbage collection; without this it would traverse all modules again.
gc.freeze()
