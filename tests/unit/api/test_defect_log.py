"""A defect met with a secret in hand is logged with its place, and without the values around it, in both forms."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from lagscale.telemetry import configure_logging
from services.api.clusters import routes
from services.api.clusters.schemas import ClusterIn
from tests.unit.api.test_problems import api, database

__all__ = ["api", "database"]

CANARY = "C4nary-0ddd-in-a-variable"


@pytest.fixture(params=[True, False], ids=["JSON", "console"])
def logged(request: pytest.FixtureRequest) -> None:
    """The service's own logs, with every level shown."""
    configure_logging("api", "debug", json=request.param)


@pytest.fixture
def careless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Creating a cluster breaks while it holds the body."""

    def build_cluster_spec(_name: str, given: ClusterIn, **_: Any) -> None:
        secrets = dict(given.secrets or {})
        raise KeyError(sorted(secrets))

    monkeypatch.setattr(routes, "build_cluster_spec", build_cluster_spec)


@pytest.mark.usefixtures("logged", "careless")
async def test_the_trace_of_a_defect_holds_no_values(
    api: httpx.AsyncClient, capsys: pytest.CaptureFixture[str]
) -> None:
    body = {"name": "main", "bootstrapServers": ["a:1"], "secrets": {"password": CANARY, "key": CANARY}}
    answer = await api.post("/v1/tenants/shop/clusters", json=body, headers={"X-Canary": CANARY})
    assert answer.status_code == 500
    said = capsys.readouterr()
    assert "request_error" in said.err
    assert "create_cluster" in said.err
    assert CANARY not in answer.text + said.out + said.err
