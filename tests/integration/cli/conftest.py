"""The command against `lagscale-api` as a process on a real database; fresh tenants for each test."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from devstack.server import Server, free_port
from lagscale.store.encryption import generate_key
from tests.integration.cli.manifest_files import SHOP
from tests.support.command_line import Command, CommandResult, run_command

ROOT = Path(__file__).parents[3]
ADMIN = "bootstrap-key-of-this-test"


def fresh(word: str) -> str:
    """A name that no other test uses."""
    return f"{word}-{uuid.uuid4().hex[:10]}"


def environment(**variables: str) -> dict[str, str]:
    """This process's variables without Lagscale's own, and these."""
    inherited = {name: text for name, text in os.environ.items() if not name.startswith(("LAGSCALE_", "KAFKA_"))}
    return inherited | {"PYTHONPATH": str(ROOT)} | variables


@dataclass(frozen=True)
class Api:
    """A running API."""

    url: str
    server: Server

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        """What it answers to the platform's administrator."""
        answer = httpx.request(
            method, f"{self.url}/v1{path}", json=body, headers={"Authorization": f"Bearer {ADMIN}"}, timeout=20
        )
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None


def started(folder: Path, url: str) -> Api:
    """An API on that database; it answers already."""
    address = f"127.0.0.1:{free_port()}"
    server = Server("lagscale-api", folder / "api.log")
    server.spawn(
        [sys.executable, "-m", "services.api"],
        env=environment(
            LAGSCALE_API_LISTEN=address,
            LAGSCALE_API_ADMIN_KEY=ADMIN,
            LAGSCALE_DATABASE_URL=url,
            LAGSCALE_SECRET_KEYS=generate_key(),
            LAGSCALE_TICK_SECONDS="1",
        ),
        cwd=ROOT,
    )

    def ready() -> bool:
        try:
            return httpx.get(f"http://{address}/readyz", timeout=5).is_success
        except httpx.TransportError:
            return False

    server.await_ready(ready)
    return Api(f"http://{address}", server)


@pytest.fixture(scope="module")
def api(shared_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """One API for a module."""
    running = started(tmp_path_factory.mktemp("api"), shared_url)
    yield running
    running.server.stop()


@pytest.fixture
def other_api(migrated_url: str, tmp_path: Path) -> Iterator[Api]:
    """An API on a fresh database."""
    running = started(tmp_path / "other", migrated_url)
    yield running
    running.server.stop()


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], api: Api) -> Command:
    """Runs `lagscale` with these arguments: by default against the module's API as the platform's administrator."""
    for name in [name for name in os.environ if name.startswith("LAGSCALE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str, key: str = ADMIN, against: Api = api) -> CommandResult:
        monkeypatch.setenv("LAGSCALE_API_URL", against.url)
        monkeypatch.setenv("LAGSCALE_API_KEY", key)
        return run_command(monkeypatch, capsys, *arguments)

    return run


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a fresh tenant, and the variable that its cluster's password comes from."""
    monkeypatch.setenv("KAFKA_PASSWORD", "canary-of-apply")
    file = tmp_path / "shop.yaml"
    file.write_text(SHOP.format(tenant=fresh("shop")))
    return file
