"""The scraper's synchronous connection: one role, no wait without an end.

The scraper opens one per process and hands it to `postgres_sync`, `targets`, `leases` and `states`.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any, TypeVar

import psycopg
from psycopg import Connection
from psycopg.abc import PQGen

from lagscale.store.faults import translate_errors
from lagscale.store.queries import load

ROLE = "lagscale_scraper"
#: A server that is silent for this long is away; seconds.
RESPONSE_TIMEOUT_SECONDS = 4.0
_CONNECT = {"connect_timeout": 2, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
# A stopped scraper must not keep the lease's row locked: the server ends its transaction.
_LIMITS = (
    "set statement_timeout = '3s'; set idle_in_transaction_session_timeout = '2s'; set jit = off; "
    "set max_parallel_workers_per_gather = 0"
)

#: Only what asks for it keeps its plan, as it reads by a key: one that is kept from a small registry compares each row
#: with each of a grown one.
_NO_PREPARE = sys.maxsize

Result = TypeVar("Result")


class WatchdogConnection(Connection[Any]):
    """A connection that is cut when the server stays silent; a stopped server would block its client for ever."""

    response_timeout_seconds = RESPONSE_TIMEOUT_SECONDS

    def wait(self, gen: PQGen[Result], *args: Any, **kwargs: Any) -> Result:
        watch = threading.Timer(self.response_timeout_seconds, self._abort)
        watch.daemon = True
        watch.start()
        try:
            return super().wait(gen, *args, **kwargs)
        finally:
            watch.cancel()

    def _abort(self) -> None:
        with contextlib.suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self.pgconn.socket)) as wire:
            wire.shutdown(socket.SHUT_RDWR)


class ScraperDatabase:
    """One connection that is opened at need, and again after it broke. Not for several threads at once.

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
        response_timeout_seconds: float = RESPONSE_TIMEOUT_SECONDS,
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
        """The database's clock in milliseconds since 1970, and the version of the registrations.

        Raises:
            StoreUnavailable: the store did not answer.
        """
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
            connection = WatchdogConnection.connect(
                self._url,
                autocommit=True,
                application_name=self._application,
                **_CONNECT,  # type: ignore[arg-type]
            )
            connection.prepare_threshold = _NO_PREPARE
            try:
                connection.execute(f"set role {ROLE}; {_LIMITS}")
            except BaseException:
                connection.close()
                raise
            connection.response_timeout_seconds = self._response_timeout_seconds
            self._connection = connection
        return self._connection
