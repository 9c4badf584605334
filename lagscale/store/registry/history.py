"""What was at a moment of the past: a monitor's registration, its targets, its samples, and what KEDA was told.

Read behind the tenant's wall; deleted monitors are found as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from lagscale.domain.explain.decision_diff import Record
from lagscale.domain.lag import rounds as markers
from lagscale.errors import NotFound
from lagscale.store.registry.session import Row, TenantWork
from lagscale.store.registry.tables import (
    audit_event,
    decision,
    lag_target,
    monitor,
    monitor_scope,
    monitor_target_span,
    monitor_version,
    samples_kept,
)
from lagscale.store.registry.tables import tenant_lag_sample as sample
from lagscale.store.samples.columns import instant, read_row

#: How long decisions are kept: `tidy_registry` removes older ones.
DECISIONS_KEPT = timedelta(days=14)
_VERSIONS = 500
#: What the audit calls it when a monitor goes, and when it comes back.
_GONE = ("monitor.delete", "monitor.expire")
_BACK = "monitor.restore"


@dataclass(frozen=True, slots=True)
class Version:
    """A policy from an instant on; the keys as given."""

    version: int
    valid_from: datetime
    given: dict[str, str]


@dataclass(frozen=True, slots=True)
class Link:
    """A monitor measured a target from an instant on, and until another; None while it does."""

    target_id: int
    topic: str
    since_ms: int
    until_ms: int | None


@dataclass(frozen=True, slots=True)
class Step:
    """Lag within one step of a course, messages: of a target's partitions together, and of the one with most."""

    begin: datetime
    target_id: int
    total: int
    greatest: int
    least: int


async def clock(work: TenantWork) -> datetime:
    """The database's clock."""
    found: datetime = (await work.run(sa.select(sa.func.clock_timestamp()))).scalar_one()
    return found


async def monitors_named(work: TenantWork, name: str) -> list[Row]:
    """Every monitor that has or had this name, the newest first.

    Raises:
        NotFound: none had it, as far as is remembered.
    """
    statement = sa.select(monitor).where(monitor.c.name == name).order_by(monitor.c.created_at.desc(), monitor.c.id)
    found = await work.every(statement)
    if not found:
        raise NotFound
    return found


async def versions(work: TenantWork, monitor_id: int) -> list[Version]:
    """The newest versions of the monitor's policy, the oldest of them first."""
    mine = sa.select(monitor_version).where(monitor_version.c.monitor_id == monitor_id)
    rows = await work.every(mine.order_by(monitor_version.c.version.desc()).limit(_VERSIONS))
    return [
        Version(row["version"], row["valid_from"], {str(name): str(text) for name, text in row["policy"].items()})
        for row in reversed(rows)
    ]


async def links(work: TenantWork, monitor_id: int) -> list[Link]:
    """What the monitor ever measured, as far as is remembered, by topic."""
    span = monitor_target_span
    statement = (
        sa.select(lag_target.c.id, lag_target.c.topic, span.c.since, span.c.until)
        .join(span, span.c.target_id == lag_target.c.id)
        .where(span.c.monitor_id == monitor_id)
        .order_by(lag_target.c.topic, lag_target.c.id)
    )
    return [
        Link(row["id"], row["topic"], milliseconds(row["since"]), row["until"] and milliseconds(row["until"]))
        for row in await work.every(statement)
    ]


def linked_at(every: Sequence[Link], at_ms: int) -> dict[int, str]:
    """Target id -> topic of what was measured at an instant."""
    return {
        link.target_id: link.topic
        for link in every
        if link.since_ms <= at_ms and (link.until_ms is None or link.until_ms > at_ms)
    }


async def gone_since(work: TenantWork, row: Row, until: datetime) -> datetime | None:
    """Since when a monitor that was restored later was deleted at an instant; None when it was there."""
    told = sa.select(audit_event.c.at, audit_event.c.action).where(
        audit_event.c.object == f"monitor/{row['name']}",
        audit_event.c.action.in_([*_GONE, _BACK]),
        audit_event.c.at >= row["created_at"],
        audit_event.c.at <= until,
    )
    newest = await work.find(told.order_by(audit_event.c.at.desc()).limit(1))
    return newest["at"] if newest is not None and newest["action"] in _GONE else None


async def partial_since(work: TenantWork, monitor_id: int) -> tuple[datetime, str] | None:
    """Since when only a part of the monitor's topics is measured, and why; None when all are."""
    statement = sa.select(monitor_scope.c.since, monitor_scope.c.message).join(
        monitor, monitor.c.id == monitor_scope.c.monitor_id
    )
    looked_up = sa.and_(monitor.c.topics.is_(None), monitor_scope.c.code == "too_many_topics")
    row = await work.find(statement.where(monitor_scope.c.monitor_id == monitor_id, looked_up))
    return None if row is None else (row["since"], row["message"])


