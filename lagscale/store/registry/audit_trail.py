"""Reads the audit: newest first page by page, or oldest first from end to end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from lagscale.errors import Fault, InvalidInput
from lagscale.store.registry.paging import MOST, Page, Wanted, decoded, encoded
from lagscale.store.registry.session import Row, TenantWork, Work
from lagscale.store.registry.tables import audit_event as event
from lagscale.store.registry.tables import tenant

#: At the end of a wanted text: whatever begins so.
ANYTHING = "*"
_KEYS = ("at", "id")


@dataclass(frozen=True, slots=True)
class Filter:
    """Which events; None for all. Texts must be equal, or begin so where they end in `*`.

    Attributes:
        since, until: the first instant, included, and the last, excluded.
        tenant: for the platform, whose; a tenant sees its own anyway.
    """

    actor: str | None = None
    action: str | None = None
    object: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    tenant: str | None = None


async def listed(work: Work, chosen: Filter, wanted: Wanted) -> Page:
    """One page, the newest first: of one tenant behind its wall, else of all tenants and of the platform.

    Raises:
        InvalidInput: the cursor is none of ours.
    """
    after = None if wanted.after is None else _place(wanted.after)
    limit = min(max(wanted.limit, 1), MOST)
    statement = _chosen(work, chosen)
    if after is not None:
        statement = statement.where(_position() < _literal(after))
    rows = await work.every(statement.order_by(event.c.at.desc(), event.c.id.desc()).limit(limit + 1))
    if len(rows) <= limit:
        return Page(rows, None)
    last = rows[limit - 1]
    return Page(rows[:limit], encoded([last["at"].isoformat(), str(last["id"])]))


async def following(work: Work, chosen: Filter, last: Row | None) -> Sequence[Row]:
    """The next events after `last`, the oldest first; none at the end. From the beginning without `last`."""
    statement = _chosen(work, chosen)
    if last is not None:
        statement = statement.where(_position() > _literal((last["at"], last["id"])))
    return await work.every(statement.order_by(event.c.at, event.c.id).limit(MOST))


async def clock(work: Work) -> datetime:
    """The store's present: events that are there already are older."""
    found: datetime = (await work.run(sa.select(sa.func.clock_timestamp()))).scalar_one()
    return found


def _chosen(work: Work, chosen: Filter) -> sa.Select[Any]:
    statement = sa.select(event, tenant.c.name.label("tenant")).outerjoin(tenant, tenant.c.id == event.c.tenant_id)
    if isinstance(work, TenantWork):
        statement = statement.where(event.c.tenant_id == work.tenant_id)
    elif chosen.tenant is not None:
        statement = statement.where(tenant.c.name == chosen.tenant)
    for column, text in (
        (event.c.actor, chosen.actor),
        (event.c.action, chosen.action),
        (event.c.object, chosen.object),
    ):
        if text is not None and text.endswith(ANYTHING):
            statement = statement.where(column.startswith(text.removesuffix(ANYTHING), autoescape=True))
        elif text is not None:
            statement = statement.where(column == text)
    if chosen.since is not None:
        statement = statement.where(event.c.at >= chosen.since)
    if chosen.until is not None:
        statement = statement.where(event.c.at < chosen.until)
    return statement


def _position() -> sa.Tuple:
    return sa.tuple_(*(event.c[key] for key in _KEYS))


def _literal(place: tuple[datetime, UUID]) -> sa.Tuple:
    return sa.tuple_(*(sa.literal(value, event.c[key].type) for key, value in zip(_KEYS, place, strict=True)))


def _place(cursor: str) -> tuple[datetime, UUID]:
    at, number = decoded(cursor, len(_KEYS))
    try:
        found = datetime.fromisoformat(at), UUID(number)
    except ValueError:
        found = None
    if found is None or found[0].tzinfo is None:
        raise InvalidInput([Fault("cursor", "is no cursor of this listing; leave it out to begin anew")])
    return found
