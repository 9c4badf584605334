"""The streaming source: offsets are ticks, partitions are slots with the tick's plan, reading is polling.

Spark runs `latestOffset` and `partitions` in one process beside the driver, and `read` in the workers. Others only
load the class, so what is costly to import is imported where it runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from services.scraper.engine.options import EngineOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from services.scraper.engine.leader import Leader
    from services.scraper.planning.planner import Slot


@dataclass
class SlotPartition(InputPartition):
    """One task of a tick: its slot, the lease's epoch, and when it was planned by the database's clock.

    A slot of None polls nothing: it warms a worker.
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
        # The first batch polls nothing: it warms the workers, also those of a standby.
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
        from services.scraper.engine import worker

        assert isinstance(partition, SlotPartition)  # noqa: S101  # `partitions` makes no others.
        return worker.read(self._options, partition.slot, partition.epoch, partition.planned_ms)

    def stop(self) -> None:
        """Give the lease back."""
        if self._opened_leader is not None:
            self._opened_leader.stop()

    @property
    def _leader(self) -> Leader:
        if self._opened_leader is None:
            from services.scraper.engine.leader import Leader

            self._opened_leader = Leader(self._options)
        return self._opened_leader
