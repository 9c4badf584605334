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
from services.scraper.engine.opening import opening_of
from services.scraper.engine.options import Options
from services.scraper.kafka.cluster import KafkaCluster
from services.scraper.kafka.open import Opening
from services.scraper.kafka.status import Problem
from services.scraper.planning.planner import ClusterPlan, Slot
from services.scraper.polling.poll import THREADS, ClusterAnswer, poll
from services.scraper.spark import rows
from services.scraper.worker_reports import report

log = structlog.get_logger(__name__)

#: A slot that starts later than this after its plan polls nothing: an honest gap. Milliseconds, or two ticks.
_TOO_LATE_MS = 5000


@dataclass(slots=True)
class Clock:
    """The database's clock: the monotonic one plus an offset that is learnt at each tick.

    `error_ms` is the greatest error of that offset: the database may have answered at once, or just before the end.
    """

    offset_ms: float = 0.0
    error_ms: int = 0

    @classmethod
    def learn(cls, database: ScraperDatabase) -> Clock:
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
class Kept:
    """One process's clients and connection."""

    database: ScraperDatabase
    opening: Opening

    def open(self, plan: ClusterPlan) -> KafkaCluster | Problem | None:
        """The cluster's client, or why there is none; None while none is free."""
        return self.opening.open(plan.cluster, proven=plan.proven)


_kept: dict[Options, Kept] = {}


def kept(options: Options) -> Kept:
    """What this process keeps."""
    if options not in _kept:
        database = ScraperDatabase(options.database_url, application="lagscale-scraper-worker")
        _kept[options] = Kept(database, opening_of(options, options.clients_limit))
    return _kept[options]


def forget(options: Options) -> None:
    """Close what this process keeps."""
    mine = _kept.pop(options, None)
    if mine is not None:
        mine.opening.close()
        mine.database.close()


def read(options: Options, slot: Slot | None, epoch: int, planned_ms: float) -> Iterator[pa.RecordBatch]:
    """Poll one slot, unless it comes too late."""
    mine = kept(options)
    try:
        clock = Clock.learn(mine.database)
    except LagscaleError as away:
        report(options.reports, "skipped", reason=away.message, clusters=0 if slot is None else len(slot.clusters))
        return
    if slot is None:
        return
    began = clock()
    if began - planned_ms > max(_TOO_LATE_MS, 2 * options.tick_ms):
        report(options.reports, "skipped", reason="the task came too late", clusters=len(slot.clusters))
        return
    threads = min(THREADS, options.clients_limit)
    answers: list[ClusterAnswer] = poll(
        slot, mine.open, clock, clock.error_ms, close_cluster=mine.opening.rest, threads=threads
    )
    report(
        options.reports,
        "polled",
        milliseconds=clock() - began,
        clusters=len(answers),
        clients_open=len(mine.opening.clients),
    )
    yield from rows.batches(answers, epoch, int(planned_ms))


# Every task ends with a collection; without this it would walk all modules again.
gc.freeze()
