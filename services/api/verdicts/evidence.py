"""What was measured and judged of one tenant's monitors: verdicts with their evidence, samples, health."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Protocol

from lagscale.domain.lag.samples import Flag
from lagscale.domain.policy.policy import MEMBERS_KNOWN_MS, Policy
from lagscale.domain.policy.values import resolved
from lagscale.domain.verdict.contract import Ask, Island, Judgement, Told, told
from lagscale.domain.verdict.partial import by_a_part
from lagscale.domain.wording.verdicts import answer_sentence, sentence
from lagscale.errors import Fault, InvalidInput
from lagscale.store.registry import clusters, freezes, history, monitors, observations
from lagscale.store.registry.observations import Span
from lagscale.store.registry.paging import Wanted, decoded, encoded
from lagscale.store.registry.session import RegistryDatabase, Row, Scope, TenantWork
from services.api.freezes.freezing import frozen_answer, frozen_of
from services.api.monitors.policies import policy_of
from services.api.schemas import Listing
from services.api.serializers import state_of
from services.api.verdicts import schemas as out

_NO_TOPIC = 1
#: The state of a monitor that means more topics than it may measure.
_TOO_MANY = "too_many_topics"
_FLAGS = (Flag.UNCOMMITTED, Flag.LOST, Flag.RESET, Flag.REWIND, Flag.BORN)
_EVERY_CLUSTER = 500


class Verdicts(Protocol):
    """The part of the verdict's store that is used here."""

    async def judge(self, asks: Sequence[Ask], *, evidence: bool = False) -> list[Judgement]: ...

    async def hold(self, ask: Ask, judgement: Judgement) -> Told | None: ...


class Evidence:
    """Answers what was seen. Each monitor and target is looked for behind the tenant's wall first."""

    def __init__(self, database: RegistryDatabase, verdicts: Verdicts) -> None:
        """Take the registry, and the verdicts in the scaler's role.

        That role sees every tenant's samples, because it judges many tenants in one statement; so only targets that
        were just found behind the caller's wall are asked for, and the statement names their tenant again.
        """
        self._database = database
        self._verdicts = verdicts

    @property
    def verdicts(self) -> Verdicts:
        """The verdicts that it asks, for what else is judged in the same way."""
        return self._verdicts

    async def verdict(self, scope: Scope, tenant: str, name: str) -> out.VerdictOut:
        """The verdict of now, and what KEDA is told."""
        async with self._database.tenant(scope, tenant) as work:
            row = await monitors.named(work, name)
            targets = await monitors.targets(work, row["id"])
            present = await freezes.covering(work, row, await history.clock(work))
            kept = await freezes.answer(work, present, row["id"]) if present else None
        policy = policy_of(row, int(work.tenant["min_sampling_seconds"]))
        topics = {int(target["id"]): str(target["topic"]) for target in targets}
        ask = Ask(work.tenant_id, tuple(sorted(topics)), policy)
        judgement = (await self._verdicts.judge([ask], evidence=True))[0]
        partial = row["scope_message"] if row["scope_code"] == _TOO_MANY else ""
        if partial:
            judgement = by_a_part(judgement, policy)
        known = judgement.value is not None or partial
        answer = told(judgement, policy, None if known else await self._verdicts.hold(ask, judgement))
        frozen = None
        if present:
            answer = None if partial else await frozen_answer(self._verdicts, ask, present, kept)
            frozen = frozen_of(present, answer)
        return out.VerdictOut(
            monitor=name,
            verdict=judgement.verdict.value,
            reason=judgement.reason.value,
            sentence=_sentence(judgement, policy, topics, partial),
            value=judgement.value,
            active=judgement.active,
            judged_at=_instant(judgement.now_ms),
            newest_at=None if judgement.at_ms is None else _instant(judgement.at_ms),
            total=judgement.known_total,
            partitions=judgement.partitions,
            missing=judgement.missing,
            members=judgement.members,
            wakes=judgement.wakes,
            island=None if judgement.island is None else _island(judgement.island, topics),
            absent_topics=[topics[target] for target in judgement.absent if target in topics],
            told=None if answer is None else _told(answer),
            answer=answer_sentence(judgement, policy, answer) if frozen is None else frozen.sentence,
            frozen=frozen,
            policy=resolved(policy),
        )

    async def samples(
        self, scope: Scope, tenant: str, name: str, span: Span, cursor: str | None
    ) -> Listing[out.RoundOut]:
        """Rounds of the monitor's targets, the newest first."""
        if cursor is not None:
            span = Span(span.limit, span.begin, span.end, _position(cursor))
        async with self._database.tenant(scope, tenant) as work:
            row = await monitors.named(work, name)
            targets = await monitors.targets(work, row["id"])
            rows = await observations.samples(work, [target["id"] for target in targets], span)
        topics = {int(target["id"]): str(target["topic"]) for target in targets}
        shown = rows[: span.limit]
        more = encoded([shown[-1]["ts"].isoformat(), str(shown[-1]["target_id"])]) if len(rows) > span.limit else None
        return Listing(items=[_round(sample, topics[sample["target_id"]]) for sample in shown], next=more)

    async def monitor_health(self, scope: Scope, tenant: str, name: str) -> out.MonitorHealth:
        """States and newest samples of a monitor's cluster and targets."""
        async with self._database.tenant(scope, tenant) as work:
            row = await monitors.named(work, name)
            cluster = await clusters.named(work, row["cluster"])
            targets = await observations.target_states(work, row["id"])
        return out.MonitorHealth(
            monitor=name,
            cluster_state=state_of(cluster, "state_"),
            scope=state_of(row, "scope_"),
            targets=[_target(target) for target in targets],
        )

    async def tenant_health(self, scope: Scope, tenant: str) -> out.TenantHealth:
        """All clusters of the tenant, with their targets counted by state."""
        async with self._database.tenant(scope, tenant) as work:
            rows = await _every_cluster(work)
            targets = await observations.target_states(work)
        found = [_cluster(row, [target for target in targets if target["cluster"] == row["name"]]) for row in rows]
        fine = all(
            (cluster.state is None or cluster.state.code == "ok") and set(cluster.targets_by_code) <= {"ok"}
            for cluster in found
        )
        return out.TenantHealth(tenant=tenant, ok=fine, clusters=found)


