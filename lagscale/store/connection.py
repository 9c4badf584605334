"""Connections of the scaler's kind: one role, generic plans, and no wait without an end.

Opened by the scaler's and the API's wiring; every adapter that judges takes its connections from here.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.abc import PQGen
from psycopg_pool import AsyncConnectionPool

#: No answer of the store within this ends the connection; a call of KEDA has given up before.
RESPONSE_TIMEOUT_SECONDS = 3.0
#: The server ends a statement that nobody waits for any more.
_STATEMENT_MS = 2000
_CONNECT = {"connect_timeout": 2, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
_LOG_INTERVAL_SECONDS = 60.0
#: Samples are read by their key only: of a chunk that nobody analysed yet the planner would guess otherwise.
_PLANNER_SETTINGS = (
    "set plan_cache_mode = force_generic_plan; set jit = off; set max_parallel_workers_per_gather = 0; "
    "set enable_seqscan = off; set enable_bitmapscan = off"
)

Result = TypeVar("Result")
Pool = AsyncConnectionPool[AsyncConnection[Any]]


class _ReconnectLogFilter(logging.Filter):
    """The driver tells each failed attempt to connect; one line a minute says as much."""

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


class AsyncWatchdogConnection(AsyncConnection[Any]):
    """A connection that is cut when the server stays silent, so that a hanging store fails instead of blocking.

    A stopped server keeps its sockets open and acknowledges at TCP, and cancelling waits for it too; shutting the
    socket down makes the driver see the end at once.
    """

    async def wait(self, gen: PQGen[Result], *args: Any, **kwargs: Any) -> Result:
        watch = asyncio.get_running_loop().call_later(RESPONSE_TIMEOUT_SECONDS, self._abort)
        try:
            return await super().wait(gen, *args, **kwargs)
        finally:
            watch.cancel()

    def _abort(self) -> None:
        try:
            with socket.socket(fileno=os.dup(self.pgconn.socket)) as wire:
                wire.shutdown(socket.SHUT_RDWR)
        except (OSError, psycopg.Error):
            return  # Closed in the meantime, which is what was wanted.


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
        await connection.execute(_PLANNER_SETTINGS)
        await connection.execute(f"set statement_timeout = {_STATEMENT_MS}")

    return AsyncConnectionPool(
        url,
        connection_class=AsyncWatchdogConnection,
        kwargs={**_CONNECT, "autocommit": True, "application_name": application},
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
    connection = await AsyncConnection.connect(
        url,
        autocommit=True,
        application_name=application,
        **_CONNECT,  # type: ignore[arg-type]
    )
    try:
        await set_role(connection, role)
    except BaseException:
        await connection.close()
        raise
    return connection


async def set_role(connection: AsyncConnection[Any], role: str) -> None:
    """Step down from the login user to the service's role."""
    await connection.execute(sql.SQL("set role {}").format(sql.Identifier(role)))


async def set_tenant_context(connection: AsyncConnection[Any], tenant_id: int) -> None:
    """Restrict the rest of the transaction to one tenant's rows."""
    await connection.execute("select set_config('lagscale.tenant', %s, true)", [str(tenant_id)])
