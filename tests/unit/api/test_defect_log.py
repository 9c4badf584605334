"""A defect met with a secret in hand is logged with its place, and without the values around it, in both forms."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from lagscale.telemetry import configure_logging
from tests.unit.api.test_problems import Broken, api, operations

__all__ = ["api", "operations"]

CANARY = "C4nary-0ddd-in-a-variable"


@pytest.fixture(params=[True, False], ids=["JSON", "console"])
def logged(request: pytest.FixtureRequest) -> None:
    """The service's own logs, with every level shown."""
    configure_logging("api", "debug", json=request.param)


class Careless(Broken):
    """Breaks while it holds the body."""

    async def create_cluster(self, _scope: Any, _tenant: str, given: Any) -> Any:
        secrets = dict(given.secrets)
        raise KeyError(sorted(secrets))


@pytest.fixture
def careless(operations: Broken) -> None:
    operations.__class__ = Careless


@pytest.mark.usefixtures("logged", "careless")
async def test_the_trace_of_a_defect_holds_no_values(
    api: httpx.AsyncClient, capsys: pytest.CaptureFixture[str]
) -> None:
    body = {"name": "main", "bootstrapServers": ["a:1"], "secrets": {"password": CANARY, "key": CANARY}}
    answer = await api.post("/v1/tenants/shop/clusters", json=body, headers={"X-Canary": CANARY})
    assert answer.status_code == 500
    said = capsys.readouterr()
    assert "request_broke" in said.err
    assert "create_cluster" in said.err
    assert CANARY not in answer.text + said.out + said.err
