"""The audit: `record` writes one row in the transaction of each change, also for `insert_row` and `update_row`;
`list_page` and `read_after` read them.

Of secrets a row says only whether they are set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from lagscale.errors import InvalidInput
from lagscale.store.registry.paging import (
    INVALID_CURSOR,
    MAX_PAGE_SIZE,
    Page,
    PageRequest,
    cut_page,
    decode_cursor,
)
from lagscale.store.registry.session import RegistrySession, Row, WriteResult
from lagscale.store.registry.tables import audit_event as event
from lagscale.store.registry.tables import tenant

#: Never recorded, whatever row they come from.
_SECRET_COLUMNS = frozenset({"digest"})
_MASKED_COLUMNS = frozenset({"secrets"})
#: Left out, because they follow from the change itself.
_DERIVED_COLUMNS = frozenset({"id", "tenant_id", "cluster_id", "updated_at", "created_at", "content_hash"})

#: At the end of a filter's value: matches by prefix.
WILDCARD = "*"
_KEYS = ("at", "id")

Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which events; None for all. Values must be equal; one that ends in `*` matches by prefix.

    Attributes:
        since, until: the first instant, included, and the last, excluded.
        tenant: whose events, for the platform; a tenant sees only its own.
    """

    actor: str | None = None
    action: str | None = None
    object: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    tenant: str | None = None


async def record(
    session: RegistrySession,
    action: str,
    object_name: str,
    before: Facts | None,
    after: Facts | None,
    *,
    tenant_id: int | None = None,
) -> None:
    """Write the row.

    In a tenant's context it is that tenant's, else the platform's, or `tenant_id`'s where the platform changes a
    tenant's object. Actions are as `monitor.create`, names as `monitor/orders`; `before` is None where there was no
    object, and `after` where there is none.
    """
    await session.execute(
        sa.insert(event).values(
            tenant_id=tenant_id if session.tenant_id is None else session.tenant_id,
            actor=session.actor,
            action=action,
            object=object_name,
            before=_masked(before),
            after=_masked(after),
            origin=session.origin,
        )
    )


async def insert_row(
    session: RegistrySession, table: sa.Table, values: Facts, action: str, name: str, *, tenant_id: int | None = None
) -> WriteResult:
    """Insert a row, and record it: the object is the action's kind and this name."""
    row = await session.fetch_one(sa.insert(table).values(**values).returning(table))
    await record(session, action, f"{action.partition('.')[0]}/{name}", None, row, tenant_id=tenant_id)
    return WriteResult(row, created=True, changed=True)


async def update_row(
    session: RegistrySession, table: sa.Table, row: Row, values: Facts, action: str, *, tenant_id: int | None = None
) -> WriteResult:
    """Write the values that differ as the row's next version, and record it; nothing where none differs."""
    changes: dict[str, Any] = {column: value for column, value in values.items() if row[column] != value}
    if not changes:
        return WriteResult(row)
    if "updated_at" in table.c:
        changes["updated_at"] = sa.func.now()
    changing = sa.update(table).where(table.c.id == row["id"]).values(version=row["version"] + 1, **changes)
    after = await session.fetch_one(changing.returning(table))
    await record(session, action, f"{table.name}/{row['name']}", row, after, tenant_id=tenant_id)
    return WriteResult(after, changed=True, before=row)


async def list_page(session: RegistrySession, criteria: AuditFilter, page_request: PageRequest) -> Page:
    """One page, the newest first: of one tenant in its context, else of all tenants and of the platform.

    Raises:
        InvalidInput: the cursor is not one of this listing.
    """
    after = None if page_request.after is None else _parse_cursor(page_request.after)
    statement = _select_events(session, criteria)
    if after is not None:
        statement = statement.where(_position() < _literal(after))
    newest_first = statement.order_by(event.c.at.desc(), event.c.id.desc())
    return await cut_page(
        session, newest_first, page_request.limit, lambda row: [row["at"].isoformat(), str(row["id"])]
    )


async def read_after(session: RegistrySession, criteria: AuditFilter, last: Row | None) -> Sequence[Row]:
    """The next events after `last`, the oldest first; none at the end. From the beginning without `last`."""
    statement = _select_events(session, criteria)
    if last is not None:
        statement = statement.where(_position() > _literal((last["at"], last["id"])))
    return await session.fetch_all(statement.order_by(event.c.at, event.c.id).limit(MAX_PAGE_SIZE))


def _masked(facts: Facts | None) -> dict[str, Any] | None:
    if facts is None:
        return None
    recorded = {name: value for name, value in facts.items() if name not in _SECRET_COLUMNS | _DERIVED_COLUMNS}
    return {name: _to_json(name, value) for name, value in recorded.items()}


def _to_json(name: str, value: Any) -> Any:
    if name in _MASKED_COLUMNS:
        return None if value is None else "set"
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else value


def _select_events(session: RegistrySession, criteria: AuditFilter) -> sa.Select[Any]:
    statement = sa.select(event, tenant.c.name.label("tenant")).outerjoin(tenant, tenant.c.id == event.c.tenant_id)
    if session.tenant_id is not None:
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
        raise InvalidInput([INVALID_CURSOR])
    return found