async def _every_cluster(work: TenantWork) -> list[Row]:
    rows: list[Row] = []
    wanted = Wanted(_EVERY_CLUSTER)
    while True:
        found = await clusters.listed(work, wanted)
        rows.extend(found.rows)
        if found.after is None:
            return rows
        wanted = Wanted(_EVERY_CLUSTER, found.after)


def _sentence(judgement: Judgement, policy: Policy, topics: dict[int, str], partial: str) -> str:
    if not partial:
        return sentence(judgement, policy, topics)
    # Of a part only what lasted is worth telling.
    return partial if judgement.value is None else f"{sentence(judgement, policy, topics)} {partial}"


def _instant(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _island(island: Island, topics: dict[int, str]) -> out.IslandOut:
    return out.IslandOut(
        topic=None if island.target_id is None else topics.get(island.target_id),
        partition=island.partition,
        lag=island.lag,
        since=_instant(island.since_ms),
        span_seconds=island.span_ms / 1000,
        bounded=island.bounded,
    )


def _told(answer: Told) -> out.ToldOut:
    since = answer.held_since_ms
    return out.ToldOut(
        value=answer.value,
        active=answer.active,
        held=since is not None,
        held_since=None if since is None else _instant(since),
    )


def _round(row: Row, topic: str) -> out.RoundOut:
    measured: list[out.PartitionOut] = []
    missing: list[int] = []
    for number, lag in enumerate(row["lags"]):
        flags = Flag(row["flags"][number] or 0) if row["flags"] else Flag(0)
        if Flag.OUTSIDE in flags:
            continue
        if lag is None:
            missing.append(number)
            continue
        end = row["ends"][number]
        measured.append(
            out.PartitionOut(
                partition=number,
                lag=lag,
                end_offset=end,
                position=end - lag,
                flags=[str(flag.name).lower() for flag in _FLAGS if flag in flags],
                lost=(row["lost"][number] or 0) if row["lost"] else 0,
            )
        )
    known = row["members"] is not None and (row["members_age"] or 0) <= MEMBERS_KNOWN_MS
    return out.RoundOut(
        at=row["ts"],
        topic=topic,
        partitions=measured,
        missing=missing,
        members=row["members"] if known else None,
        topic_exists=not row["notes"] & _NO_TOPIC,
    )


def _position(cursor: str) -> tuple[datetime, int]:
    when, target = decoded(cursor, 2)
    try:
        return datetime.fromisoformat(when), int(target)
    except ValueError:
        raise InvalidInput([Fault("cursor", "is no cursor of this listing; leave it out to begin anew")]) from None


def _target(row: Row) -> out.TargetHealth:
    return out.TargetHealth(
        cluster=row["cluster"],
        consumer_group=row["consumer_group"],
        topic=row["topic"],
        state=state_of(row, ""),
        newest_sample_at=row["newest_at"],
        newest_sample_age_seconds=_age(row),
    )


def _age(row: Row) -> float | None:
    newest: datetime | None = row["newest_at"]
    return None if newest is None else max(0.0, round((row["present"] - newest).total_seconds(), 3))


def _cluster(row: Row, targets: Sequence[Row]) -> out.ClusterHealth:
    ages = [_age(target) for target in targets]
    known = [age for age in ages if age is not None]
    return out.ClusterHealth(
        cluster=row["name"],
        state=state_of(row, "state_"),
        targets=len(targets),
        targets_by_code=dict(Counter(str(target["code"] or "not_asked") for target in targets)),
        newest_sample_age_seconds=min(known, default=None),
        oldest_newest_sample_age_seconds=max(known) if known and len(known) == len(ages) else None,
    )
