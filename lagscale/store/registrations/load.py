"""The scaler's side of the registry: reads all registrations, creates inline ones, hears of changes.

Hand-written SQL under the role `lagscale_scaler`; administration lives in `store/registry`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from functools import lru_cache
from typing import Any

import structlog
from psycopg import AsyncConnection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.policy.policy import Policy
from lagscale.domain.quotas import Quota, describe_excess
from lagscale.domain.verdict.freezes import Freeze
from lagscale.errors import InvalidInput, LagscaleError, NotFound, QuotaExceeded, StoreUnavailable
from lagscale.store.connection import Pool, connect
from lagscale.store.faults import translate_errors
from lagscale.store.queries import load
from lagscale.store.records import InlineMonitor, Registration, Registrations, TenantEntry

log = structlog.get_logger(__name__)

ROLE = "lagscale_scaler"
#: Notified by every change of a registration, and once per written batch of samples.
REGISTRY_CHANNEL = "lagscale_registry"
SAMPLES_CHANNEL = "lagscale_samples"
#: Rows turned into objects before other calls get their turn.
_ROWS_PER_CHUNK = 500
_LISTEN_SECONDS = 15.0


class PostgresRegistrations:
    """`RegistrationStore` in SQL.

    Its statements serve all tenants at once, because every replica answers for all of them; the role's policies
    allow just that, and creating a monitor sets the one tenant it is for.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def version(self) -> int:
        """A number that grows with every change of a registration.

        Raises:
            StoreUnavailable: the store did not answer.
        """
        async with translate_errors(), self._pool.connection() as connection:
            return await _read_version(connection)

    async def load(self) -> Registrations:
        """All registrations of all tenants, from one snapshot.

        Raises:
            StoreUnavailable: the store did not answer.
        """
        async with translate_errors(), self._pool.connection() as connection, connection.transaction():
            await connection.execute("set transaction isolation level repeatable read, read only")
            version = await _read_version(connection)
            tenants = await _read_rows(connection, "registered_tenants")
            bindings = await _read_rows(connection, "registered_bindings")
            monitors = await _read_rows(connection, "registered_monitors")
            freezes = await _read_rows(connection, "registered_freezes")
        entries = tuple(_read_tenant(row) for row in tenants)
        least = {entry.tenant_id: entry.min_sampling_seconds for entry in entries}
        found: list[Registration] = []
        for number, row in enumerate(monitors):
            if number % _ROWS_PER_CHUNK == 0:
                await asyncio.sleep(0)
            registration = _read_registration(row, least.get(row["tenant_id"], 1))
            if registration is not None:
                found.append(registration)
        return Registrations(
            version,
            entries,
            tuple(found),
            {(row["instance"], row["namespace"]): row["tenant_id"] for row in bindings},
            tuple(_read_freeze(row) for row in freezes if row["freeze_id"] is not None),
            freezes[0]["now_ms"],
        )

    async def register(self, monitor: InlineMonitor) -> None:
        """Create the monitor and its targets unless its content exists.

        Raises:
            QuotaExceeded: the tenant's quota of monitors, of those that were registered this way, of such without a
                list, or of partitions is used up.
            NotFound: the tenant or its cluster is gone.
            StoreUnavailable: the store did not answer, or the tenant's rules are others by now.
        """
        async with translate_errors(), self._pool.connection() as connection, connection.transaction():
            await connection.execute("select set_config('lagscale.tenant', %s, true)", [str(monitor.tenant_id)])
            outcome = await _create(connection, monitor)
        if outcome == "over_auto_quota":
            raise QuotaExceeded(
                "ScaledObjects have registered as many monitors of this tenant as they may (maxAutoMonitors): remove "
                "some, register this one by the API, or ask for a higher quota.",
                quota="maxAutoMonitors",
            )
        if outcome == "outdated":
            raise StoreUnavailable("The tenant's rules have just changed; retry.")
        if outcome == "no_cluster":
            raise NotFound("The cluster of this trigger is not registered any more.")
        if outcome == "created":
            log.info("monitor_registered", tenant_id=monitor.tenant_id, monitor=monitor.name)


