"""Registers monitors that trigger metadata describe, in the scaler's role.

The rules are the API's: `registry.monitor_spec` builds the spec and its columns, the lock of registrations is the same,
and a test compares the quotas' counts of `register_inline.sql` with those of `registry.quotas`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from lagscale.domain.quotas import AUTO_QUOTA, AUTO_QUOTA_EXCEEDED, Quota, describe_excess
from lagscale.errors import NotFound, QuotaExceeded, StoreUnavailable
from lagscale.store.connection import set_tenant_context
from lagscale.store.queries import load
from lagscale.store.registry.monitor_spec import MonitorSpec, to_columns

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class InlineMonitor:
    """A monitor to create from trigger metadata; idempotent by its content within the tenant.

    Attributes:
        tenant_version: of the tenant by whose rules the spec was made; 0 where that does not matter.
        registered_by: `instance`, `namespace` and `scaled_object` of the requester; empty where it is unknown.
    """

    tenant_id: int
    spec: MonitorSpec
    tenant_version: int = 0
    registered_by: Mapping[str, str] = field(default_factory=dict)

    @property
    def actor(self) -> str:
        """Who had it created, as the audit names it."""
        if not self.registered_by:
            return "auto-registration"
        return f"keda {self.registered_by.get('instance', '')}/{self.registered_by.get('namespace', '')}"


async def register_inline(connection: AsyncConnection[Any], monitor: InlineMonitor) -> None:
    """Create the monitor and its targets unless its content exists, in the connection's transaction.

    Raises:
        QuotaExceeded: the tenant's quota of monitors, of auto-registered ones, of those without a list of topics, or of
            partitions is used up.
        NotFound: the tenant or its cluster no longer exists.
        StoreUnavailable: the tenant's rules have changed since the spec was made.
    """
    await set_tenant_context(connection, monitor.tenant_id)
    # One creation per tenant at a time: quotas are exact, and two replicas create one monitor of one content.
    await connection.execute(load("register_lock"), {"tenant": monitor.tenant_id})
    outcome = await _create(connection, monitor)
    if outcome == "over_auto_quota":
        raise QuotaExceeded(AUTO_QUOTA_EXCEEDED, quota=AUTO_QUOTA)
    if outcome == "outdated":
        raise StoreUnavailable("The tenant's rules have just changed; retry.")
    if outcome == "no_cluster":
        raise NotFound("The cluster of this trigger is no longer registered.")
    if outcome == "created":
        log.info("monitor_registered", tenant_id=monitor.tenant_id, monitor=monitor.spec.name)


async def _create(connection: AsyncConnection[Any], monitor: InlineMonitor) -> str:
    spec = monitor.spec
    parameters = to_columns(spec) | {
        "tenant": monitor.tenant_id,
        "name": spec.name,
        "cluster": spec.cluster,
        "topics": list(spec.topics),
        "policy": Jsonb(spec.effective_policy),
        "tenant_version": monitor.tenant_version,
        "registered_by": Jsonb(dict(monitor.registered_by)) if monitor.registered_by else None,
        "actor": monitor.actor,
    }
    cursor = await connection.execute(load("register_inline"), parameters)
    row = await cursor.fetchone()
    if row is None:
        return "no_cluster"
    outcome, parameters["monitor_id"], parameters["cluster_id"], limits = row
    if outcome in limits:
        raise QuotaExceeded(describe_excess(Quota(outcome), limits[outcome]), quota=outcome)
    if parameters["monitor_id"] is not None:
        await connection.execute(load("register_targets"), parameters)
        await connection.execute(load("link_targets"), parameters)
        await connection.execute(load("audit_inline"), parameters)
    return str(outcome)
