"""Freezes of a tenant, of its clusters and of its monitors.

A freeze that has ended is ignored; the tenant's next freeze removes its row, and the audit log has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from lagscale.clock import to_ms
from lagscale.domain.verdict.contract import Answer
from lagscale.domain.verdict.freezes import MAX_FREEZE_MS, Freeze
from lagscale.errors import InvalidInput, NotFound
from lagscale.store.registry import audit
from lagscale.store.registry.history import read_clock
from lagscale.store.registry.paging import Page, PageRequest, read_page
from lagscale.store.registry.session import Row, TenantSession, WriteResult
from lagscale.store.registry.tables import cluster, freeze, frozen_answer, monitor

TENANT, CLUSTER, MONITOR = "tenant", "cluster", "monitor"
_TABLES = {CLUSTER: cluster, MONITOR: monitor}


@dataclass(frozen=True, slots=True)
class FreezeSubject:
    """The frozen object; `name` is empty for the whole tenant."""

    kind: str
    name: str = ""


async def list_page(session: TenantSession, page_request: PageRequest) -> Page:
    """The tenant's freezes that have not ended, by kind and name."""
    return await read_page(session, _select_freezes(), ["kind", "name"], page_request)


async def read_by_name(session: TenantSession, subject: FreezeSubject) -> Row:
    """The freeze of an object.

    Raises:
        NotFound: there is no such object, or it is not frozen itself.
    """
    await _identify(session, subject)
    return await session.fetch_existing(_select_freeze(subject))


async def put(
    session: TenantSession, subject: FreezeSubject, *, reason: str, until: datetime | timedelta
) -> WriteResult:
    """Freeze an object, or change end and reason of its freeze; the beginning stays, and so do the answers.

    The session has the tenant's lock. `reason` is shown with the freeze and in explanations. `until` is an instant, or
    a duration from now on, by the database's clock.

    Raises:
        NotFound: there is no such object.
        InvalidInput: it would end in the past, or too late.
    """
    columns = await _identify(session, subject)
    now = await read_clock(session)
    end = now + until if isinstance(until, timedelta) else until
    if not now < end <= now + timedelta(milliseconds=MAX_FREEZE_MS):
        days = MAX_FREEZE_MS // 86_400_000
        text = f"must be in the future, within {days} days; the database's clock says {now.isoformat('T', 'seconds')}"
        raise InvalidInput.of("until", text)
    before = await session.fetch_optional(_select_freeze(subject))
    values = {"reason": reason, "until": end, "actor": session.actor}
    if before is None:
        await session.execute(sa.delete(freeze).where(freeze.c.until <= now))
        await session.execute(sa.insert(freeze).values(tenant_id=session.tenant_id, since=now, **columns, **values))
    elif (before["reason"], before["until"]) == (reason, end):
        return WriteResult(before)
    else:
        await session.execute(sa.update(freeze).where(freeze.c.id == before["id"]).values(**values))
    after = await session.fetch_existing(_select_freeze(subject))
    await audit.record(
        session, f"{subject.kind}.freeze", _audit_name(session, subject), _audit_values(before), _audit_values(after)
    )
    return WriteResult(after, created=before is None, changed=True)


async def remove(session: TenantSession, subject: FreezeSubject) -> None:
    """End the freeze of an object now; other freezes that cover it continue.

    Raises:
        NotFound: there is no such object, or it is not frozen itself.
    """
    before = await read_by_name(session, subject)
    await session.execute(sa.delete(freeze).where(freeze.c.id == before["id"]))
    await audit.record(session, f"{subject.kind}.unfreeze", _audit_name(session, subject), _audit_values(before), None)


async def read_covering(session: TenantSession, monitor_row: Row, at: datetime) -> list[Freeze]:
    """The freezes that covered a monitor at an instant and have not been removed since, the oldest first."""
    mine = sa.or_(
        sa.and_(freeze.c.cluster_id.is_(None), freeze.c.monitor_id.is_(None)),
        freeze.c.cluster_id == monitor_row["cluster_id"],
        freeze.c.monitor_id == monitor_row["id"],
    )
    within = sa.and_(freeze.c.since <= at, freeze.c.until > at)
    statement = sa.select(freeze, cluster.c.name.label("cluster")).outerjoin(
        cluster, cluster.c.id == freeze.c.cluster_id
    )
    statement = statement.where(mine, within).order_by(freeze.c.since, freeze.c.id)
    return [
        Freeze(
            str(row["id"]),
            row["tenant_id"],
            row["cluster"],
            row["monitor_id"],
            to_ms(row["since"]),
            to_ms(row["until"]),
            row["reason"],
        )
        for row in await session.fetch_all(statement)
    ]


async def read_frozen_answer(
    session: TenantSession, freezes: Sequence[Freeze], monitor_id: int
) -> tuple[Answer | None] | None:
    """The monitor's stored answer for one of these freezes, by its own registration; None before KEDA's first request.

    (None,) where there was no last-known answer to freeze.
    """
    under_freezes = frozen_answer.c.freeze_id.in_([one.freeze_id for one in freezes])
    statement = sa.select(frozen_answer).where(under_freezes, frozen_answer.c.monitor_id == monitor_id)
    statement = statement.where(frozen_answer.c.overrides == "").order_by(frozen_answer.c.since)
    row = await session.fetch_optional(statement.limit(1))
    if row is None:
        return None
    last_known_at = row["known_at"]
    return (None if last_known_at is None else Answer(row["value"], row["active"], to_ms(last_known_at)),)


def _select_freezes() -> sa.Select[Any]:
    """Freezes that have not ended, with kind and name of their objects; a deleted object is not frozen."""
    kind = sa.case(
        (freeze.c.monitor_id.is_not(None), MONITOR), (freeze.c.cluster_id.is_not(None), CLUSTER), else_=TENANT
    )
    name = sa.func.coalesce(monitor.c.name, cluster.c.name, "")
    return (
        sa.select(freeze, kind.label("kind"), name.label("name"))
        .outerjoin(monitor, monitor.c.id == freeze.c.monitor_id)
        .outerjoin(cluster, cluster.c.id == freeze.c.cluster_id)
        .where(freeze.c.until > sa.func.clock_timestamp(), monitor.c.deleted_at.is_(None))
    )


def _select_freeze(subject: FreezeSubject) -> sa.Select[Any]:
    if subject.kind == TENANT:
        return _select_freezes().where(freeze.c.monitor_id.is_(None), freeze.c.cluster_id.is_(None))
    return _select_freezes().where(_TABLES[subject.kind].c.name == subject.name)


async def _identify(session: TenantSession, subject: FreezeSubject) -> dict[str, int]:
    """The column that identifies the object.

    Raises:
        NotFound: there is no such object.
    """
    if subject.kind == TENANT:
        return {}
    table = _TABLES.get(subject.kind)
    if table is None:
        raise NotFound
    statement = sa.select(table.c.id).where(table.c.name == subject.name)
    if table is monitor:
        statement = statement.where(monitor.c.deleted_at.is_(None))
    # Locked until the end, so that it is not deleted while it is being frozen.
    row = await session.fetch_existing(statement.with_for_update(read=True, key_share=True))
    return {f"{subject.kind}_id": int(row["id"])}


def _audit_name(session: TenantSession, subject: FreezeSubject) -> str:
    return f"{subject.kind}/{subject.name or session.tenant['name']}"


def _audit_values(row: Row | None) -> dict[str, Any] | None:
    return None if row is None else {name: row[name] for name in ("reason", "since", "until")}
