"""A real database on loopback: PostgreSQL 17 with TimescaleDB if available, otherwise plain PostgreSQL."""

from __future__ import annotations

import contextlib
import hashlib
import signal
import uuid
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from devstack.claims import Claim
from devstack.environment import read_setting
from devstack.postgres import PostgresInstallation, Source, find_installation
from devstack.server import Server, console, family, free_port, signal_all, started_at, wait_until

_ROOT = Path(__file__).resolve().parents[1]
_CLONE = hashlib.sha256(str(_ROOT).encode()).hexdigest()[:12]


class Database:
    """A database server. `LAGSCALE_DATABASE_URL` takes precedence; then nothing is started or stopped.

    Args:
        name: name of its data folder in this clone; default: new data, removed at the end.
        port: on loopback; a free one by default.
        detached: continues to run when this process ends.
    """

    def __init__(self, name: str | None = None, *, port: int | None = None, detached: bool = False) -> None:
        self._external = read_setting("LAGSCALE_DATABASE_URL")
        self._persistent = name is not None
        self._name = f"{_CLONE}-{name or uuid.uuid4().hex[:8]}"
        self._port = port or free_port()
        self._installation: PostgresInstallation | None = None
        self._claim: Claim | None = None
        log = _ROOT / ".devstack/log" / f"database-{name or self._name}.log"
        # SIGINT is PostgreSQL's fast shutdown: it does not wait for clients to disconnect.
        self.server = Server("database", log, stop_signal=signal.SIGINT, detached=detached)

    @property
    def url(self) -> str:
        """The address of its first database, as the superuser."""
        return self._external or f"postgresql://postgres@127.0.0.1:{self._port}/postgres"

    @property
    def port(self) -> int:
        """Its port on loopback."""
        return urlsplit(self.url).port or 5432

    @property
    def pid(self) -> int:
        """Process id of the server's first process."""
        return self.server.pid

    @property
    def edition(self) -> str:
        """`timescaledb-community`, `timescaledb-apache` or `postgresql`."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            extension = connection.execute("select from pg_available_extensions where name = 'timescaledb'").fetchone()
            if extension is None:
                return "postgresql"
            row = connection.execute("select current_setting('timescaledb.license', true)").fetchone()
        return "timescaledb-community" if row is not None and row[0] == "timescale" else "timescaledb-apache"

    def start(self) -> None:
        """Install what is missing, start on the same data and port as before, wait until it is ready."""
        if self._external:
            console.print(f"database: {Source.EXTERNAL.value}", highlight=False)
            return
        self._installation = self._installation or find_installation(_ROOT / ".devstack")
        if self._claim is None and not self._persistent:
            self._claim = Claim(self._installation.folder(self._name))
        self._installation.initialize(self._name)
        self.server.spawn(self._installation.command(self._name, self._port, detached=self.server.detached))
        if self._claim is not None:
            self._claim.record_server(self.server)
        self.server.await_ready(self._is_ready)

    def stop(self) -> None:
        """Fast shutdown; unnamed data are removed."""
        if self._external:
            return
        if self.server.process is not None:
            self.resume()
        self.server.stop()
        if self._claim is not None:
            self._claim.release()
            self._claim = None

    def kill(self) -> None:
        """SIGKILL to the server and all its backends."""
        children = family(self.pid)[1:]
        self.server.kill()
        signal_all(children, signal.SIGKILL)
        wait_until(lambda: all(started_at(pid) is None for pid in children), 10, "backends did not end")

    def pause(self) -> None:
        """SIGSTOP: connections stay open and get no response."""
        # The first process stops first, so that it starts no backend that would not be stopped.
        signal_all([self.pid], signal.SIGSTOP)
        signal_all(family(self.pid), signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        signal_all(family(self.pid), signal.SIGCONT)

    def create_database(self, name: str) -> str:
        """Create an empty database; its URL."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        return self._url_of(name)

    def existing_or_new(self, name: str) -> str:
        """The URL of the database with this name; it is created if it does not exist."""
        try:
            return self.create_database(name)
        except psycopg.errors.DuplicateDatabase:
            return self._url_of(name)

    def drop_database(self, name: str) -> None:
        """Drop a database, ending its connections."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _url_of(self, name: str) -> str:
        return urlunsplit(urlsplit(self.url)._replace(path=f"/{name}"))

    def _is_ready(self) -> bool:
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.url, connect_timeout=2):
            return True
        return False
