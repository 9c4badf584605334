"""Writes the rows of a task: samples by COPY under the lease, states, and a notification. Runs in the workers.

The database is the state: a restart or a takeover needs nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lagscale.domain.lag.offsets import OffsetInvalid, sum_topic_lag
from lagscale.domain.lag.rounds import SampleRow
from lagscale.domain.state_codes import StateCode
from lagscale.errors import LagscaleError, LeaseLost
from lagscale.store.connection import ScraperDatabase
from lagscale.store.samples.write import AppendResult, PostgresSamples, TopicIncarnation
from lagscale.store.scraping import targets
from lagscale.store.scraping.leases import Lease
from services.scraper.engine.rows import CLUSTER, TARGET, Row, read_polled
from services.scraper.polling.round import PollProblem, build_next_row
from services.scraper.worker_reports import BatchPart

_KINDS = {CLUSTER: "cluster", TARGET: "target"}


def write_rows(holder: str, rows: Sequence[Row], database: ScraperDatabase) -> BatchPart:
    """Store the rows of one task: one transaction for the samples, one for the states, one for the notification.

    `holder` holds the lease, all rows are of one epoch, and no other thread uses the connection.
    """
    part = BatchPart()
    if not rows:
        return part
    lease = Lease(holder, rows[0]["epoch"])
    try:
        _store_rows(database, rows, lease, part)
    except LeaseLost:
        part.lost_lease = True
    except LagscaleError as error:
        # This leaves a gap; a failed query would cost the rounds after it, too.
        part.store_error = error.message
    return part


def _store_rows(database: ScraperDatabase, rows: Sequence[Row], lease: Lease, part: BatchPart) -> None:
    store = PostgresSamples(database)
    built, topic_ids = _build_rows(rows, store, part)
    part.built = len(built)
    written: AppendResult = store.append(built, lease, topic_ids)
    part.stored, part.doubled, part.future = written.stored, written.duplicates, written.refused
    now_ms, _ = database.now_ms()
    part.samples = sum(sample is not None for _, _, stored in built for sample in stored.round.samples)
    part.since_plan_ms = int(now_ms - rows[0]["planned_ms"])
    for row in rows:
        if row.get("at_ms") is not None:
            age = max(int(now_ms) - row["at_ms"], 0)
            part.ages_ms[row["cluster_id"]] = min(age, part.ages_ms.get(row["cluster_id"], age))
    part.codes = dict(Counter(f"{_KINDS[row['kind']]}:{row['code']}" for row in rows))
    clusters = _collect_states(rows, CLUSTER)
    targets.write_poll_states(database, clusters, _collect_states(rows, TARGET), lease)
    if written.stored:
        store.notify()


def _build_rows(
    rows: Sequence[Row], store: PostgresSamples, part: BatchPart
) -> tuple[list[tuple[int, int, SampleRow]], list[TopicIncarnation]]:
    polled = {row["id"]: row for row in rows if row["kind"] == TARGET and row.get("at_ms") is not None}
    baseline = store.read_baselines(list(polled)) if polled else {}
    built: list[tuple[int, int, SampleRow]] = []
    topic_ids: list[TopicIncarnation] = []
    for target_id, row in polled.items():
        before = baseline.get(target_id)
        this = read_polled(row)
        if before is None or this is None:
            continue  # The target was removed since the plan.
        result = build_next_row(before, this)
        if result is None:
            part.late += 1
            continue
        try:
            sum_topic_lag((result.row.markers.total_lag, result.row.markers.none_total))
        except OffsetInvalid as refused:
            problem = PollProblem(StateCode.OFFSETS_INVALID, str(refused))
            row |= {"code": problem.code.value, "message": problem.message}
            continue
        built.append((row["tenant_id"], target_id, result.row))
        if result.new_id and result.topic_id is not None:
            topic_ids.append(TopicIncarnation(target_id, result.topic_id, result.row.round.incarnation))
    return built, topic_ids


def _collect_states(rows: Sequence[Row], kind: int) -> list[targets.PollState]:
    """The states of clusters or targets; of a cluster that is split among rows, an error comes before `ok`."""
    states: dict[int, targets.PollState] = {}
    for row in rows:
        if row["kind"] == kind and (row["id"] not in states or states[row["id"]].code == StateCode.OK):
            details = row.get("partitions"), row.get("unstable")
            states[row["id"]] = targets.PollState(row["id"], row["code"], row["message"], *details)
    return list(states.values())
