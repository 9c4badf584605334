"""Freezes of a tenant, of its clusters and of its monitors: begun, prolonged, ended, listed.

An ended freeze is as if it were not there; its row is removed by the tenant's next change, and the audit remembers it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from lagscale.domain.verdict.contract import Told
from lagscale.domain.verdict.freezes import LONGEST_MS, Freeze
from lagscale.errors import Fault, InvalidInput, NotFound
from lagscale.store.registry import audit
from lagscale.store.registry.freeze_tables import freeze, frozen_answer
from lagscale.store.registry.history import clock, milliseconds
from lagscale.store.registry.paging import Page, Wanted, page
from lagscale.store.registry.session import Row, TenantWork
from lagscale.store.registry.tables import cluster, monitor
from lagscale.store.registry.versions import Outcome, present

TENANT, CLUSTER, MONITOR = "tenant", "cluster", "monitor"


@dataclass(frozen=True, slots=True)
class Thing:
    """What a freeze is of; `name` is empty for the whole tenant."""

    kind: str
    name: str = ""


async def listed(work: TenantWork, wanted: Wanted) -> Page:
    """The tenant's freezes that have not ended, by what they are of."""
    return await page(work, _shown(), ["kind", "name"], wanted)


async def named(work: TenantWork, thing: Thing) -> Row:
    """The freeze of a thing.

    Raises:
        NotFound: there is no such thing, or it is not frozen itself.
    """
    await _identify(work, thing)
    return present(await work.find(_of(thing)))


async def put(work: TenantWork, thing: Thing, *, reason: str, until: datetime | timedelta) -> Outcome:
    """Freeze a thing, or give the freeze that it has another end and reason; its beginning stays, and its answers.

    Args:
        work: with the tenant's lock.
        thing: what is frozen.
        reason: shown to whoever asks why.
        until: an instant, or how long from now on, by the database's clock.

    Raises:
        NotFound: there is no such thing.
        InvalidInput: it would end in the past, or too late.
    """
    columns = await _identify(work, thing)
    now = await clock(work)
    end = now + until if isinstance(until, timedelta) else until
    if not now < end <= now + timedelta(milliseconds=LONGEST_MS):
        days = LONGEST_MS // 86_400_000
        text = f"must lie in the future, within {days} days; the database's clock says {now.isoformat('T', 'seconds')}"
        raise InvalidInput([Fault("until", text)])
    before = await work.find(_of(thing))
    wanted = {"reason": reason, "until": end, "actor": work.actor}
    if before is None:
        await work.run(sa.delete(freeze).where(freeze.c.until <= now))
        await work.run(sa.insert(freeze).values(tenant_id=work.tenant_id, since=now, **columns, **wanted))
    elif (before["reason"], before["until"]) == (reason, end):
        return Outcome(before)
    else:
        await work.run(sa.update(freeze).where(freeze.c.id == before["id"]).values(**wanted))
    after = present(await work.find(_of(thing)))
    await audit.record(work, f"{thing.kind}.freeze", _object(work, thing), _facts(before), _facts(after))
    return Outcome(after, created=before is None, changed=True)


async def remove(work: TenantWork, thing: Thing) -> None:
    """End the freeze of a thing now; freezes of others that cover it go on.

    Raises:
        NotFound: there is no such thing, or it is not frozen itself.
    """
    before = await named(work, thing)
    await work.run(sa.delete(freeze).where(freeze.c.id == before["id"]))
    await audit.record(work, f"{thing.kind}.unfreeze", _object(work, thing), _facts(before), None)


async def covering(work: TenantWork, monitor_row: Row, at: datetime) -> list[Freeze]:
    """Every freeze that a monitor was under at an instant, as far as they have not ended since; the oldest first."""
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
            milliseconds(row["since"]),
            milliseconds(row["until"]),
            row["reason"],
        )
        for row in await work.every(statement)
    ]


async def answer(work: TenantWork, freezes: Sequence[Freeze], monitor_id: int) -> tuple[Told | None] | None:
    """What the monitor keeps under one of these freezes, by its own registration; None while KEDA has not asked.

    A freeze without anything to hold keeps (None,).
    """
    kept = frozen_answer.c.freeze_id.in_([one.freeze_id for one in freezes])
    statement = sa.select(frozen_answer).where(kept, frozen_answer.c.monitor_id == monitor_id)
    statement = statement.where(frozen_answer.c.overrides == "").order_by(frozen_answer.c.since)
    row = await work.find(statement.limit(1))
    if row is None:
        return None
    known = row["known_at"]
    return (None if known is None else Told(row["value"], row["active"], milliseconds(known)),)


def _shown() -> sa.Select[Any]:
    """Freezes that have not ended, with what they are of; what is deleted meanwhile is not frozen any more."""
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


def _of(thing: Thing) -> sa.Select[Any]:
    shown = _shown()
    if thing.kind == MONITOR:
        return shown.where(freeze.c.monitor_id.is_not(None), monitor.c.name == thing.name)
    if thing.kind == CLUSTER:
        return shown.where(freeze.c.cluster_id.is_not(None), cluster.c.name == thing.name)
    return shown.where(freeze.c.monitor_id.is_(None), freeze.c.cluster_id.is_(None))


async def _identify(work: TenantWork, thing: Thing) -> dict[str, int]:
    """The column that names the thing.

    Raises:
        NotFound: there is no such thing.
    """
    if thing.kind == TENANT:
        return {}
    if thing.kind == MONITOR:
        statement = sa.select(monitor.c.id).where(monitor.c.name == thing.name, monitor.c.deleted_at.is_(None))
    elif thing.kind == CLUSTER:
        statement = sa.select(cluster.c.id).where(cluster.c.name == thing.name)
    else:
        raise NotFound
    # Kept until the end, so that it is not removed under its freeze.
    row = present(await work.find(statement.with_for_update(read=True, key_share=True)))
    return {f"{thing.kind}_id": int(row["id"])}


def _object(work: TenantWork, thing: Thing) -> str:
    return f"{thing.kind}/{thing.name or work.tenant['name']}"


def _facts(row: Row | None) -> dict[str, Any] | None:
    return None if row is None else {name: row[name] for name in ("reason", "since", "until")}
