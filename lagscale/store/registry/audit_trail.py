"""Reads the audit: newest first page by page, or oldest first from end to end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from lagscale.errors import FieldError, InvalidInput
from lagscale.store.registry.paging import MAX_PAGE_SIZE, Page, PageRequest, decode_cursor, encode_cursor
from lagscale.store.registry.session import RegistrySession, Row, TenantSession
from lagscale.store.registry.tables import audit_event as event
from lagscale.store.registry.tables import tenant

#: At the end of a wanted text: whatever begins so.
WILDCARD = "*"
_KEYS = ("at", "id")


@dataclass(frozen=True, slots=True)
class AuditFilter:
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


async def list_page(session: RegistrySession, criteria: AuditFilter, page_request: PageRequest) -> Page:
    """One page, the newest first: of one tenant behind its wall, else of all tenants and of the platform.

    Raises:
        InvalidInput: the cursor is none of ours.
    """
    after = None if page_request.after is None else _parse_cursor(page_request.after)
    limit = min(max(page_request.limit, 1), MAX_PAGE_SIZE)
    statement = _select_events(session, criteria)
    if after is not None:
        statement = statement.where(_position() < _literal(after))
    rows = await session.fetch_all(statement.order_by(event.c.at.desc(), event.c.id.desc()).limit(limit + 1))
    if len(rows) <= limit:
        return Page(rows, None)
    last = rows[limit - 1]
    return Page(rows[:limit], encode_cursor([last["at"].isoformat(), str(last["id"])]))


async def read_after(session: RegistrySession, criteria: AuditFilter, last: Row | None) -> Sequence[Row]:
    """The next events after `last`, the oldest first; none at the end. From the beginning without `last`."""
    statement = _select_events(session, criteria)
    if last is not None:
        statement = statement.where(_position() > _literal((last["at"], last["id"])))
    return await session.fetch_all(statement.order_by(event.c.at, event.c.id).limit(MAX_PAGE_SIZE))


async def read_clock(session: RegistrySession) -> datetime:
    """The store's present: events that are there already are older."""
    found: datetime = (await session.execute(sa.select(sa.func.clock_timestamp()))).scalar_one()
    return found


def _select_events(session: RegistrySession, criteria: AuditFilter) -> sa.Select[Any]:
    statement = sa.select(event, tenant.c.name.label("tenant")).outerjoin(tenant, tenant.c.id == event.c.tenant_id)
    if isinstance(session, TenantSession):
        statement = statement.where(event.c.tenant_id == session.tenant_id)
    elif criteria.tenant is not None:
        statement = statement.where(tenant.c.name == criteria.tenant)
    for column, text in (
        (event.c.actor, criteria.actor),
        (event.c.action, criteria.action),
        (event.c.object, criteria.object),
    ):
        if text is not None and text.endswith(WILDCARD):
            statement = statement.where(column.startswith(text.removesuffix(WILDCARD), autoescape=True))
        elif text is not None:
            statement = statement.where(column == text)
    if criteria.since is not None:
        statement = statement.where(event.c.at >= criteria.since)
    if criteria.until is not None:
        statement = statement.where(event.c.at < criteria.until)
    return statement


def _position() -> sa.Tuple:
    return sa.tuple_(*(event.c[key] for key in _KEYS))


def _literal(position: tuple[datetime, UUID]) -> sa.Tuple:
    return sa.tuple_(*(sa.literal(value, event.c[key].type) for key, value in zip(_KEYS, position, strict=True)))


def _parse_cursor(cursor: str) -> tuple[datetime, UUID]:
    at, number = decode_cursor(cursor, len(_KEYS))
    try:
        found = datetime.fromisoformat(at), UUID(number)
    except ValueError:
        found = None
    if found is None or found[0].tzinfo is None:
        raise InvalidInput([FieldError("cursor", "is no cursor of this listing; leave it out to begin anew")])
    return found
