"""Connections to the database, each in one role: async pools of the scaler and the API, and the scraper's own.

No connection waits without an end. Every adapter takes its connection from here, and wraps its statements in
`translate_errors()`, which turns driver errors into the family's; wiring opens the connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Final, TypeVar

import psycopg
import psycopg_pool
from psycopg import AsyncConnection, Connection, sql
from psycopg import errors as pg
from psycopg.abc import PQGen
from psycopg.pq.abc import PGconn
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from lagscale.errors import Conflict, LagscaleError, StoreTimeout, StoreUnavailable
from lagscale.store.queries import load

SCRAPER_ROLE: Final = "lagscale_scraper"
#: Seconds of silence after which a connection is cut. A call of KEDA has given up before the first.
RESPONSE_TIMEOUT_SECONDS: Final = 3.0
SCRAPER_RESPONSE_TIMEOUT_SECONDS: Final = 4.0
_CONNECT: Final[Mapping[str, Any]] = {
    "connect_timeout": 2,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "autocommit": True,
}
#: Samples are read by their key only: of a chunk that nobody analyzed yet the planner would guess otherwise. The
#: server ends a statement that nobody waits for any more.
_POOL_SETTINGS: Final = (
    "set plan_cache_mode = force_generic_plan; set jit = off; set max_parallel_workers_per_gather = 0; "
    "set enable_seqscan = off; set enable_bitmapscan = off; set statement_timeout = '2s'"
)
#: A stopped scraper must not keep the lease's row locked: the server ends its transaction.
_SCRAPER_SETTINGS: Final = (
    "set statement_timeout = '3s'; set idle_in_transaction_session_timeout = '2s'; set jit = off; "
    "set max_parallel_workers_per_gather = 0"
)
#: The driver reads these formats only, and a role or a database may have others as its defaults.
_FORMATS: Final = "set intervalstyle = postgres; set datestyle = iso, mdy; set extra_float_digits = 1"
#: Only a statement that asks for it keeps its plan, as it reads by a key: a plan that is kept from a small registry
#: compares each row with each of a grown one.
_NO_PREPARE: Final = sys.maxsize
_LOG_INTERVAL_SECONDS: Final = 60.0

#: The first matching row applies; an error without one is a defect and passes unchanged.
_TRANSLATIONS: tuple[tuple[tuple[type[Exception], ...], type[LagscaleError], str | None], ...] = (
    ((psycopg_pool.PoolTimeout, psycopg_pool.TooManyRequests), StoreTimeout, None),
    (
        (pg.QueryCanceled, pg.LockNotAvailable, pg.ConnectionTimeout, pg.IdleInTransactionSessionTimeout),
        StoreTimeout,
        None,
    ),
    ((pg.UniqueViolation, pg.ExclusionViolation), Conflict, None),
    (
        (pg.UndefinedTable, pg.UndefinedColumn, pg.UndefinedFunction, pg.UndefinedObject, pg.InvalidSchemaName),
        StoreUnavailable,
        "Database schema version mismatch; run `lagscale migrate`.",
    ),
    (
        (pg.InsufficientPrivilege, pg.InvalidPassword, pg.InvalidAuthorizationSpecification),
        StoreUnavailable,
        "The database rejected the login or role of this service; check LAGSCALE_DATABASE_URL and the roles.",
    ),
    ((psycopg.OperationalError, psycopg.InterfaceError, psycopg_pool.PoolClosed, OSError), StoreUnavailable, None),
)

Result = TypeVar("Result")
Pool = AsyncConnectionPool[AsyncConnection[Any]]


class AsyncWatchdogConnection(AsyncConnection[Any]):
    """A connection that is cut when the server stays silent, so that a hanging store fails instead of blocking."""

    async def wait(self, gen: PQGen[Result], *args: Any, **kwargs: Any) -> Result:
        watch = asyncio.get_running_loop().call_later(RESPONSE_TIMEOUT_SECONDS, _shut_down, self.pgconn)
        try:
            return await super().wait(gen, *args, **kwargs)
        finally:
            watch.cancel()


class WatchdogConnection(Connection[Any]):
    """The same for threads; `response_timeout_seconds` may be set once it is open."""

    response_timeout_seconds = SCRAPER_RESPONSE_TIMEOUT_SECONDS

    def wait(self, gen: PQGen[Result], *args: Any, **kwargs: Any) -> Result:
        watch = threading.Timer(self.response_timeout_seconds, _shut_down, [self.pgconn])
        watch.daemon = True
        watch.start()
        try:
            return super().wait(gen, *args, **kwargs)
        finally:
            watch.cancel()


def _shut_down(pgconn: PGconn) -> None:
    """Shut the socket down, so that the driver sees the end at once.

    A stopped server keeps its sockets open and acknowledges at TCP, and cancelling waits for it too.
    """
    # A connection that was closed in the meantime needs no end.
    with contextlib.suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(pgconn.socket)) as wire:
        wire.shutdown(socket.SHUT_RDWR)


def open_pool(url: str, role: str, size: int, *, application: str) -> Pool:
    """A pool, not yet opened: call `open(wait=False)` on it, so that a service starts while the store is away.

    Args:
        url: the database; its user must be a member of the role.
        role: what every connection becomes.
        size: connections kept; two to four for each core of the database's share, more only queue.
        application: how the connections are named in the database's views.
    """

    driver = logging.getLogger("psycopg.pool")
    if not any(isinstance(each, _ReconnectLogFilter) for each in driver.filters):
        driver.addFilter(_ReconnectLogFilter())

    async def configure(connection: AsyncConnection[Any]) -> None:
        await set_role(connection, role)
        await connection.execute(_POOL_SETTINGS)

    return AsyncConnectionPool(
        url,
        connection_class=AsyncWatchdogConnection,
        kwargs={**_CONNECT, "application_name": application},
        configure=configure,
        min_size=size,
        max_size=size,
        open=False,
        timeout=RESPONSE_TIMEOUT_SECONDS,
        # A given-up attempt is made again by the next caller, so the pool is back soon after the store is.
        reconnect_timeout=2.0,
        name=application,
    )


async def connect(url: str, role: str, *, application: str) -> AsyncConnection[Any]:
    """One connection outside the pool, in the role and in autocommit, for LISTEN.

    Raises:
        psycopg.Error: the store does not answer, or refuses.
    """
    connection = await AsyncConnection.connect(url, application_name=application, **_CONNECT)
    try:
        await set_role(connection, role)
    except BaseException:
        await connection.close()
        raise
    return connection


async def set_role(connection: AsyncConnection[Any], role: str) -> None:
    """Step down from the login user to the service's role, and set the formats that the driver reads."""
    await connection.execute(_set_role(role))


