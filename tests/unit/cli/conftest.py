"""Runs the declarative commands against an API in memory."""

from __future__ import annotations

from functools import partial

import httpx
import pytest

from services.cli.client import ApiClient
from services.cli.settings import CliSettings
from tests.support.command_line import Command, run_command
from tests.unit.cli.fake_api import FakeApi


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

    def client(settings: CliSettings, **_: object) -> ApiClient:
        return ApiClient(settings, httpx.MockTransport(fake), waits.append)

    monkeypatch.setattr("services.cli.client.ApiClient", client)

    return partial(run_command, monkeypatch, capsys)
