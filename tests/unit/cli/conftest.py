"""Runs the declarative commands against an API in memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import httpx
import pytest

from services.cli import __main__ as cli
from services.cli.client import ApiClient
from services.cli.commands import apply, objects
from services.cli.settings import CliSettings
from tests.unit.cli.fake_api import FakeApi


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


Command = Callable[..., Ran]


@pytest.fixture
def fake() -> FakeApi:
    """An API that knows the tenant `shop` and its cluster `main`."""
    return FakeApi(
        {
            "/v1/tenants/shop": {"name": "shop", "version": 1},
            "/v1/tenants/shop/clusters/main": {"name": "main", "bootstrapServers": ["a:1"], "version": 1},
        }
    )


@pytest.fixture
def waits() -> list[float]:
    """The waits that the client asked for."""
    return []


@pytest.fixture
def command(
    fake: FakeApi, waits: list[float], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Runs `lagscale` with these arguments."""

    def client(settings: CliSettings) -> ApiClient:
        return ApiClient(settings, httpx.MockTransport(fake), waits.append)

    for module in (apply, objects):
        monkeypatch.setattr(module, "ApiClient", client)
    monkeypatch.setattr(cli, "configure_logging", lambda *_, **__: None)

    def run(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["lagscale", *arguments])
        capsys.readouterr()
        code = cli.main()
        return Ran(code, *capsys.readouterr())

    return run