async def samples_since(work: TenantWork) -> datetime | None:
    """Samples from here on are all kept; None while none was ever dropped."""
    found: datetime | None = (await work.run(sa.select(samples_kept.c.kept_since))).scalar_one()
    return found


async def newest_rows(work: TenantWork, target_ids: Sequence[int], until: datetime) -> dict[int, markers.Row]:
    """Of each target that has one the newest row at an instant."""
    found = {}
    for target in target_ids:
        statement = _rows().where(sample.c.target_id == target, sample.c.ts <= until)
        for row in await work.every(statement.order_by(sample.c.ts.desc()).limit(1)):
            found[target] = read_row(row)
    return found


async def rounds(
    work: TenantWork, target_ids: Sequence[int], since: datetime, until: datetime, most: int
) -> dict[int, list[markers.TargetRound]] | None:
    """The rounds of a span, and of each target the last one before it; None where they are more than `most`."""
    found: dict[int, list[markers.TargetRound]] = {target: [] for target in target_ids}
    mine = _rows().where(sample.c.target_id.in_(list(target_ids)))
    within = mine.where(sample.c.ts >= since, sample.c.ts <= until).order_by(sample.c.ts)
    rows = await work.every(within.limit(most + 1))
    if len(rows) > most:
        return None
    before = await newest_rows(work, target_ids, since - timedelta(microseconds=1))
    for target, row in before.items():
        found[target].append(row.round)
    for columns in rows:
        found[columns["target_id"]].append(read_row(columns).round)
    return found


async def course(
    work: TenantWork, target_ids: Sequence[int], since: datetime, until: datetime, *, steps: int, earliest: bool
) -> list[Step]:
    """How lag went in a span, in at most so many steps for each target; uncommitted partitions as the policy reads."""
    width = max((until - since) / steps, timedelta(seconds=1))
    begin = sa.func.date_bin(width, sample.c.ts, since)
    total: sa.ColumnElement[int] = sample.c.total_lag
    greatest: sa.ColumnElement[int] = sample.c.max_lag
    if earliest:
        total, greatest = total + sample.c.none_total, sa.func.greatest(greatest, sample.c.none_max)
    statement = (
        sa.select(
            sa.func.max(sample.c.ts).label("begin"),
            sample.c.target_id,
            sa.func.max(total).label("total"),
            sa.func.max(greatest).label("greatest"),
            sa.func.min(greatest).label("least"),
        )
        .where(sample.c.target_id.in_(list(target_ids)), sample.c.ts >= since, sample.c.ts <= until)
        .group_by(begin, sample.c.target_id)
        .order_by(sa.text("begin"))
    )
    return [Step(**row) for row in await work.every(statement)]


async def told_newest(work: TenantWork, monitor_id: int, until: datetime, since: datetime) -> list[Record]:
    """Of each replica, and of each kind of trigger that it answers, the newest decision of a span."""
    askers = (decision.c.replica, decision.c.overrides)
    place = sa.func.row_number().over(partition_by=askers, order_by=decision.c.told_at.desc())
    ranked = _told(monitor_id, since, until).add_columns(place.label("place")).subquery()
    statement = sa.select(ranked).where(ranked.c.place == 1).order_by(ranked.c.replica, ranked.c.told_at)
    return [_record(row) for row in await work.every(statement)]


async def told_between(work: TenantWork, monitor_id: int, since: datetime, until: datetime, limit: int) -> list[Record]:
    """The decisions of a span, the newest first."""
    statement = _told(monitor_id, since, until).order_by(decision.c.told_at.desc(), decision.c.replica).limit(limit)
    return [_record(row) for row in await work.every(statement)]


def _told(monitor_id: int, since: datetime, until: datetime) -> sa.Select[Any]:
    statement = sa.select(decision).where(decision.c.monitor_id == monitor_id)
    return statement.where(decision.c.told_at >= since, decision.c.told_at <= until)


def _rows() -> sa.Select[Any]:
    at_ms = sa.cast(sa.func.extract("epoch", sample.c.ts) * 1000, sa.BigInteger).label("at_ms")
    return sa.select(sample, at_ms)


def _record(row: Row) -> Record:
    snapshot: datetime | None = row["snapshot_at"]
    return Record(
        replica=row["replica"],
        told_ms=milliseconds(row["told_at"]),
        snapshot_ms=None if snapshot is None else milliseconds(snapshot),
        verdict=row["verdict"],
        value=row["value"],
        active=row["active"],
        held=row["held"],
        reason=row["reason"],
        code=row["code"],
        version=row["version"],
        overrides=row["overrides"],
    )


def milliseconds(moment: datetime) -> int:
    """Whole milliseconds since 1970."""
    return (moment - instant(0)) // timedelta(milliseconds=1)
