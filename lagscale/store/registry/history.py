"""A tenant's history: registrations of monitors, states of targets, samples, and decisions; deleted monitors included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from lagscale.clock import to_ms
from lagscale.domain.explain.decision_diff import RecordedDecision
from lagscale.domain.lag.rounds import SampleRow, TargetRound
from lagscale.domain.state_codes import StateCode
from lagscale.errors import NotFound
from lagscale.store.registry.session import RegistrySession, Row, TenantSession
from lagscale.store.registry.tables import (
    audit_event,
    cluster,
    decision,
    lag_target,
    monitor,
    monitor_scope,
    monitor_target,
    monitor_target_span,
    monitor_version,
    samples_kept,
    target_state,
)
from lagscale.store.registry.tables import tenant_lag_sample as sample
from lagscale.store.samples.columns import read_row

#: Retention of decisions: `tidy_registry` removes older ones.
DECISION_RETENTION = timedelta(days=14)
_MAX_VERSIONS = 500
_MICROSECOND = timedelta(microseconds=1)
#: Audit actions that delete and restore a monitor.
_DELETED_ACTIONS = ("monitor.delete", "monitor.expire")
_RESTORED_ACTION = "monitor.restore"


@dataclass(frozen=True, slots=True)
class PolicyVersion:
    """A version of a policy, valid from an instant on; the keys as given."""

    version: int
    valid_from: datetime
    given: dict[str, str]


@dataclass(frozen=True, slots=True)
class TargetLink:
    """A monitor measured a target from one instant until another; None while it still does."""

    target_id: int
    topic: str
    since_ms: int
    until_ms: int | None


@dataclass(frozen=True, slots=True)
class LagStep:
    """Lag within one step of a series, in messages: of a target's partitions together, and of the one with the highest."""

    begin: datetime
    target_id: int
    total: int
    highest: int
    lowest: int


@dataclass(frozen=True, slots=True)
class SampleRange:
    """Which samples: at most `limit` rounds in [begin, end), the newest first, from just after a position on.

    `after` is (time, target id) of the last round of the page before.
    """

    limit: int
    begin: datetime | None = None
    end: datetime | None = None
    after: tuple[datetime, int] | None = None


async def read_clock(session: RegistrySession) -> datetime:
    """The database's clock."""
    found: datetime = (await session.execute(sa.select(sa.func.clock_timestamp()))).scalar_one()
    return found


async def read_monitors_by_name(session: TenantSession, name: str) -> list[Row]:
    """Every monitor that has or had this name, the newest first.

    Raises:
        NotFound: none had it within retention.
    """
    statement = sa.select(monitor).where(monitor.c.name == name).order_by(monitor.c.created_at.desc(), monitor.c.id)
    found = await session.fetch_all(statement)
    if not found:
        raise NotFound
    return found


async def read_policy_versions(session: TenantSession, monitor_id: int) -> list[PolicyVersion]:
    """The newest versions of the monitor's policy, the oldest of them first."""
    mine = sa.select(monitor_version).where(monitor_version.c.monitor_id == monitor_id)
    rows = await session.fetch_all(mine.order_by(monitor_version.c.version.desc()).limit(_MAX_VERSIONS))
    return [
        PolicyVersion(row["version"], row["valid_from"], {str(name): str(text) for name, text in row["policy"].items()})
        for row in reversed(rows)
    ]


async def read_target_links(session: TenantSession, monitor_id: int) -> list[TargetLink]:
    """The targets that the monitor measured within retention, by topic."""
    span = monitor_target_span
    statement = (
        sa.select(lag_target.c.id, lag_target.c.topic, span.c.since, span.c.until)
        .join(span, span.c.target_id == lag_target.c.id)
        .where(span.c.monitor_id == monitor_id)
        .order_by(lag_target.c.topic, lag_target.c.id)
    )
    return [
        TargetLink(row["id"], row["topic"], to_ms(row["since"]), row["until"] and to_ms(row["until"]))
        for row in await session.fetch_all(statement)
    ]


def find_linked_topics(every: Sequence[TargetLink], at_ms: int) -> dict[int, str]:
    """Target id -> topic, of the targets measured at an instant."""
    return {
        link.target_id: link.topic
        for link in every
        if link.since_ms <= at_ms and (link.until_ms is None or link.until_ms > at_ms)
    }


async def find_deleted_since(session: TenantSession, row: Row, until: datetime) -> datetime | None:
    """Since when a monitor, restored later, was deleted at an instant; None when it existed."""
    events = sa.select(audit_event.c.at, audit_event.c.action).where(
        audit_event.c.object == f"monitor/{row['name']}",
        audit_event.c.action.in_([*_DELETED_ACTIONS, _RESTORED_ACTION]),
        audit_event.c.at >= row["created_at"],
        audit_event.c.at <= until,
    )
    newest = await session.fetch_optional(events.order_by(audit_event.c.at.desc()).limit(1))
    return newest["at"] if newest is not None and newest["action"] in _DELETED_ACTIONS else None


