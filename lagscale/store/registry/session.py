"""Transactions of the administration: one role, one tenant context each, driver errors translated; and what a write
expects and comes to.

The API and `services.single_monitor` open them; the modules of this folder work inside them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg import errors as pg
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from lagscale.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    PreconditionFailed,
    StoreTimeout,
    StoreUnavailable,
)
from lagscale.store.connection import AsyncWatchdogConnection, set_role, translate_error
from lagscale.store.registry import tables

ROLE = "lagscale_api"
Row = dict[str, Any]

#: Messages for violated constraints.
_CONFLICT_MESSAGES = {
    "tenant_name_key": "A tenant with this name already exists.",
    "cluster_tenant_id_name_key": "A cluster with this name already exists.",
    "monitor_name": "A monitor with this name already exists.",
    "namespace_binding_instance_namespace_key": "This namespace is already bound; delete that binding first.",
    "monitor_cluster_id_fkey": "Monitors use this cluster; delete them first.",
}
_NAME_CONSTRAINTS = {"tenant_name_key", "cluster_tenant_id_name_key", "monitor_name"}


@dataclass(frozen=True, slots=True)
class AccessScope:
    """Which rows a transaction sees, and on whose behalf it runs.

    Attributes:
        tenant_id: only this tenant's rows; None: every tenant's, for the platform's administrators.
        actor: who changes something, as the audit names it.
        origin: the client's address for the audit; None where no request asked.
        dry_run: roll the transaction back at its end, so that the answer is what the change would come to.
    """

    tenant_id: int | None
    actor: str
    origin: str | None = None
    dry_run: bool = False

    @property
    def platform(self) -> bool:
        """Whether this scope covers every tenant."""
        return self.tenant_id is None


@dataclass(frozen=True, slots=True)
class RegistrySession:
    """An open transaction, who acts in it, and from which address."""

    connection: AsyncConnection
    actor: str
    origin: str | None = None

    @property
    def tenant_id(self) -> int | None:
        """The tenant in whose context it runs; None of the platform."""
        return None

    async def execute(self, statement: sa.Executable) -> sa.CursorResult[Any]:
        """Execute a statement."""
        return await self.connection.execute(statement)

    async def fetch_all(self, statement: sa.Executable) -> list[Row]:
        """All rows of a statement."""
        return [row._asdict() for row in await self.execute(statement)]

    async def fetch_optional(self, statement: sa.Executable) -> Row | None:
        """The only row of a statement, or None."""
        row = (await self.execute(statement)).one_or_none()
        return None if row is None else row._asdict()

    async def fetch_existing(self, statement: sa.Executable) -> Row:
        """The only row of a statement.

        Raises:
            NotFound: there is none for this caller.
        """
        row = await self.fetch_optional(statement)
        if row is None:
            raise NotFound
        return row

    async def fetch_one(self, statement: sa.Executable) -> Row:
        """The only row of a statement."""
        return (await self.execute(statement)).one()._asdict()


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantSession(RegistrySession):
    """An open transaction in one tenant's context, with that tenant's row."""

    tenant: Row

    @property
    def tenant_id(self) -> int:
        """The tenant's id, which no URL shows."""
        return int(self.tenant["id"])


