"""What was measured and judged of one tenant's monitors: verdicts with their evidence, samples, health."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from lagscale.clock import to_datetime
from lagscale.domain.lag.samples import Flag
from lagscale.domain.policy.policy import MEMBERS_MAX_AGE_MS, Policy
from lagscale.domain.policy.values import list_effective_values
from lagscale.domain.verdict.contract import Answer, Island, Judgment, VerdictRequest, choose_answer
from lagscale.domain.verdict.partial import apply_partial_coverage
from lagscale.domain.wording.verdicts import describe_answer, describe_verdict
from lagscale.errors import FieldError, InvalidInput
from lagscale.store.registry import clusters, freezes, history, monitors
from lagscale.store.registry.history import SampleRange
from lagscale.store.registry.paging import PageRequest, decode_cursor, encode_cursor
from lagscale.store.registry.session import AccessScope, RegistryDatabase, Row, TenantSession
from services.api.freezes.answer import find_frozen_answer, serialize_frozen
from services.api.monitors.policies import read_policy
from services.api.schemas import Listing
from services.api.serializers import serialize_state
from services.api.verdicts import schemas as out

_NO_TOPIC = 1
#: The state of a monitor that means more topics than it may measure.
_TOO_MANY_TOPICS = "too_many_topics"
_FLAGS = (Flag.UNCOMMITTED, Flag.LOST, Flag.RESET, Flag.REWIND, Flag.FIRST_SEEN)
_CLUSTER_PAGE_SIZE = 500


class VerdictStore(Protocol):
    """The part of the verdict's store that is used here."""

    async def judge(self, requests: Sequence[VerdictRequest], *, evidence: bool = False) -> list[Judgment]: ...

    async def find_last_known(self, request: VerdictRequest, judgment: Judgment) -> Answer | None: ...


class VerdictReader:
    """Answers what was seen. Each monitor and target is looked for behind the tenant's wall first."""

    def __init__(self, database: RegistryDatabase, verdicts: VerdictStore) -> None:
        """Take the registry, and the verdicts in the scaler's role.

        That role sees every tenant's samples, because it judges many tenants in one statement; so only targets that
        were just found behind the caller's wall are asked for, and the statement names their tenant again.
        """
        self._database = database
        self._verdicts = verdicts

    @property
    def verdicts(self) -> VerdictStore:
        """The verdicts that it asks, for what else is judged in the same way."""
        return self._verdicts

    async def verdict(self, scope: AccessScope, tenant: str, name: str) -> out.VerdictOut:
        """The verdict of now, and what KEDA is told."""
        async with self._database.tenant(scope, tenant) as session:
            row = await monitors.read_by_name(session, name)
            targets = await monitors.read_targets(session, row["id"])
            in_force = await freezes.read_covering(session, row, await history.read_clock(session))
            stored_answer = await freezes.read_frozen_answer(session, in_force, row["id"]) if in_force else None
        policy = read_policy(row, int(session.tenant["min_sampling_seconds"]))
        topics = {int(target["id"]): str(target["topic"]) for target in targets}
        request = VerdictRequest(session.tenant_id, tuple(sorted(topics)), policy)
        judgment = (await self._verdicts.judge([request], evidence=True))[0]
        partial = row["scope_message"] if row["scope_code"] == _TOO_MANY_TOPICS else ""
        if partial:
            judgment = apply_partial_coverage(judgment, policy)
        known = judgment.value is not None or partial
        answer = choose_answer(
            judgment, policy, None if known else await self._verdicts.find_last_known(request, judgment)
        )
        frozen = None
        if in_force:
            answer = None if partial else await find_frozen_answer(self._verdicts, request, in_force, stored_answer)
            frozen = serialize_frozen(in_force, answer)
        return out.VerdictOut(
            monitor=name,
            verdict=judgment.verdict.value,
            reason=judgment.reason.value,
            sentence=_build_sentence(judgment, policy, topics, partial),
            value=judgment.value,
            active=judgment.active,
            judged_at=to_datetime(judgment.now_ms),
            newest_round_at=None if judgment.at_ms is None else to_datetime(judgment.at_ms),
            total=judgment.measured_total,
            partitions=judgment.partitions,
            missing=judgment.missing,
            members=judgment.members,
            activates_from_zero=judgment.activates_from_zero,
            island=None if judgment.island is None else _serialize_island(judgment.island, topics),
            absent_topics=[topics[target] for target in judgment.absent if target in topics],
            answer=None if answer is None else _serialize_answer(answer),
            answer_sentence=describe_answer(judgment, policy, answer) if frozen is None else frozen.sentence,
            frozen=frozen,
            policy=list_effective_values(policy),
        )

    async def samples(
        self, scope: AccessScope, tenant: str, name: str, span: SampleRange, cursor: str | None
    ) -> Listing[out.RoundOut]:
        """Rounds of the monitor's targets, the newest first."""
        if cursor is not None:
            span = SampleRange(span.limit, span.begin, span.end, _decode_position(cursor))
        async with self._database.tenant(scope, tenant) as session:
            row = await monitors.read_by_name(session, name)
            targets = await monitors.read_targets(session, row["id"])
            rows = await history.read_samples(session, [target["id"] for target in targets], span)
        topics = {int(target["id"]): str(target["topic"]) for target in targets}
        shown = rows[: span.limit]
        more = (
            encode_cursor([shown[-1]["ts"].isoformat(), str(shown[-1]["target_id"])])
            if len(rows) > span.limit
            else None
        )
        return Listing(items=[_serialize_round(sample, topics[sample["target_id"]]) for sample in shown], next=more)

    async def monitor_health(self, scope: AccessScope, tenant: str, name: str) -> out.MonitorHealth:
        """States and newest samples of a monitor's cluster and targets."""
        async with self._database.tenant(scope, tenant) as session:
            row = await monitors.read_by_name(session, name)
            cluster = await clusters.read_by_name(session, row["cluster"])
            targets = await history.read_target_states(session, row["id"])
        return out.MonitorHealth(
            monitor=name,
            cluster_state=serialize_state(cluster, "state_"),
            scope=serialize_state(row, "scope_"),
            targets=[_serialize_target(target) for target in targets],
        )

    async def tenant_health(self, scope: AccessScope, tenant: str) -> out.TenantHealth:
        """All clusters of the tenant, with their targets counted by state."""
        async with self._database.tenant(scope, tenant) as session:
            rows = await _list_all_clusters(session)
            targets = await history.read_target_states(session)
        found = [
            _serialize_cluster_health(row, [target for target in targets if target["cluster"] == row["name"]])
            for row in rows
        ]
        healthy = all(
            (cluster.state is None or cluster.state.code == "ok") and set(cluster.targets_by_code) <= {"ok"}
            for cluster in found
        )
        return out.TenantHealth(tenant=tenant, ok=healthy, clusters=found)


