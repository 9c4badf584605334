"""The API on a real database: one migrated database for a module, fresh tenants for each test."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from lagscale.kafka.addresses import AddressRules
from lagscale.kafka.probe.runner import ProbeRunner
from tests.support.api_server import ADMIN, NO_PROBES, bearer, serving


def fresh(word: str) -> str:
    """A name that no other test uses."""
    return f"{word}-{uuid.uuid4().hex[:10]}"


@pytest.fixture
def probe_runner() -> tuple[AddressRules, ProbeRunner]:
    """How clusters are looked at; a module may have its own way."""
    return NO_PROBES


@pytest.fixture
async def api(shared_url: str, probe_runner: tuple[AddressRules, ProbeRunner]) -> AsyncIterator[httpx.AsyncClient]:
    """The API, asked with the bootstrap key."""
    async with serving(shared_url, probe_runner=probe_runner) as client:
        client.headers.update(bearer(ADMIN))
        yield client


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
