"""`?dryRun=true`: the answer is what the change would come to, and nothing is changed, not even the audit."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from lagscale.store.registry.session import RegistryDatabase
from tests.integration.api.conftest import Shop, fresh

pytestmark = pytest.mark.integration

DRY = {"dryRun": "true"}
SCRAM = {"protocol": "SASL_PLAINTEXT", "mechanism": "SCRAM-SHA-512", "username": "u"}


async def counts(url: str) -> list[tuple[str, int]]:
    database = RegistryDatabase(url, size=1)
    tables = ("tenant", "cluster", "monitor", "namespace_binding", "audit_event", "monitor_version", "lag_target")
    async with database.platform("test") as session:
        found = [
            (name, (await session.execute(sa.text(f"select count(*) from {name}"))).scalar_one()) for name in tables
        ]
    await database.close()
    return found


CHANGES: list[tuple[str, str, dict[str, Any], int]] = [
    ("PUT", "/v1/tenants/{fresh}", {"displayName": "New"}, 201),
    ("PUT", "/v1/tenants/{shop}", {"displayName": "Other"}, 200),
    ("PUT", "/v1/tenants/{shop}/clusters/new", {"bootstrapServers": "a:1", "secrets": {"password": "p"}}, 201),
    ("PUT", "/v1/tenants/{shop}/clusters/main", {"bootstrapServers": "a:1"}, 200),
    ("PUT", "/v1/tenants/{shop}/monitors/new", {"cluster": "main", "consumerGroup": "g", "topics": "t"}, 201),
    ("PUT", "/v1/tenants/{shop}/monitors/old", {"cluster": "main", "consumerGroup": "g", "topics": "t"}, 200),
    ("POST", "/v1/tenants/{shop}/bindings", {"namespace": "{fresh}"}, 201),
]


@pytest.mark.parametrize(("method", "path", "body", "status"), CHANGES)
async def test_a_dry_run_answers_like_the_change_and_leaves_no_trace(
    api: httpx.AsyncClient, shop: Shop, shared_url: str, *, method: str, path: str, body: dict[str, Any], status: int
) -> None:
    assert (await shop.monitor("old")).status_code == 201
    names = {"fresh": fresh("new"), "shop": shop.name}
    path = path.format(**names)
    body = {name: value.format(**names) if isinstance(value, str) else value for name, value in body.items()}
    before = await counts(shared_url)
    dry = await api.request(method, path, json=body, params=DRY)
    assert dry.status_code == status, dry.text
    assert await counts(shared_url) == before
    made = await api.request(method, path, json=body)
    assert made.status_code == status, made.text
    assert await counts(shared_url) != before
    volatile = ("createdAt", "updatedAt", "state", "topicDiscovery")
    told = [{name: value for name, value in one.json().items() if name not in volatile} for one in (dry, made)]
    assert told[0] == told[1]


async def test_what_is_so_already_keeps_its_version_and_what_is_not_tells_the_next(shop: Shop) -> None:
    path = f"{shop.path}/clusters/main"
    body = {"bootstrapServers": "a:1", "security": SCRAM, "secrets": {"password": "p"}}
    version = (await shop.api.put(path, json=body)).json()["version"]
    assert (await shop.api.put(path, json=body, params=DRY)).json()["version"] == version
    other = await shop.api.put(path, json=body | {"secrets": {"password": "q"}}, params=DRY)
    assert other.json()["version"] == version + 1
    assert (await shop.api.get(path)).json()["version"] == version


async def test_a_dry_run_finds_the_faults_of_the_change(shop: Shop) -> None:
    answer = await shop.api.put(
        f"{shop.path}/monitors/new",
        json={"cluster": "main", "consumerGroup": "g", "policy": {"lagThreshold": 0}},
        params=DRY,
    )
    assert answer.status_code == 422
    assert [fault["field"] for fault in answer.json()["errors"]] == ["policy.lagThreshold"]


async def test_a_dry_run_leaves_the_next_change_of_the_same_caller_alone(shop: Shop) -> None:
    first = await shop.api.put(f"{shop.path}/clusters/second", json={"bootstrapServers": "a:1"}, params=DRY)
    assert first.status_code == 201
    assert (await shop.api.post(f"{shop.path}/keys", json={"name": "k", "role": "tenant-viewer"})).status_code == 201
    assert (await shop.api.get(f"{shop.path}/keys")).json()["items"]
    assert (await shop.api.get(f"{shop.path}/clusters/second")).status_code == 404


async def test_a_viewer_may_not_try(shop: Shop) -> None:
    viewer = await shop.key("tenant-viewer")
    answer = await shop.api.put(
        f"{shop.path}/clusters/main", json={"bootstrapServers": "a:1"}, params=DRY, headers=viewer
    )
    assert answer.status_code == 403


async def test_a_key_that_only_tries_was_used(shop: Shop) -> None:
    admin = await shop.key("tenant-admin")
    body = {"bootstrapServers": "a:1"}
    assert (await shop.api.put(f"{shop.path}/clusters/main", json=body, params=DRY, headers=admin)).status_code == 200
    (key,) = (await shop.api.get(f"{shop.path}/keys")).json()["items"]
    assert key["lastUsedAt"] is not None
