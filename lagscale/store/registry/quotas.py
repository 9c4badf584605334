"""Quotas of a tenant: limits, usage, and the check before anything is created."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from lagscale.domain.quotas import QUOTA_COLUMNS, Quota, api_field_of, describe_excess
from lagscale.domain.state_codes import StateCode
from lagscale.errors import QuotaExceeded
from lagscale.store.queries import load
from lagscale.store.registry import audit
from lagscale.store.registry.session import (
    Precondition,
    RegistrySession,
    TenantSession,
    WriteResult,
    as_platform,
    check_precondition,
)
from lagscale.store.registry.tables import cluster, lag_target, monitor, monitor_target, target_state, tenant


@dataclass(frozen=True, slots=True)
class QuotaUsage:
    """A tenant's present usage.

    Attributes:
        monitors, clusters, patterns: registered ones.
        partitions: of the targets that are measured.
        unmeasured: targets whose number of partitions is not known yet.
        refused: targets that are not measured because they exceed the quota of partitions.
    """

    monitors: int
    clusters: int
    patterns: int
    partitions: int
    unmeasured: int
    refused: int

    def of(self, quota: Quota) -> int:
        """The usage of a quota that counts objects."""
        return int(getattr(self, quota.value))


async def lock_registrations(session: TenantSession) -> None:
    """Let the tenant's other registrations wait until this transaction ends, so that quotas are exact.

    The scaler takes the same lock for inline monitors, and the scraper for links.
    """
    await session.connection.exec_driver_sql(load("register_lock"), {"tenant": session.tenant_id})


async def check_quota(session: TenantSession, quota: Quota, more: int = 1) -> None:
    """Check that this many more are within the quota; after `lock_registrations`.

    The number of partitions is known only after they are measured, so the check is only whether any are left; targets
    that exceed the quota later are not measured by the scraper, and their state says so.

    Raises:
        QuotaExceeded: they are not.
    """
    if more <= 0:
        return
    # Read under the lock: the row that the transaction began with may be older.
    limit = int(
        (await session.execute(sa.select(tenant.c[QUOTA_COLUMNS[quota]]).where(_is_own_row(session)))).scalar_one()
    )
    used = int((await session.execute(sa.select(_COUNTS[quota]))).scalar_one())
    if used + more > limit:
        suffix = "" if more == 1 else f", {more} more are asked for"
        raise QuotaExceeded(
            describe_excess(quota, limit, f"{used} are in use{suffix}"), quota=quota.value, field=api_field_of(quota)
        )


async def read_usage(session: TenantSession) -> QuotaUsage:
    """The tenant's usage."""
    row = await session.fetch_one(sa.select(*(count.label(name) for name, count in _COUNTS.items())))
    return QuotaUsage(**{name: int(number) for name, number in row.items()})


async def put(session: TenantSession, limits: Mapping[Quota, int], precondition: Precondition | None) -> WriteResult:
    """Set the tenant's quotas; present usage stays, also above them. Only for platform administrators.

    Raises:
        PreconditionFailed: its version is not what the caller expects.
    """
    # In a tenant's context nobody may write its row.
    platform = await as_platform(session)
    row = await platform.fetch_one(sa.select(tenant).where(_is_own_row(session)).with_for_update(key_share=True))
    check_precondition(row, precondition)
    new_limits = {QUOTA_COLUMNS[quota]: limit for quota, limit in limits.items()}
    return await audit.update_row(platform, tenant, row, new_limits, "tenant.quotas", tenant_id=session.tenant_id)


async def read_request_rates(session: RegistrySession) -> dict[int, int]:
    """Each tenant's quota of requests by tenant id. All tenants: one API serves all."""
    rows = await session.fetch_all(sa.select(tenant.c.id, tenant.c[QUOTA_COLUMNS[Quota.REQUESTS]].label("most")))
    return {int(row["id"]): int(row["most"]) for row in rows}


def _is_own_row(session: TenantSession) -> sa.ColumnElement[bool]:
    return tenant.c.id == session.tenant_id


def _count(table: sa.FromClause, *where: sa.ColumnElement[bool]) -> sa.ScalarSelect[Any]:
    return sa.select(sa.func.count()).select_from(table).where(*where).scalar_subquery()


#: Targets without a live monitor remain for their history, and are not measured.
_POLLED = sa.exists().where(
    monitor_target.c.target_id == lag_target.c.id,
    monitor_target.c.monitor_id == monitor.c.id,
    monitor.c.deleted_at.is_(None),
)
_STATES = lag_target.outerjoin(target_state, target_state.c.target_id == lag_target.c.id)
_LIVE = monitor.c.deleted_at.is_(None)
#: Field of `QuotaUsage`, of a quota its name -> what counts it.
_COUNTS: Mapping[str, sa.ScalarSelect[Any]] = {
    Quota.MONITORS: _count(monitor, _LIVE),
    Quota.CLUSTERS: _count(cluster),
    Quota.PATTERNS: _count(monitor, _LIVE, monitor.c.topics.is_(None)),
    Quota.PARTITIONS: sa.select(sa.func.coalesce(sa.func.sum(target_state.c.partitions), 0))
    .select_from(_STATES)
    .where(_POLLED, target_state.c.code != StateCode.OVER_QUOTA)
    .scalar_subquery(),
    "unmeasured": _count(_STATES, _POLLED, target_state.c.partitions.is_(None)),
    "refused": _count(_STATES, _POLLED, target_state.c.code == StateCode.OVER_QUOTA),
}
