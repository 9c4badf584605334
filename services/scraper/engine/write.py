"""Rows of samples from a batch and the newest stored rows, written by COPY under the lease. Runs in the workers.

The database is the state: a restart or a takeover needs nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from lagscale.domain.lag.rounds import Row
from lagscale.errors import LagscaleError, LeaseLost
from lagscale.store.records import Lease, Written
from lagscale.store.samples.write import Known, PostgresSamples, TopicId
from lagscale.store.scraping import targets
from lagscale.store.sync_connection import ScraperDatabase
from services.scraper.engine import worker
from services.scraper.engine.options import Options
from services.scraper.polling.round import Before, row_after
from services.scraper.spark import rows as wire
from services.scraper.spark.sink import BatchPart

_KINDS = {wire.CLUSTER: "cluster", wire.TARGET: "target"}


def write(options: Options, rows: list[dict[str, Any]], database: ScraperDatabase | None = None) -> BatchPart:
    """Store one task's rows: a transaction for the samples, one for the states, one for the hint.

    On this worker's connection unless another one is given.
    """
    part = BatchPart()
    if not rows:
        return part
    lease = Lease(options.holder, rows[0]["epoch"])
    try:
        _store(database or worker.kept(options).database, rows, lease, part)
    except LeaseLost:
        part.lost_lease = True
    except LagscaleError as away:
        # A gap is honest; a failed query would only cost the rounds after it, too.
        part.store_error = away.message
    return part


def _store(database: ScraperDatabase, rows: list[dict[str, Any]], lease: Lease, part: BatchPart) -> None:
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
            states[row["id"]] = targets.State(row["id"], row["code"], row["message"], row["partitions"])
    return list(states.values())
