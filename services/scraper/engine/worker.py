"""What a worker process keeps between tasks: clients, a connection, the clock; and the poll of one slot with them."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import pyarrow as pa
import structlog

from lagscale.errors import LagscaleError
from lagscale.store.sync_connection import ScraperDatabase
from services.scraper.engine import rows
from services.scraper.engine.opening import build_opener
from services.scraper.engine.options import EngineOptions
from services.scraper.kafka.cluster import KafkaCluster
from services.scraper.kafka.open import ClusterOpener
from services.scraper.kafka.status import PollProblem
from services.scraper.planning.planner import ClusterPlan, Slot
from services.scraper.polling.poll import MAX_CLUSTER_THREADS, ClusterPollResult, poll
from services.scraper.worker_reports import report

log = structlog.get_logger(__name__)

#: A slot that starts later than this after its plan polls nothing: an honest gap. Milliseconds, or two ticks.
_MAX_START_DELAY_MS = 5000


@dataclass(slots=True)
class DatabaseClock:
    """The database's clock: the monotonic one plus an offset that is learnt at each tick.

    `error_ms` is the greatest error of that offset: the database may have answered at once, or just before the end.
    """

    offset_ms: float = 0.0
    error_ms: int = 0

    @classmethod
    def learn(cls, database: ScraperDatabase) -> DatabaseClock:
        """Ask the database; half of the round trip is taken for the way back.

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
    """One process's clients and connection."""

    database: ScraperDatabase
    opener: ClusterOpener

    def open(self, plan: ClusterPlan) -> KafkaCluster | PollProblem | None:
        """The cluster's client, or why there is none; None while none is free."""
        return self.opener.open(plan.cluster, responsive=plan.responsive)


_resources: dict[EngineOptions, WorkerResources] = {}


def get_resources(options: EngineOptions) -> WorkerResources:
    """What this process keeps."""
    if options not in _resources:
        database = ScraperDatabase(options.database_url, application="lagscale-scraper-worker")
        _resources[options] = WorkerResources(database, build_opener(options, options.clients_limit))
    return _resources[options]


def close_resources(options: EngineOptions) -> None:
    """Close what this process keeps."""
    resources = _resources.pop(options, None)
    if resources is not None:
        resources.opener.close()
        resources.database.close()


def read(options: EngineOptions, slot: Slot | None, epoch: int, planned_ms: float) -> Iterator[pa.RecordBatch]:
    """Poll one slot, unless it comes too late."""
    resources = get_resources(options)
    try:
        clock = DatabaseClock.learn(resources.database)
    except LagscaleError as error:
        report(options.reports, "skipped", reason=error.message, clusters=0 if slot is None else len(slot.clusters))
        return
    if slot is None:
        return
    started_ms = clock()
    if started_ms - planned_ms > max(_MAX_START_DELAY_MS, 2 * options.tick_ms):
        report(options.reports, "skipped", reason="the task came too late", clusters=len(slot.clusters))
        return
    threads = min(MAX_CLUSTER_THREADS, options.clients_limit)
    answers: list[ClusterPollResult] = poll(
        slot, resources.open, clock, clock.error_ms, close_cluster=resources.opener.release, threads=threads
    )
    report(
        options.reports,
        "polled",
        milliseconds=clock() - started_ms,
        clusters=len(answers),
        clients_open=len(resources.opener.clients),
    )
    yield from rows.build_batches(answers, epoch, int(planned_ms))


# Every task ends with a collection; without this it would walk all modules again.
gc.freeze()
