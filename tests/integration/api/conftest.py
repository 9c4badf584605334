"""The API on a real database: one migrated database for a module, fresh tenants for each test."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from lagscale.kafka.addresses import ANYWHERE, AddressRules
from lagscale.kafka.looking import Looks
from lagscale.store.pool import open_pool
from lagscale.store.postgres import PostgresVerdicts
from lagscale.store.recent import RecentRounds
from lagscale.store.registry.database import RegistryDatabase
from lagscale.store.secrets import SecretBox, generate_key
from services.api.access import Access
from services.api.app import Parts, create_app
from services.api.conditions import Conditions
from services.api.evidence import Evidence
from services.api.explanations import Explanations
from services.api.operations import Operations
from services.api.preflights import Preflights
from services.api.validation import Validation

ADMIN = "bootstrap-key-of-this-test"
SECRET_KEY = generate_key()


def fresh(word: str) -> str:
    """A name that no other test uses."""
    return f"{word}-{uuid.uuid4().hex[:10]}"


@pytest.fixture
def looks() -> tuple[AddressRules, Looks]:
    """How clusters are looked at: not at all, because those of most tests are nowhere. A module may have its own."""
    return ANYWHERE, Looks(seconds=0)


@pytest.fixture
async def api(shared_url: str, looks: tuple[AddressRules, Looks]) -> AsyncIterator[httpx.AsyncClient]:
    """The API, asked with the bootstrap key."""
    database = RegistryDatabase(shared_url, size=4)
    pool = open_pool(shared_url, "lagscale_scaler", 1, application="test")
    await pool.open(wait=True)
    operations = Operations(database, SecretBox(SECRET_KEY), tick_seconds=1.0)
    verdicts = PostgresVerdicts(pool)
    evidence, explanations = Evidence(database, verdicts), Explanations(database, verdicts)
    conditions = Conditions(database, RecentRounds(pool))
    preflights = Preflights(database, SecretBox(SECRET_KEY), *looks)
    access = Access(database, ADMIN)
    validation = Validation(database, operations, preflights, verdicts)
    app = create_app(Parts(database, access, operations, evidence, explanations, conditions, preflights, validation))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://api", headers={"Authorization": f"Bearer {ADMIN}"}
    ) as client:
        yield client
    await pool.close()
    await database.close()


@dataclass(frozen=True)
class Shop:
    """A tenant with a cluster, and the way to it."""

    api: httpx.AsyncClient
    name: str

    @property
    def path(self) -> str:
        return f"/v1/tenants/{self.name}"

    async def monitor(self, url_name: str, /, **given: Any) -> httpx.Response:
        body = {"cluster": "main", "consumerGroup": "readers", "topics": ["orders"], **given}
        return await self.api.put(f"{self.path}/monitors/{url_name}", json=body)

    async def key(self, role: str) -> dict[str, str]:
        """The header of a fresh key."""
        made = await self.api.post(f"{self.path}/keys", json={"name": "test", "role": role})
        assert made.status_code == 201, made.text
        return {"Authorization": f"Bearer {made.json()['key']}"}


async def open_shop(api: httpx.AsyncClient) -> Shop:
    shop = Shop(api, fresh("shop"))
    assert (await api.put(shop.path, json={})).status_code == 201
    made = await api.put(f"{shop.path}/clusters/main", json={"bootstrapServers": ["127.0.0.1:9092"]})
    assert made.status_code == 201, made.text
    return shop


@pytest.fixture
async def shop(api: httpx.AsyncClient) -> Shop:
    """A fresh tenant with the cluster `main`."""
    return await open_shop(api)


@pytest.fixture
async def other(api: httpx.AsyncClient) -> Shop:
    """Another fresh tenant with the cluster `main`."""
    return await open_shop(api)
