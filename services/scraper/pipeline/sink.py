"""The streaming sink: rows of samples from a batch and the newest stored rows, written by COPY under the lease.

The database is the state: a restart or a takeover needs nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from lagscale.domain.markers import Row
from lagscale.errors import LagscaleError, LeaseLost
from lagscale.store import Lease, Written, targets
from lagscale.store.postgres_sync import Known, PostgresSamples, TopicId
from lagscale.store.sync_connection import ScraperDatabase
from services.scraper.pipeline import wire, worker
from services.scraper.pipeline.options import Options
from services.scraper.reports import report
from services.scraper.round import Before, row_after


@dataclass
class BatchPart(WriterCommitMessage):
    """What one task wrote; `ages_ms` of the clusters' newest samples when it was stored."""

    stored: int = 0
    samples: int = 0
    doubled: int = 0
    future: int = 0
    made: int = 0
    late: int = 0
    lost_lease: bool = False
    store_error: str = ""
    codes: dict[str, int] = field(default_factory=dict)
    ages_ms: dict[int, int] = field(default_factory=dict)
    since_plan_ms: int = 0


class SampleWriter(DataSourceStreamArrowWriter):
    """Writes the rows of a tick."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> BatchPart:
        """One task's rows: one transaction for the samples, one for the states, one for the hint."""
        rows = [row for batch in iterator for row in batch.to_pylist()]
        part = BatchPart()
        if not rows:
            return part
        mine = worker.kept(self._options)
        lease = Lease(self._options.holder, rows[0]["epoch"])
        try:
            self._store(mine.database, rows, lease, part)
        except LeaseLost:
            part.lost_lease = True
        except LagscaleError as away:
            # A gap is honest; a failed query would only cost the rounds after it, too.
            part.store_error = away.message
        return part

    def _store(self, database: ScraperDatabase, rows: list[dict[str, Any]], lease: Lease, part: BatchPart) -> None:
        store = PostgresSamples(database)
        made, topic_ids = _made(rows, store, part)
        part.made = len(made)
        written: Written = store.append(made, lease, topic_ids)
        part.stored, part.doubled, part.future = written.stored, written.doubled, written.refused
        now_ms, _ = database.now_ms()
        part.samples = sum(sample is not None for _, _, stored in made for sample in stored.round.samples)
        part.since_plan_ms = int(now_ms - rows[0]["planned_ms"])
        for row in rows:
            if row["at_ms"] is not None:
                age = max(int(now_ms) - row["at_ms"], 0)
                part.ages_ms[row["cluster_id"]] = min(age, part.ages_ms.get(row["cluster_id"], age))
        part.codes = dict(Counter(f"{_KINDS[row['kind']]}:{row['code']}" for row in rows))
        clusters = _states(rows, wire.CLUSTER)
        targets.write_states(database, clusters, _states(rows, wire.TARGET), lease)
        if written.stored:
            store.notify()

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


_KINDS = {wire.CLUSTER: "cluster", wire.TARGET: "target"}
_SUMS = ("made", "stored", "samples", "doubled", "future", "late")


def _made(
    rows: Sequence[dict[str, Any]], store: PostgresSamples, part: BatchPart
) -> tuple[list[tuple[int, int, Row]], list[TopicId]]:
    polled = {row["id"]: row for row in rows if row["kind"] == wire.TARGET and row["at_ms"] is not None}
    known = store.known(list(polled)) if polled else {}
    made: list[tuple[int, int, Row]] = []
    topic_ids: list[TopicId] = []
    for target_id, row in polled.items():
        before: Known | None = known.get(target_id)
        this = wire.polled_of(row)
        if before is None or this is None:
            continue  # The target was removed in the meantime.
        result = row_after(Before(before.topic_id, before.epoch, before.row), this)
        if result is None:
            part.late += 1
            continue
        made.append((row["tenant_id"], target_id, result.row))
        if result.new_id and result.topic_id is not None:
            topic_ids.append(TopicId(target_id, result.topic_id, result.row.round.epoch))
    return made, topic_ids


def _states(rows: Sequence[dict[str, Any]], kind: int) -> list[targets.State]:
    """Of a cluster that is divided among rows, the worst state counts: any error before none."""
    states: dict[int, targets.State] = {}
    for row in rows:
        if row["kind"] == kind and (row["id"] not in states or states[row["id"]].code == "ok"):
            states[row["id"]] = targets.State(row["id"], row["code"], row["message"])
    return list(states.values())