async def _list_all_clusters(session: TenantSession) -> list[Row]:
    rows: list[Row] = []
    page_request = PageRequest(_CLUSTER_PAGE_SIZE)
    while True:
        found = await clusters.list_page(session, page_request)
        rows.extend(found.rows)
        if found.after is None:
            return rows
        page_request = PageRequest(_CLUSTER_PAGE_SIZE, found.after)


def _build_sentence(judgment: Judgment, policy: Policy, topics: dict[int, str], partial: str) -> str:
    if not partial:
        return describe_verdict(judgment, policy, topics)
    # Of a part only what lasted is worth telling.
    return partial if judgment.value is None else f"{describe_verdict(judgment, policy, topics)} {partial}"


def _serialize_island(island: Island, topics: dict[int, str]) -> out.IslandOut:
    return out.IslandOut(
        topic=None if island.target_id is None else topics.get(island.target_id),
        partition=island.partition,
        lag=island.lag,
        since=to_datetime(island.since_ms),
        duration_seconds=island.span_ms / 1000,
        start_known=island.start_known,
    )


def _serialize_answer(answer: Answer) -> out.AnswerOut:
    since = answer.last_known_ms
    return out.AnswerOut(
        value=answer.value,
        active=answer.active,
        last_known=since is not None,
        known_at=None if since is None else to_datetime(since),
    )


def _serialize_round(row: Row, topic: str) -> out.RoundOut:
    partitions: list[out.PartitionOut] = []
    missing: list[int] = []
    for number, lag in enumerate(row["lags"]):
        flags = Flag(row["flags"][number] or 0) if row["flags"] else Flag(0)
        if Flag.EXCLUDED in flags:
            continue
        if lag is None:
            missing.append(number)
            continue
        end = row["ends"][number]
        partitions.append(
            out.PartitionOut(
                partition=number,
                lag=lag,
                end_offset=end,
                position=end - lag,
                flags=[str(flag.name).lower() for flag in _FLAGS if flag in flags],
                lost=(row["lost"][number] or 0) if row["lost"] else 0,
            )
        )
    known = row["members"] is not None and (row["members_age"] or 0) <= MEMBERS_MAX_AGE_MS
    return out.RoundOut(
        at=row["ts"],
        topic=topic,
        partitions=partitions,
        missing=missing,
        members=row["members"] if known else None,
        topic_exists=not row["notes"] & _NO_TOPIC,
    )


def _decode_position(cursor: str) -> tuple[datetime, int]:
    when, target = decode_cursor(cursor, 2)
    try:
        return datetime.fromisoformat(when), int(target)
    except ValueError:
        raise InvalidInput([FieldError("cursor", "is no cursor of this listing; leave it out to begin anew")]) from None


def _serialize_target(row: Row) -> out.TargetHealth:
    return out.TargetHealth(
        cluster=row["cluster"],
        consumer_group=row["consumer_group"],
        topic=row["topic"],
        state=serialize_state(row, ""),
        newest_sample_at=row["newest_at"],
        newest_sample_age_seconds=_compute_age(row),
    )


def _compute_age(row: Row) -> float | None:
    newest: datetime | None = row["newest_at"]
    return None if newest is None else max(0.0, round((row["present"] - newest).total_seconds(), 3))


def _serialize_cluster_health(row: Row, targets: Sequence[Row]) -> out.ClusterHealth:
    ages = [_compute_age(target) for target in targets]
    known = [age for age in ages if age is not None]
    return out.ClusterHealth(
        cluster=row["name"],
        state=serialize_state(row, "state_"),
        targets=len(targets),
        targets_by_code=dict(Counter(str(target["code"] or "not_asked") for target in targets)),
        newest_sample_age_seconds=min(known, default=None),
        stalest_target_age_seconds=max(known) if known and len(known) == len(ages) else None,
    )