async def find_partial_since(session: TenantSession, monitor_id: int) -> tuple[datetime, str] | None:
    """Since when only a part of the monitor's topics is measured, and why; None when all are."""
    statement = sa.select(monitor_scope.c.since, monitor_scope.c.message).join(
        monitor, monitor.c.id == monitor_scope.c.monitor_id
    )
    looked_up = sa.and_(monitor.c.topics.is_(None), monitor_scope.c.code == StateCode.TOO_MANY_TOPICS)
    row = await session.fetch_optional(statement.where(monitor_scope.c.monitor_id == monitor_id, looked_up))
    return None if row is None else (row["since"], row["message"])


async def read_samples_since(session: TenantSession) -> datetime | None:
    """All samples from this instant on are stored; None while none was ever dropped."""
    found: datetime | None = (await session.execute(sa.select(samples_kept.c.kept_since))).scalar_one()
    return found


async def read_newest_rows(session: TenantSession, target_ids: Sequence[int], until: datetime) -> dict[int, SampleRow]:
    """Of each target that has one the newest row at an instant."""
    found = {}
    for target in target_ids:
        statement = _select_rows().where(sample.c.target_id == target, sample.c.ts <= until)
        for row in await session.fetch_all(statement.order_by(sample.c.ts.desc()).limit(1)):
            found[target] = read_row(row)
    return found


async def read_rounds(
    session: TenantSession, target_ids: Sequence[int], since: datetime, until: datetime, most: int
) -> dict[int, list[TargetRound]] | None:
    """The rounds of a span, and the last one before it of each target; None if they are more than `most`."""
    found: dict[int, list[TargetRound]] = {target: [] for target in target_ids}
    mine = _select_rows().where(sample.c.target_id.in_(list(target_ids)))
    within = mine.where(sample.c.ts >= since, sample.c.ts <= until).order_by(sample.c.ts)
    rows = await session.fetch_all(within.limit(most + 1))
    if len(rows) > most:
        return None
    before = await read_newest_rows(session, target_ids, since - _MICROSECOND)
    for target, row in before.items():
        found[target].append(row.round)
    for columns in rows:
        found[columns["target_id"]].append(read_row(columns).round)
    return found


async def read_lag_series(
    session: TenantSession, target_ids: Sequence[int], since: datetime, until: datetime, *, steps: int, earliest: bool
) -> list[LagStep]:
    """Lag in a span, in at most `steps` steps for each target; `earliest` counts uncommitted partitions."""
    width = max((until - since) / steps, timedelta(seconds=1))
    begin = sa.func.date_bin(width, sample.c.ts, since)
    total: sa.ColumnElement[int] = sample.c.total_lag
    highest: sa.ColumnElement[int] = sample.c.max_lag
    if earliest:
        total, highest = total + sample.c.none_total, sa.func.greatest(highest, sample.c.none_max)
    statement = (
        sa.select(
            sa.func.max(sample.c.ts).label("begin"),
            sample.c.target_id,
            sa.func.max(total).label("total"),
            sa.func.max(highest).label("highest"),
            sa.func.min(highest).label("lowest"),
        )
        .where(sample.c.target_id.in_(list(target_ids)), sample.c.ts >= since, sample.c.ts <= until)
        .group_by(begin, sample.c.target_id)
        .order_by(sa.text("begin"))
    )
    return [LagStep(**row) for row in await session.fetch_all(statement)]


async def read_stepped_rounds(
    session: TenantSession, target_ids: Sequence[int], since: datetime, until: datetime, step: timedelta
) -> dict[int, list[TargetRound]]:
    """Target id -> the last round of each step that has one, the oldest first.

    A step ends with `since` plus a multiple of `step`, that instant included; one more step before `since` is read.
    """
    within = sa.func.date_bin(step, sample.c.ts - _MICROSECOND, since)
    place = sa.func.row_number().over(partition_by=(sample.c.target_id, within), order_by=sample.c.ts.desc())
    ranked = (
        _select_rows()
        .add_columns(place.label("place"))
        .where(sample.c.target_id.in_(list(target_ids)), sample.c.ts > since - step, sample.c.ts <= until)
        .subquery()
    )
    statement = sa.select(ranked).where(ranked.c.place == 1).order_by(ranked.c.target_id, ranked.c.ts)
    found: dict[int, list[TargetRound]] = {target: [] for target in target_ids}
    for row in await session.fetch_all(statement):
        found[row["target_id"]].append(read_row(row).round)
    return found