async def _read_version(connection: AsyncConnection[Any]) -> int:
    cursor = await connection.execute(load("registry_version"), prepare=True)
    row = await cursor.fetchone()
    return 0 if row is None else int(row[0])


async def _read_rows(connection: AsyncConnection[Any], query: str) -> list[dict[str, Any]]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(load(query))
        return await cursor.fetchall()


async def _create(connection: AsyncConnection[Any], monitor: InlineMonitor) -> str:
    # One creation per tenant at a time: the quota is exact, and two replicas make one monitor of one content.
    await connection.execute(
        "select pg_advisory_xact_lock(hashtext('lagscale.register'), %s::int)", [monitor.tenant_id]
    )
    parameters: dict[str, Any] = {
        "tenant": monitor.tenant_id,
        "name": monitor.name,
        "cluster": monitor.cluster,
        "consumer_group": monitor.consumer_group,
        "topics": list(monitor.topics),
        "topic_pattern": monitor.pattern,
        "exclude_topics": list(monitor.exclude),
        "isolation_level": monitor.policy.isolation_level.value,
        "partition_limitation": monitor.effective_policy.get("partitionLimitation", "").strip(),
        "policy": Jsonb(monitor.effective_policy),
        "inherited": sorted(monitor.inherited),
        "tenant_version": monitor.tenant_version,
        "registered_by": Jsonb(dict(monitor.asked_by)) if monitor.asked_by else None,
        "sampling_ms": monitor.policy.sampling_ms,
        "stale_after_ms": monitor.policy.stale_after_ms,
        "content_hash": monitor.content_hash,
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


def _read_tenant(row: Mapping[str, Any]) -> TenantEntry:
    return TenantEntry(
        row["id"],
        row["name"],
        row["auto_register"],
        row["min_sampling_seconds"],
        row["max_monitors"],
        {name: tuple(bootstrap) for name, bootstrap in row["clusters"].items()},
        row["policy_defaults"],
        row["policy_limits"],
        row["version"],
        row["calls_per_second"],
    )


def _read_freeze(row: Mapping[str, Any]) -> Freeze:
    return Freeze(**{name: value for name, value in row.items() if name != "now_ms"})


def _read_registration(row: Mapping[str, Any], minimum_interval: int) -> Registration | None:
    given = {str(name): str(text) for name, text in row["policy"].items()}
    policy = _parse_policy(tuple(sorted(given.items())), minimum_interval)
    if policy is None:
        log.warning("stored_policy_unreadable", tenant_id=row["tenant_id"], monitor=row["name"])
        return None
    return Registration(
        row["id"],
        row["tenant_id"],
        row["name"],
        row["cluster"],
        row["consumer_group"],
        tuple(row["topics"]),
        policy,
        given,
        tuple(row["target_ids"]),
        row["overridable"],
        row["content_hash"],
        row["version"],
        row["partial"],
        row["over_quota"],
    )


@lru_cache(maxsize=20_000)
def _parse_policy(given: tuple[tuple[str, str], ...], minimum_interval: int) -> Policy | None:
    # The rules of tick and minimum were checked when it was written, and changing them must not silence a monitor.
    for least in (minimum_interval, 1):
        try:
            return parse_policy(dict(given), tick_seconds=0.0, minimum_interval=least)
        except InvalidInput:
            continue
    return None


async def changes(url: str) -> AsyncIterator[str]:
    """Channels as they are notified, for ever; an empty text after each (re)connection, when some may be lost.

    A hint only: who needs the truth polls beside it.
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
                        # A peer that vanished without a word shows only when something is sent.
                        async with asyncio.timeout(_LISTEN_SECONDS):
                            await connection.execute("select 1")
        except (LagscaleError, TimeoutError) as error:
            log.info("listen_interrupted", error=type(error).__name__)
        await asyncio.sleep(delay)
        delay = min(delay * 2, 5.0)
