"""Tenants: names, limits, rules, and whether ScaledObjects may create monitors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import delete, exists, func, select

from lagscale.domain.quotas import QUOTA_COLUMNS as QUOTAS
from lagscale.errors import Conflict
from lagscale.store.registry import audit
from lagscale.store.registry.paging import Page, PageRequest, read_page
from lagscale.store.registry.session import (
    Precondition,
    RegistrySession,
    Row,
    TenantSession,
    WriteResult,
    check_precondition,
)
from lagscale.store.registry.tables import cluster, monitor, tenant

#: Columns of the rules that monitors are evaluated by.
RULE_COLUMNS = ("policy_defaults", "policy_limits", "min_sampling_seconds")
_WRITABLE_COLUMNS = (
    "display_name", "auto_register", *QUOTAS.values(), "max_auto_monitors", "auto_expiry_days", *RULE_COLUMNS,
)  # fmt: skip


async def list_page(session: RegistrySession, page_request: PageRequest) -> Page:
    """The tenants that are visible to the scope."""
    return await read_page(session, select(tenant), ["name"], page_request)


async def create(session: RegistrySession, name: str, values: Mapping[str, Any]) -> WriteResult:
    """Create a tenant.

    Raises:
        Conflict: the name is taken.
    """
    given = {column: values[column] for column in _WRITABLE_COLUMNS}
    return await audit.insert_row(session, tenant, {"name": name, **given}, "tenant.create", name)


async def put(
    session: RegistrySession, name: str, values: Mapping[str, Any], precondition: Precondition | None
) -> WriteResult:
    """Create or replace the tenant; nothing changes when it is already as described.

    Raises:
        PreconditionFailed: its version is not what the caller expects.
    """
    row = await _lock_by_name(session, name)
    check_precondition(row, precondition)
    if row is None:
        return await create(session, name, values)
    given = {column: values[column] for column in _WRITABLE_COLUMNS}
    return await audit.update_row(session, tenant, row, given, "tenant.update")


async def ensure(session: RegistrySession, name: str, values: Mapping[str, Any]) -> Row:
    """The tenant of this name, created with these values where there is none; locked until the end."""
    row = await _lock_by_name(session, name)
    return row if row is not None else (await create(session, name, values)).row


async def _lock_by_name(session: RegistrySession, name: str) -> Row | None:
    # Two first PUTs of one name make one tenant, and no conflict.
    await session.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"tenant {name}", 0))))
    # Not the key: who registers a monitor locks that, and waits for the lock that this transaction may hold.
    statement = select(tenant).where(tenant.c.name == name).with_for_update(key_share=True)
    return await session.fetch_optional(statement)


def changes_rules(outcome: WriteResult) -> bool:
    """Whether a change of a tenant changed the rules of its monitors."""
    before = outcome.before
    return before is not None and any(before[column] != outcome.row[column] for column in RULE_COLUMNS)


async def remove(session: TenantSession) -> None:
    """Delete an empty tenant with its keys and bindings; its samples are removed by retention.

    Raises:
        Conflict: it has monitors or clusters.
    """
    live = exists().where(monitor.c.deleted_at.is_(None))
    if (await session.execute(select(live | exists().select_from(cluster)))).scalar_one():
        raise Conflict("The tenant has monitors or clusters; delete them first.")
    await session.execute(delete(tenant).where(tenant.c.id == session.tenant_id))


async def find_tenant_id(session: RegistrySession, name: str) -> int | None:
    """The id of the tenant of this name; None where there is none.

    The session is the platform's, because a token's tenant is looked up before its caller is known.
    """
    row = await session.fetch_optional(select(tenant.c.id).where(tenant.c.name == name))
    return None if row is None else int(row["id"])
