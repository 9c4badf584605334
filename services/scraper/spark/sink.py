"""The streaming sink: hands a task's rows to `writing`, and tells the service what became of the batch.

Spark commits in a process of its own, so what is costly to import is imported where rows are written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from services.scraper.engine.options import EngineOptions
from services.scraper.worker_reports import report

if TYPE_CHECKING:
    import pyarrow as pa

_SUMS = ("built", "stored", "samples", "doubled", "future", "late")


@dataclass
class BatchPart(WriterCommitMessage):
    """What one task wrote; `ages_ms` of the clusters' newest samples when it was stored."""

    stored: int = 0
    samples: int = 0
    doubled: int = 0
    future: int = 0
    built: int = 0
    late: int = 0
    lost_lease: bool = False
    store_error: str = ""
    codes: dict[str, int] = field(default_factory=dict)
    ages_ms: dict[int, int] = field(default_factory=dict)
    since_plan_ms: int = 0


class SampleWriter(DataSourceStreamArrowWriter):
    """Writes the rows of a tick."""

    def __init__(self, options: EngineOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> BatchPart:
        """One task's rows."""
        from services.scraper.engine import write as writing

        return writing.write(self._options, [row for batch in iterator for row in batch.to_pylist()])

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Tell the service what the batch came to."""
        parts = [message for message in messages if isinstance(message, BatchPart)]
        codes: Counter[str] = Counter()
        ages: dict[int, int] = {}
        for part in parts:
            codes.update(part.codes)
            ages |= part.ages_ms
        report(
            self._options.reports,
            "batch",
            batch=batchId,
            **{name: sum(getattr(part, name) for part in parts) for name in _SUMS},
            lost_lease=any(part.lost_lease for part in parts),
            store_error=next((part.store_error for part in parts if part.store_error), ""),
            codes=codes,
            ages_ms=ages,
            since_plan_ms=max((part.since_plan_ms for part in parts), default=0),
        )

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Tell the service that a task failed."""
        report(self._options.reports, "aborted", batch=batchId)
