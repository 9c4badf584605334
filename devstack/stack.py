"""The whole product as separate processes on one machine: their environment, start and stop.

`Stack` is used by the demo and by the end-to-end tests; `python -m devstack up` runs one in the background.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import httpx
from cryptography.fernet import Fernet

from devstack.broker import Broker
from devstack.database import Database
from devstack.server import Server, free_port

ROOT = Path(__file__).resolve().parents[1]
_SCRIPTS = Path(sys.executable).parent
#: Spark is ready after about 30 s on two cores, and after a multiple of that on a busy machine.
_READY_SECONDS = {"scraper": 180.0, "scaler": 60.0, "api": 60.0}
SERVICES = ("scraper", "scaler", "api")
#: Variables of a one-monitor system; they are passed to the services unchanged.
ONE_MONITOR = (
    "KAFKA_BROKERS", "KAFKA_TOPIC", "KAFKA_GROUP_ID", "LAG_THRESHOLD", "SUSTAIN_SECONDS", "SAMPLING_INTERVAL",
    "WINDOW_SIZE", "GRPC_PORT",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Addresses:
    """Listen addresses of a stack, and its keys; default: free ports and new keys."""

    database_url: str
    api: str = field(default_factory=lambda: f"127.0.0.1:{free_port()}")
    grpc: str = field(default_factory=lambda: f"127.0.0.1:{free_port()}")
    scaler_http: str = field(default_factory=lambda: f"127.0.0.1:{free_port()}")
    scraper_http: str = field(default_factory=lambda: f"127.0.0.1:{free_port()}")
    admin_key: str = field(default_factory=lambda: f"dev-{secrets.token_urlsafe(24)}")
    secret_key: str = field(default_factory=lambda: Fernet.generate_key().decode())

    @property
    def api_url(self) -> str:
        """Base URL of the API."""
        return f"http://{self.api}"

    def environment(self, service: str, cache: Path, tick_seconds: float) -> dict[str, str]:
        """The environment of one service. Settings of Lagscale are not inherited, so that the environment of a test has no effect."""
        inherited = {name: text for name, text in os.environ.items() if not name.startswith("LAGSCALE_")}
        return {name: text for name, text in inherited.items() if name not in ONE_MONITOR} | {
            "LAGSCALE_DATABASE_URL": self.database_url,
            "LAGSCALE_SECRET_KEYS": self.secret_key,
            "LAGSCALE_TICK_SECONDS": f"{tick_seconds:g}",
            "LAGSCALE_CACHE_DIR": str(cache / service),
            "LAGSCALE_LOG_FORMAT": "json",
            **{
                "scraper": {"LAGSCALE_SCRAPER_HTTP_LISTEN": self.scraper_http},
                "scaler": {
                    "LAGSCALE_SCALER_GRPC_LISTEN": self.grpc,
                    "LAGSCALE_SCALER_HTTP_LISTEN": self.scaler_http,
                },
                "api": {"LAGSCALE_API_LISTEN": self.api, "LAGSCALE_API_ADMIN_KEY": self.admin_key},
                "cli": {},
            }[service],
        }

    def ready_url(self, service: str) -> str:
        """URL of the readiness check of a service."""
        listen = {"scraper": self.scraper_http, "scaler": self.scaler_http, "api": self.api}[service]
        return f"http://{listen}/readyz"


class Stack:
    """The three services on an existing database.

    Args:
        database_url: an existing, empty or migrated database.
        folder: for its caches and logs.
        tick_seconds: the scraper's tick.
        extra: variables for every service, for example those of a one-monitor system.
        detached: the processes continue to run when this one ends.
        addresses: listen addresses; default: free ports and new keys.
        on_spawn: called with each service when it is started.
    """

    def __init__(
        self,
        database_url: str,
        folder: Path,
        *,
        tick_seconds: float = 1.0,
        extra: Mapping[str, str] | None = None,
        detached: bool = False,
        addresses: Addresses | None = None,
        on_spawn: Callable[[Server], None] | None = None,
    ) -> None:
        self.addresses = addresses or Addresses(database_url)
        self.folder = folder
        self._tick_seconds = tick_seconds
        self._extra = dict(extra or {})
        self._detached = detached
        self._on_spawn = on_spawn
        self.servers: dict[str, Server] = {}

    def migrate(self) -> None:
        """Run `lagscale migrate`.

        Raises:
            ServerFailed: the migration failed; with its output.
        """
        server = Server("migration", self.folder / "migrate.log")
        env = self.addresses.environment("cli", self.folder / "cache", self._tick_seconds)
        server.spawn([str(_SCRIPTS / "lagscale"), "migrate"], env, ROOT)
        assert server.process is not None  # noqa: S101  # Set by `spawn`.
        if server.process.wait(120) != 0:
            server.await_ready(lambda: False)

    def spawn(self, service: str, name: str | None = None, **variables: str) -> Server:
        """Start one service, or another replica with its own `name`, without waiting."""
        name = name or service
        server = Server(name, self.folder / f"{name}.log", detached=self._detached)
        server.on_spawn = self._on_spawn
        env = self.addresses.environment(service, self.folder / "cache" / name, self._tick_seconds)
        server.spawn([str(_SCRIPTS / f"lagscale-{service}")], env | self._extra | variables, self.folder)
        self.servers[name] = server
        return server

    def await_ready(self, service: str, name: str | None = None, url: str | None = None) -> None:
        """Wait until a started service is ready."""
        address = url or self.addresses.ready_url(service)
        self.servers[name or service].await_ready(lambda: is_ready(address), _READY_SECONDS[service])

    def start(self, on_step: Callable[[str], None] = lambda _: None) -> None:
        """Migrate, start all services, wait until all are ready."""
        on_step("migrating the database")
        self.migrate()
        for service in SERVICES:
            self.spawn(service)
        for service in ("api", "scaler", "scraper"):
            on_step(f"waiting for the {service}")
            self.await_ready(service)

    def stop(self) -> None:
        """Stop all services; Spark in the scraper gets time to stop."""
        for server in self.servers.values():
            server.request_stop()
        for server in self.servers.values():
            server.stop(seconds=15)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def is_ready(url: str) -> bool:
    """Whether a GET returns 200."""
    try:
        return httpx.get(url, timeout=2).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def one_monitor_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of a one-monitor system that are set."""
    return {name: environ[name] for name in ONE_MONITOR if environ.get(name)}


def parts() -> tuple[Broker, Database]:
    """The broker and the database of a stack that ends with this process; not started."""
    return Broker(), Database()
