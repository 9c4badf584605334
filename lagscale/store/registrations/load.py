"""The scaler's view of the registry: loads all registrations and listens for their changes.

Hand-written SQL under the role `lagscale_scaler`; administration is in `store/registry`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from functools import lru_cache
from typing import Any

import structlog
from psycopg import AsyncConnection
from psycopg.rows import dict_row

from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.freezes import Freeze
from lagscale.errors import InvalidInput, LagscaleError
from lagscale.store.connection import Pool, connect, translate_errors
from lagscale.store.queries import load
from lagscale.store.records import Registration, Registrations, TenantEntry
from lagscale.store.registrations.inline import InlineMonitor, register_inline

log = structlog.get_logger(__name__)

ROLE = "lagscale_scaler"
#: Notified by every change of a registration, and once per written batch of samples.
REGISTRY_CHANNEL = "lagscale_registry"
SAMPLES_CHANNEL = "lagscale_samples"
#: Rows converted before the event loop serves other calls.
_ROWS_PER_CHUNK = 500
_LISTEN_SECONDS = 15.0


class PostgresRegistrations:
    """Registrations in PostgreSQL.

    Statements that read serve all tenants at once, because every replica answers for all of them, and the role's
    policies allow just that; creating a monitor sets the context of its tenant.
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
        """Create the monitor and its targets unless its content exists; see `register_inline`.

        Raises:
            QuotaExceeded, NotFound: as `register_inline`.
            StoreUnavailable: the store did not answer, or the tenant's rules have changed.
        """
        async with translate_errors(), self._pool.connection() as connection, connection.transaction():
            await register_inline(connection, monitor)


async def _read_version(connection: AsyncConnection[Any]) -> int:
    cursor = await connection.execute(load("registry_version"), prepare=True)
    row = await cursor.fetchone()
    return 0 if row is None else int(row[0])


async def _read_rows(connection: AsyncConnection[Any], query: str) -> list[dict[str, Any]]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(load(query))
        return await cursor.fetchall()


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
        log.warning("stored_policy_invalid", tenant_id=row["tenant_id"], monitor=row["name"])
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
        row["partial_reason"],
        row["over_quota_reason"],
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