async def fetch_rows(
    connection: AsyncConnection[Any],
    statement: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    prepare: bool = False,
) -> list[dict[str, Any]]:
    """The rows of a named statement, each as column -> value."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(load(statement), parameters, prepare=prepare or None)
        return await cursor.fetchall()


async def set_tenant_context(connection: AsyncConnection[Any], tenant_id: int) -> None:
    """Restrict the rest of the transaction to one tenant's rows."""
    await connection.execute("select set_config('lagscale.tenant', %s, true)", [str(tenant_id)])


def _set_role(role: str) -> sql.Composed:
    return sql.SQL("set role {}; {}").format(sql.Identifier(role), sql.SQL(_FORMATS))


class ScraperDatabase:
    """The scraper's connection, opened at need and again after it broke. Not for several threads at once.

    Every method raises `StoreUnavailable` if the store does not answer.

    Args:
        url: the database.
        application: how the connection is named in the database's views.
        response_timeout_seconds: a server that is silent for longer is away; more than the longest statement takes.
    """

    def __init__(
        self,
        url: str,
        *,
        application: str = "lagscale-scraper",
        response_timeout_seconds: float = SCRAPER_RESPONSE_TIMEOUT_SECONDS,
    ) -> None:
        self._url = url
        self._response_timeout_seconds = response_timeout_seconds
        self._application = application
        self._connection: WatchdogConnection | None = None

    @contextlib.contextmanager
    def transaction(self) -> Iterator[WatchdogConnection]:
        """The connection inside a transaction.

        Raises:
            StoreUnavailable: the store did not answer; nothing was written.
        """
        with translate_errors():
            connection = self._connect()
            try:
                with connection.transaction():
                    yield connection
            except BaseException:
                if connection.broken:
                    self.close()
                raise

    def now_ms(self) -> tuple[float, int]:
        """The database's clock in milliseconds since 1970, and the version of the registrations."""
        with self.transaction() as connection:
            row = connection.execute(load("scrape_clock"), prepare=True).fetchone()
        return (0.0, 0) if row is None else (float(row[0]), int(row[1]))

    def close(self) -> None:
        """Close the connection; the next transaction opens another."""
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error, OSError):
                self._connection.close()
            self._connection = None

    def _connect(self) -> WatchdogConnection:
        if self._connection is None or self._connection.closed:
            connection = WatchdogConnection.connect(self._url, application_name=self._application, **_CONNECT)
            connection.prepare_threshold = _NO_PREPARE
            try:
                connection.execute(_set_role(SCRAPER_ROLE))
                connection.execute(_SCRAPER_SETTINGS)
            except BaseException:
                connection.close()
                raise
            connection.response_timeout_seconds = self._response_timeout_seconds
            self._connection = connection
        return self._connection


class _ReconnectLogFilter(logging.Filter):
    """The driver logs each failed attempt to connect; one line a minute says as much."""

    def __init__(self) -> None:
        super().__init__()
        self._logged_at = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno > logging.WARNING:
            return True
        due = record.created - self._logged_at >= _LOG_INTERVAL_SECONDS
        if due:
            self._logged_at = record.created
        return due


def translate_error(error: BaseException) -> LagscaleError | None:
    """The family's error for a driver's, without its text, which may name addresses; None for anything else."""
    for classes, family, text in _TRANSLATIONS:
        if isinstance(error, classes):
            return family(text)
    return None


class ErrorTranslation:
    """Translates driver errors, in a `with` or an `async with`."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        translation = None if error is None else translate_error(error)
        if translation is not None:
            raise translation from error

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, traceback)


def translate_errors() -> ErrorTranslation:
    """A context in which driver errors become the family's; the driver's error is the cause."""
    return ErrorTranslation()
