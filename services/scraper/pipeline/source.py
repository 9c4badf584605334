"""The streaming source: offsets are ticks, partitions are slots with the tick's plan, reading is polling.

Spark runs `latestOffset` and `partitions` in one process beside the driver, and `read` in the workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import structlog
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from lagscale.errors import LagscaleError
from lagscale.store import Lease, leases, targets
from lagscale.store.sync_connection import ScraperDatabase
from services.scraper.pipeline import worker
from services.scraper.pipeline.options import Options
from services.scraper.reports import report
from services.scraper.targets import Planner, Slot

log = structlog.get_logger(__name__)

#: The lease lasts two ticks, and never less than this; seconds.
_LEAST_LEASE = 4.0


@dataclass
class SlotPartition(InputPartition):
    """One task of a tick: its slot, the lease's epoch, and when it was planned by the database's clock."""

    slot: Slot
    epoch: int
    planned_ms: float


class TickReader(DataSourceStreamReader):
    """Plans a tick while this scraper leads, and polls its slots."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._database = ScraperDatabase(options.database_url, application="lagscale-scraper-plan")
        self._planner = Planner(options.tick_ms, options.slots)
        self._polling = targets.Polling(-1)
        self._lease: Lease | None = None
        self._tick = 0

    def initialOffset(self) -> dict[str, int]:
        """Before the first tick."""
        return {"tick": 0}

    def latestOffset(self) -> dict[str, int]:
        """The next tick while this scraper leads; else the last one again, and Spark runs no batch."""
        if self._tick == 0:
            # The first batch polls nothing: it warms the workers, also those of a standby.
            self._tick = 1
        elif self._keep_lease():
            self._tick += 1
        return {"tick": self._tick}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[SlotPartition]:
        """The slots of the tick."""
        if end["tick"] == 1:
            return [SlotPartition(Slot((), 0.0), 0, 0.0)] * self._options.slots
        if self._lease is None or end["tick"] != self._tick or start["tick"] == end["tick"]:
            return []
        try:
            at_ms, version = self._database.now_ms()
            if version != self._polling.version:
                self._polling = targets.read(self._database)
            failed = targets.failed_clusters(self._database)
        except LagscaleError as away:
            self._report_plan(store=False, error=away.message)
            return []
        slots = self._planner.plan(self._polling, failed, at_ms)
        self._report_plan(store=True, targets=len(self._polling.targets), clusters=len(self._polling.clusters))
        return [SlotPartition(slot, self._lease.epoch, at_ms) for slot in slots]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Poll one slot."""
        assert isinstance(partition, SlotPartition)  # noqa: S101  # `partitions` makes no others.
        return worker.read(self._options, partition.slot, partition.epoch, partition.planned_ms)

    def stop(self) -> None:
        """Give the lease back, so that a standby takes over at once."""
        if self._lease is not None:
            try:
                leases.release(self._database, self._options.holder)
            except LagscaleError as away:
                log.warning("lease_not_released", error=away.message)
        self._database.close()

    def _keep_lease(self) -> bool:
        seconds = max(2 * self._options.tick_ms / 1000, _LEAST_LEASE)
        try:
            self._lease = leases.keep(self._database, self._options.holder, seconds)
        except LagscaleError as away:
            # Whether the lease still stands is not known; the sink will ask again before it writes.
            self._report_plan(store=False, error=away.message)
            return False
        self._report_plan(store=True)
        return self._lease is not None

    def _report_plan(self, **facts: Any) -> None:
        epoch = 0 if self._lease is None else self._lease.epoch
        report(self._options.reports, "plan", leading=self._lease is not None, epoch=epoch, **facts)
