"""Spark's data source: polling as a source, the store as a sink.

Offsets are ticks, input partitions are slots with the tick's plan, reading is polling. Spark runs `latestOffset` and
`partitions` in one process beside the driver, `read` and `write` in the workers, and commits in a process of its own.
All of them load these classes, so costly modules are imported where they are used.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from services.scraper.engine.options import EngineOptions
from services.scraper.worker_reports import BatchPart, send_report

if TYPE_CHECKING:
    import pyarrow as pa

    from services.scraper.engine.leader import Leader
    from services.scraper.planning.plan import Slot

FORMAT = "lagscale"


class LagDataSource(DataSource):
    """Source and sink of the query."""

    @classmethod
    def name(cls) -> str:
        """Name of the format."""
        return FORMAT

    def schema(self) -> str:
        """The columns of `engine/rows.py`."""
        from services.scraper.engine.rows import SPARK_SCHEMA

        return SPARK_SCHEMA

    def streamReader(self, schema: StructType) -> TickReader:
        """The source."""
        return TickReader(EngineOptions.from_texts(self.options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> SampleWriter:
        """The sink."""
        return SampleWriter(EngineOptions.from_texts(self.options))


@dataclass
class SlotPartition(InputPartition):
    """One task of a tick: its slot, the lease's epoch, and the time of the plan by the database's clock.

    A slot of None polls nothing: it warms up a worker.
    """

    slot: Slot | None
    epoch: int
    planned_ms: float


class TickReader(DataSourceStreamReader):
    """Plans a tick while this scraper leads, and polls its slots."""

    def __init__(self, options: EngineOptions) -> None:
        self._options = options
        self._opened_leader: Leader | None = None
        self._tick = 0

    def initialOffset(self) -> dict[str, int]:
        """Before the first tick."""
        return {"tick": 0}

    def latestOffset(self) -> dict[str, int]:
        """The next tick while this scraper leads; else the last one again, and Spark runs no batch."""
        # The first batch polls nothing: it warms up the workers, also those of a standby.
        if self._tick == 0 or self._leader.keep_lease():
            self._tick += 1
        return {"tick": self._tick}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[SlotPartition]:
        """The slots of the tick."""
        if end["tick"] == 1:
            return [SlotPartition(None, 0, 0.0)] * self._options.slots
        lease = self._leader.lease
        if lease is None or end["tick"] != self._tick or start["tick"] == end["tick"]:
            return []
        slots, at_ms = self._leader.plan()
        return [SlotPartition(slot, lease.epoch, at_ms) for slot in slots]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Poll one slot."""
        from services.scraper.engine.worker import run_task

        assert isinstance(partition, SlotPartition)  # noqa: S101  # `partitions` makes no others.
        return run_task(self._options, partition.slot, partition.epoch, partition.planned_ms)

    def stop(self) -> None:
        """Release the lease."""
        if self._opened_leader is not None:
            self._opened_leader.stop()

    @property
    def _leader(self) -> Leader:
        if self._opened_leader is None:
            from services.scraper.engine.leader import Leader

            self._opened_leader = Leader(self._options)
        return self._opened_leader


@dataclass
class PartMessage(WriterCommitMessage):
    """What one task wrote, on its way to the commit."""

    part: BatchPart


class SampleWriter(DataSourceStreamArrowWriter):
    """Writes the rows of a tick, and reports the batch to the service."""

    def __init__(self, options: EngineOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> PartMessage:
        """Write the rows of one task."""
        from services.scraper.engine.worker import get_resources
        from services.scraper.engine.write import write_rows

        rows = [row for batch in iterator for row in batch.to_pylist()]
        return PartMessage(write_rows(self._options.holder, rows, get_resources(self._options).database))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Report the whole batch."""
        whole = BatchPart.merge(message.part for message in messages if isinstance(message, PartMessage))
        send_report(self._options.reports, "batch", batch=batchId, **asdict(whole))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Report that a task failed."""
        send_report(self._options.reports, "aborted", batch=batchId)


# Each call of Spark into Python ends with a garbage collection; without this it would traverse all of pyspark again.
gc.freeze()