class RegistryDatabase:
    """Opens transactions in the role `lagscale_api`."""

    def __init__(self, url: str, *, size: int = 5, seconds: float = 2.5) -> None:
        """Prepare the engine; it connects at the first transaction.

        Args:
            url: as in `LAGSCALE_DATABASE_URL`; its user is a member of `lagscale_api`.
            size: connections at most.
            seconds: limit of each statement and of waiting for a free connection; below the time after which the
                watchdog closes a silent connection.
        """
        milliseconds = round(seconds * 1000)

        async def connect() -> AsyncWatchdogConnection:
            # As the scaler's: a store that accepts connections and then stays silent fails the request in time.
            connection = await AsyncWatchdogConnection.connect(url, connect_timeout=max(2, round(seconds)))
            # A cached plan of a small registry would compare each row with each of a grown one.
            connection.prepare_threshold = None
            await set_role(connection, ROLE)
            await connection.execute(f"set statement_timeout = {milliseconds}")
            await connection.commit()
            return connection

        self._engine = create_async_engine(
            "postgresql+psycopg://",
            async_creator=connect,
            pool_size=size,
            max_overflow=0,
            pool_timeout=seconds,
            pool_pre_ping=True,
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._engine.dispose()

    async def check(self) -> None:
        """Check that the store answers and has its schema.

        Raises:
            StoreUnavailable: it does not answer, or `lagscale migrate` has not run.
        """
        async with _translate_errors(), self._engine.connect() as connection:
            await connection.execute(sa.text("select version from registry_change"))

    def platform(
        self, actor: str, *, origin: str | None = None, dry_run: bool = False
    ) -> AbstractAsyncContextManager[RegistrySession]:
        """A transaction that sees every tenant's rows; only after the caller's key was checked."""
        return self._begin(AccessScope(None, actor, origin, dry_run))

    def within(self, scope: AccessScope) -> AbstractAsyncContextManager[RegistrySession]:
        """A transaction that sees what the scope may see."""
        return self._begin(scope)

    @asynccontextmanager
    async def _begin(self, scope: AccessScope) -> AsyncIterator[RegistrySession]:
        async with _translate_errors(), self._engine.begin() as connection:
            await _set_context(connection, scope.tenant_id)
            yield RegistrySession(connection, scope.actor, scope.origin)
            # Only deferred constraints would fail at the commit, and the schema has none.
            if scope.dry_run:
                await connection.rollback()

    @asynccontextmanager
    async def tenant(self, scope: AccessScope, name: str, *, lock: bool = False) -> AsyncIterator[TenantSession]:
        """A transaction in the named tenant's context.

        The tenant is looked up with the scope's own visibility, so another tenant's name and a missing one run the same
        statements and get the same answer. What follows sees that tenant's rows only, whoever asks. `lock` locks the
        tenant's row until the end, so that whatever is counted stays exact.

        Raises:
            NotFound: no tenant of this name for this scope.
        """
        async with self._begin(scope) as session:
            statement = sa.select(tables.tenant).where(tables.tenant.c.name == name)
            if lock:
                statement = statement.with_for_update(key_share=True)
            yield await as_tenant(session, await session.fetch_existing(statement))


async def as_tenant(session: RegistrySession, tenant: Row) -> TenantSession:
    """The rest of the transaction sees this tenant's rows only."""
    await _set_context(session.connection, tenant["id"])
    return TenantSession(session.connection, session.actor, session.origin, tenant=tenant)


async def as_platform(session: TenantSession) -> RegistrySession:
    """The rest of the transaction sees every tenant's rows; only where a platform administrator asks."""
    await _set_context(session.connection, None)
    return RegistrySession(session.connection, session.actor, session.origin)


async def _set_context(connection: AsyncConnection, tenant_id: int | None) -> None:
    # Local to the transaction: a pooled connection must not carry one caller's visibility to the next.
    await connection.execute(
        sa.text(
            "select set_config('lagscale.tenant', :tenant, true), set_config('lagscale.platform', :platform, true)"
        ),
        {"tenant": "", "platform": "on"} if tenant_id is None else {"tenant": str(tenant_id), "platform": "off"},
    )


@asynccontextmanager
async def _translate_errors() -> AsyncIterator[None]:
    try:
        yield
    except sa.exc.DBAPIError as wrong:
        raise (wrong if wrong.orig is None else _translate_driver_error(wrong.orig)) from wrong
    except sa.exc.TimeoutError as wrong:
        raise StoreTimeout("All connections to the store are busy; retry.") from wrong
    except (OSError, psycopg.Error) as wrong:
        # Connecting happens outside SQLAlchemy's own wrapping.
        raise _translate_driver_error(wrong) from wrong


def _translate_driver_error(cause: BaseException) -> BaseException:
    if isinstance(cause, pg.UniqueViolation | pg.ForeignKeyViolation | pg.RestrictViolation):
        constraint = cause.diag.constraint_name or ""
        # A duplicate name is an error of the given name; any other conflict is of the object in the path.
        named = {"field": "name"} if constraint in _NAME_CONSTRAINTS else {}
        return Conflict(_CONFLICT_MESSAGES.get(constraint), **named)
    if isinstance(cause, pg.InvalidParameterValue):
        # PostgreSQL's error for a missing role: no database of this server has been migrated yet.
        return StoreUnavailable("Database schema version mismatch; run `lagscale migrate`.")
    if isinstance(cause, pg.DataError):
        return InvalidInput.of("body", "holds a character or a number that cannot be stored")
    return translate_error(cause) or cause


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The row after a write; `created` and `changed` are both false when nothing had to change.

    `before` is the former row of a changed tenant.
    """

    row: Row
    created: bool = False
    changed: bool = False
    before: Row | None = None


@dataclass(frozen=True, slots=True)
class Precondition:
    """The state that the caller expects of the object.

    Attributes:
        versions: one of these; empty: any version, but the object exists.
        absent: it does not exist.
    """

    versions: frozenset[int] = frozenset()
    absent: bool = False


def check_precondition(row: Row | None, precondition: Precondition | None) -> None:
    """Check the caller's precondition.

    Raises:
        PreconditionFailed: it is not met.
    """
    if precondition is None:
        return
    if precondition.absent:
        if row is not None:
            text = "Already exists; omit If-None-Match to replace it, or choose another name."
            raise PreconditionFailed(text, field="If-None-Match")
        return
    if row is None:
        raise PreconditionFailed("Does not exist; omit If-Match to create it.")
    if precondition.versions and int(row["version"]) not in precondition.versions:
        read = " or ".join(str(version) for version in sorted(precondition.versions))
        raise PreconditionFailed(
            f"Version conflict: current version is {row['version']}, expected {read}; read it again and retry."
        )
