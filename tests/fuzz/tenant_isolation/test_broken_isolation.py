"""Walls that are broken on purpose: the random requests of two tenants find each hole."""

from __future__ import annotations

import random as seeded
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import httpx
import psycopg
import pytest

from devstack.database import Database
from lagscale.errors import NotAllowed, NotFound
from lagscale.store.registry import session as registry
from services.scaler.triggers import directory
from tests.conftest import migrate
from tests.fuzz.tenant_isolation.isolation_loops import Pair, RestIsolation, run_grpc_calls, run_statements
from tests.integration.api.conftest import fresh

pytestmark = pytest.mark.fuzz
Break = Callable[[pytest.MonkeyPatch], None]
#: So many would go by without a leak where there is none.
ENOUGH = 2000


@pytest.fixture
def shared_url(database: Database) -> Iterator[str]:
    """A database of each test alone: what it breaks stays broken."""
    name = fresh("broken").replace("-", "_")
    url = database.create_database(name)
    migrate(url)
    yield url
    database.drop_database(name)


@pytest.mark.parametrize(
    "hole",
    [
        "alter table cluster disable row level security",
        "create policy hole on audit_event for select to lagscale_api using (true)",
        "create or replace view tenant_lag_sample with (security_barrier) as select * from lag_sample",
    ],
)
async def test_a_hole_in_the_database_is_found_by_statements(pair: Pair, shared_url: str, hole: str) -> None:
    with psycopg.connect(shared_url) as connection:
        connection.execute(hole)  # type: ignore[call-overload]
    with pytest.raises(AssertionError):
        run_statements(Random(seeded.getrandbits(32)), pair, shared_url, ENOUGH)


def everybodys_sight(patch: pytest.MonkeyPatch) -> None:
    """Whoever asks, the tenant is looked for with the platform's sight."""
    found = registry.RegistryDatabase.tenant
    patch.setattr(
        registry.RegistryDatabase,
        "tenant",
        lambda self, scope, name, **how: found(self, replace(scope, tenant_id=None), name, **how),
    )


def an_honest_refusal(patch: pytest.MonkeyPatch) -> None:
    """What is another tenant's is refused, where what is nobody's is not found."""
    found = registry.RegistryDatabase.tenant

    def asked(self: Any, scope: registry.AccessScope, name: str, **how: Any) -> Any:
        if name == "t-000000000000":
            return found(self, scope, name, **how)
        return _refusing(found(self, scope, name, **how))

    patch.setattr(registry.RegistryDatabase, "tenant", asked)


class _refusing:
    def __init__(self, work: Any) -> None:
        self._work = work

    async def __aenter__(self) -> Any:
        try:
            return await self._work.__aenter__()
        except NotFound:
            raise NotAllowed from None

    async def __aexit__(self, *raised: Any) -> Any:
        return await self._work.__aexit__(*raised)


def a_look_at_all_names(patch: pytest.MonkeyPatch) -> None:
    """What the tenant does not have is looked for once more, where the name is of the usual length."""
    find = registry.RegistrySession.fetch_optional

    async def again(self: Any, statement: Any) -> Any:
        row = await find(self, statement)
        if row is None and "only-000000000000" not in map(str, statement.compile().params.values()):
            await self.execute(statement)
        return row

    patch.setattr(registry.RegistrySession, "fetch_optional", again)


@pytest.mark.parametrize("hole", [everybodys_sight, an_honest_refusal, a_look_at_all_names])
async def test_a_hole_in_the_api_is_found_by_requests(
    api: httpx.AsyncClient, pair: Pair, shared_url: str, monkeypatch: pytest.MonkeyPatch, hole: Break
) -> None:
    asked = RestIsolation(api, (await api.get("/openapi.json")).json(), pair, shared_url)
    hole(monkeypatch)
    with pytest.raises(AssertionError):
        await asked.run(Random(seeded.getrandbits(32)), ENOUGH)
    assert asked.sent > 0


async def test_a_hole_in_the_database_is_found_by_requests(api: httpx.AsyncClient, pair: Pair, shared_url: str) -> None:
    asked = RestIsolation(api, (await api.get("/openapi.json")).json(), pair, shared_url)
    with psycopg.connect(shared_url) as connection:
        connection.execute("create policy hole on scaling_freeze for select to lagscale_api using (true)")
    with pytest.raises(AssertionError, match="mark"):
        await asked.run(Random(seeded.getrandbits(32)), ENOUGH)


async def test_a_hole_in_the_scaler_is_found_by_calls(
    pair: Pair, stubs: dict[str, Any], shared_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_the_namespace(bindings: Any, _instance: str, namespace: str) -> int | None:
        return next((tenant for (_, bound), tenant in bindings.items() if bound == namespace), None)

    monkeypatch.setattr(directory, "find_tenant", of_the_namespace)
    with pytest.raises(AssertionError):
        await run_grpc_calls(Random(seeded.getrandbits(32)), stubs, pair, shared_url, ENOUGH)
