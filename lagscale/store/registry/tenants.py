"""Tenants: their names, limits and whether ScaledObjects may create monitors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import delete, exists, func, insert, select, update

from lagscale.domain.quotas import COLUMNS as QUOTAS
from lagscale.errors import Conflict
from lagscale.store.registry import audit
from lagscale.store.registry.paging import Page, Wanted, page
from lagscale.store.registry.session import TenantWork, Work
from lagscale.store.registry.tables import cluster, monitor, tenant
from lagscale.store.registry.versions import Outcome, Seen, check_version

#: What monitors are judged by.
RULES = ("policy_defaults", "policy_limits", "min_sampling_seconds")
_WRITTEN = (
    "display_name", "auto_register", *QUOTAS.values(), "max_auto_monitors", "auto_expiry_days", *RULES,
)  # fmt: skip


async def listed(work: Work, wanted: Wanted) -> Page:
    """The tenants that the scope sees."""
    return await page(work, select(tenant), ["name"], wanted)


async def create(work: Work, name: str, values: Mapping[str, Any]) -> Outcome:
    """Create a tenant.

    Raises:
        Conflict: the name is taken.
    """
    given = {column: values[column] for column in _WRITTEN}
    statement = insert(tenant).values(name=name, **given).returning(tenant)
    row = await work.one(statement)
    await audit.record(work, "tenant.create", f"tenant/{name}", None, row)
    return Outcome(row, created=True, changed=True)


async def put(work: Work, name: str, values: Mapping[str, Any], seen: Seen | None) -> Outcome:
    """Create the tenant or make it so; nothing changes when it is so already.

    Raises:
        PreconditionFailed: it is not as the caller has seen it.
    """
    # Two first PUTs of one name make one tenant, and no conflict.
    await work.run(select(func.pg_advisory_xact_lock(func.hashtextextended(f"tenant {name}", 0))))
    # Not the key: who registers a monitor holds on to that, and waits for the turn that this one may hold.
    statement = select(tenant).where(tenant.c.name == name).with_for_update(key_share=True)
    row = await work.find(statement)
    check_version(row, seen)
    if row is None:
        return await create(work, name, values)
    given = {column: values[column] for column in _WRITTEN}
    if all(row[column] == value for column, value in given.items()):
        return Outcome(row)
    changing = update(tenant).where(tenant.c.id == row["id"]).values(version=row["version"] + 1, **given)
    after = await work.one(changing.returning(tenant))
    await audit.record(work, "tenant.update", f"tenant/{name}", row, after)
    return Outcome(after, changed=True, before=row)


def changes_rules(outcome: Outcome) -> bool:
    """Whether a change of a tenant is one of what its monitors are judged by."""
    before = outcome.before
    return before is not None and any(before[column] != outcome.row[column] for column in RULES)


async def remove(work: TenantWork) -> None:
    """Remove an empty tenant with its keys and bindings; its samples go with their retention.

    Raises:
        Conflict: it has monitors or clusters.
    """
    live = exists().where(monitor.c.deleted_at.is_(None))
    if (await work.run(select(live | exists().select_from(cluster)))).scalar_one():
        raise Conflict("The tenant has monitors or clusters; delete them first.")
    await work.run(delete(tenant).where(tenant.c.id == work.tenant_id))


async def monitors(work: TenantWork) -> int:
    """How many live monitors the tenant has."""
    statement = select(func.count()).select_from(monitor).where(monitor.c.deleted_at.is_(None))
    return int((await work.run(statement)).scalar_one())
