"""The scaler's view of the registry: loads all registrations and listens for their changes.

Hand-written SQL under the role `lagscale_scaler`; administration is in `store/registry`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import structlog
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.policy.policy import Policy
from lagscale.domain.quotas import AUTO_QUOTA, AUTO_QUOTA_EXCEEDED, DEFAULT_QUOTAS, Quota, describe_excess
from lagscale.domain.verdict.freezes import Freeze
from lagscale.errors import InvalidInput, LagscaleError, NotFound, QuotaExceeded, StoreUnavailable
from lagscale.store.connection import Pool, connect, fetch_rows, set_tenant_context, translate_errors
from lagscale.store.queries import load
from lagscale.store.registry.monitor_spec import MonitorSpec, to_columns

log = structlog.get_logger(__name__)

ROLE = "lagscale_scaler"
#: Notified by every change of a registration, and once per written batch of samples.
REGISTRY_CHANNEL = "lagscale_registry"
SAMPLES_CHANNEL = "lagscale_samples"
#: Rows converted before the event loop serves other calls.
_ROWS_PER_CHUNK = 500
_LISTEN_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Registration:
    """A registered monitor, as the scaler needs it.

    Attributes:
        topics: the names of the targets, in their order.
        partial_reason: why only some of its topics are measured; empty when all are.
        over_quota_reason: why some of its targets are not measured; empty when all are.
    """

    monitor_id: int
    tenant_id: int
    name: str
    cluster: str
    consumer_group: str
    topics: tuple[str, ...]
    policy: Policy
    given: Mapping[str, str]
    target_ids: tuple[int, ...]
    overridable: bool
    content_hash: str
    version: int
    partial_reason: str = ""
    over_quota_reason: str = ""


@dataclass(frozen=True, slots=True)
class TenantEntry:
    """A tenant, as the scaler needs it: its rules, and its clusters' bootstrap addresses by name."""

    tenant_id: int
    name: str
    auto_register: bool
    min_sampling_seconds: int
    max_monitors: int
    clusters: Mapping[str, tuple[str, ...]]
    policy_defaults: Mapping[str, str] = field(default_factory=dict)
    policy_limits: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    version: int = 0
    calls_per_second: int = DEFAULT_QUOTAS[Quota.CALLS]


@dataclass(frozen=True, slots=True)
class Registrations:
    """All registrations at one version; every scaler has them in memory and in its local cache."""

    version: int
    tenants: tuple[TenantEntry, ...] = ()
    monitors: tuple[Registration, ...] = ()
    #: (KEDA instance, Kubernetes namespace or '*') -> tenant id
    bindings: Mapping[tuple[str, str], int] = field(default_factory=dict)
    #: Freezes that had not ended when this was read.
    freezes: tuple[Freeze, ...] = ()
    #: The database's clock when this was read; None from the local cache.
    now_ms: int | None = None


class PostgresRegistrations:
    """Registrations in PostgreSQL.

    Statements that read serve all tenants at once, because every replica answers for all of them, and the role's
    policies allow just that; creating a monitor sets the context of its tenant. Every method raises `StoreUnavailable` if
    the store does not answer.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def version(self) -> int:
        """A number that grows with every change of a registration."""
        async with translate_errors(), self._pool.connection() as connection:
            return await _read_version(connection)

    async def load(self) -> Registrations:
        """All registrations of all tenants, from one snapshot."""
        async with translate_errors(), self._pool.connection() as connection, connection.transaction():
            await connection.execute("set transaction isolation level repeatable read, read only")
            version = await _read_version(connection)
            tenants = await fetch_rows(connection, "registered_tenants")
            bindings = await fetch_rows(connection, "registered_bindings")
            monitors = await fetch_rows(connection, "registered_monitors")
            freezes = await fetch_rows(connection, "registered_freezes")
        entries = tuple(_read_tenant(row) for row in tenants)
        least = {entry.tenant_id: entry.min_sampling_seconds for entry in entries}
        found: list[Registration] = []
        for number, row in enumerate(monitors):
            if number % _ROWS_PER_CHUNK == 0:
                await asyncio.sleep(0)
            registration = _read_registration(row, least.get(row["tenant_id"], 1))
            if registration is not None:
                found.append(registration)
        now_ms, *_ = [row.pop("now_ms") for row in freezes]
        return Registrations(
            version,
            entries,
            tuple(found),
            {(row["instance"], row["namespace"]): row["tenant_id"] for row in bindings},
            tuple(Freeze(**row) for row in freezes if row["freeze_id"] is not None),
            now_ms,
        )

    async def register(self, monitor: InlineMonitor) -> None:
        """Create the monitor and its targets unless its content exists; raises as `register_inline`."""
        async with translate_errors(), self._pool.connection() as connection, connection.transaction():
            await register_inline(connection, monitor)


async def _read_version(connection: AsyncConnection[Any]) -> int:
    cursor = await connection.execute(load("registry_version"), prepare=True)
    row = await cursor.fetchone()
    return 0 if row is None else int(row[0])


def _read_tenant(row: dict[str, Any]) -> TenantEntry:
    clusters = {name: tuple(bootstrap) for name, bootstrap in row.pop("clusters").items()}
    return TenantEntry(tenant_id=row.pop("id"), clusters=clusters, **row)


def _read_registration(row: dict[str, Any], minimum_interval: int) -> Registration | None:
    given = {str(name): str(text) for name, text in row.pop("policy").items()}
    policy = _parse_policy(tuple(sorted(given.items())), minimum_interval)
    if policy is None:
        log.warning("stored_policy_invalid", tenant_id=row["tenant_id"], monitor=row["name"])
        return None
    topics, target_ids = tuple(row.pop("topics")), tuple(row.pop("target_ids"))
    return Registration(
        monitor_id=row.pop("id"), topics=topics, policy=policy, given=given, target_ids=target_ids, **row
    )


@lru_cache(maxsize=20_000)
def _parse_policy(given: tuple[tuple[str, str], ...], minimum_interval: int) -> Policy | None:
    # Tick and minimum were checked when it was written; changing them must not disable a monitor.
    for least in (minimum_interval, 1):
        try:
            return parse_policy(dict(given), tick_seconds=0.0, minimum_interval=least)
        except InvalidInput:
            continue
    return None


async def changes(url: str) -> AsyncIterator[str]:
    """Channels as they are notified, without end; an empty text after each (re)connection, when some may be lost.

    Only a hint: a caller that must not miss a change also polls.
    """
    delay = 0.5
    while True:
        try:
            async with translate_errors():
                connection = await connect(url, ROLE, application="lagscale-scaler-listen")
                async with connection:
                    await connection.execute(f"listen {REGISTRY_CHANNEL}")
                    await connection.execute(f"listen {SAMPLES_CHANNEL}")
                    delay = 0.5
                    yield ""
                    while True:
                        async for note in connection.notifies(timeout=_LISTEN_SECONDS):
                            yield note.channel
                        # A peer that vanished silently is noticed only when something is sent.
                        async with asyncio.timeout(_LISTEN_SECONDS):
                            await connection.execute("select 1")
        except (LagscaleError, TimeoutError) as error:
            log.info("listener_reconnecting", reason=type(error).__name__)
        await asyncio.sleep(delay)
        delay = min(delay * 2, 5.0)


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