async def count_partitions(session: TenantSession, target_ids: Sequence[int], until: datetime) -> int:
    """Partitions of the newest rounds of these targets together."""
    newest = await read_newest_rows(session, target_ids, until)
    return sum(len(row.round.samples) for row in newest.values())


async def read_target_states(session: TenantSession, monitor_id: int | None = None) -> list[Row]:
    """Every polled target of the tenant, or of one monitor, with its state and the time of its newest sample."""
    newest = (
        sa.select(sample.c.ts, sa.func.cardinality(sample.c.lags).label("partitions"))
        .where(sample.c.target_id == lag_target.c.id)
        .order_by(sample.c.ts.desc())
        .limit(1)
        .lateral("newest")
    )
    live = sa.select(sa.literal(1)).select_from(
        monitor_target.join(monitor, monitor.c.id == monitor_target.c.monitor_id)
    )
    live = live.where(monitor_target.c.target_id == lag_target.c.id, monitor.c.deleted_at.is_(None))
    if monitor_id is not None:
        live = live.where(monitor.c.id == monitor_id)
    statement = (
        sa.select(
            lag_target.c.id,
            lag_target.c.topic,
            lag_target.c.consumer_group,
            cluster.c.name.label("cluster"),
            target_state.c.code,
            target_state.c.message,
            target_state.c.since,
            target_state.c.seen_at,
            newest.c.ts.label("newest_at"),
            newest.c.partitions,
            sa.func.clock_timestamp().label("present"),
        )
        .select_from(lag_target)
        .join(cluster, cluster.c.id == lag_target.c.cluster_id)
        .outerjoin(target_state, target_state.c.target_id == lag_target.c.id)
        .outerjoin(newest, sa.true())
        .where(live.exists())
        .order_by(cluster.c.name, lag_target.c.consumer_group, lag_target.c.topic, lag_target.c.id)
    )
    return await session.fetch_all(statement)


async def read_samples(session: TenantSession, target_ids: Sequence[int], span: SampleRange) -> list[Row]:
    """Rounds of these targets, the newest first, one more than the limit where there are more."""
    statement: sa.Select[Any] = sa.select(sample).where(sample.c.target_id.in_(list(target_ids)))
    if span.begin is not None:
        statement = statement.where(sample.c.ts >= span.begin)
    if span.end is not None:
        statement = statement.where(sample.c.ts < span.end)
    if span.after is not None:
        statement = statement.where(
            sa.tuple_(sample.c.ts, sample.c.target_id) < sa.tuple_(*map(sa.literal, span.after))
        )
    newest_first = (sample.c.ts.desc(), sample.c.target_id.desc())
    return await session.fetch_all(statement.order_by(*newest_first).limit(span.limit + 1))


async def read_newest_decisions(
    session: TenantSession, monitor_id: int, until: datetime, since: datetime
) -> list[RecordedDecision]:
    """The newest decision in a span of each replica and set of overrides."""
    askers = (decision.c.replica, decision.c.overrides)
    place = sa.func.row_number().over(partition_by=askers, order_by=decision.c.told_at.desc())
    ranked = _select_decisions(monitor_id, since, until).add_columns(place.label("place")).subquery()
    statement = sa.select(ranked).where(ranked.c.place == 1).order_by(ranked.c.replica, ranked.c.told_at)
    return [_read_decision(row) for row in await session.fetch_all(statement)]


async def read_decisions(
    session: TenantSession, monitor_id: int, since: datetime, until: datetime, limit: int
) -> list[RecordedDecision]:
    """The decisions of a span, the newest first."""
    statement = (
        _select_decisions(monitor_id, since, until).order_by(decision.c.told_at.desc(), decision.c.replica).limit(limit)
    )
    return [_read_decision(row) for row in await session.fetch_all(statement)]


def _select_decisions(monitor_id: int, since: datetime, until: datetime) -> sa.Select[Any]:
    statement = sa.select(decision).where(decision.c.monitor_id == monitor_id)
    return statement.where(decision.c.told_at >= since, decision.c.told_at <= until)


def _select_rows() -> sa.Select[Any]:
    at_ms = sa.cast(sa.func.extract("epoch", sample.c.ts) * 1000, sa.BigInteger).label("at_ms")
    return sa.select(sample, at_ms)


def _read_decision(row: Row) -> RecordedDecision:
    snapshot: datetime | None = row["snapshot_at"]
    return RecordedDecision(
        replica=row["replica"],
        decided_ms=to_ms(row["told_at"]),
        snapshot_ms=None if snapshot is None else to_ms(snapshot),
        verdict=row["verdict"],
        value=row["value"],
        active=row["active"],
        last_known=row["held"],
        reason=row["reason"],
        code=row["code"],
        version=row["version"],
        overrides=row["overrides"],
    )
