"""Another tenant's object is answered like one that does not exist: same statements, same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from tests.integration.api.conftest import Shop, fresh
from tests.integration.api.rounds import write

pytestmark = pytest.mark.integration

MONITOR = {"cluster": "main", "consumerGroup": "readers", "topics": ["orders"]}
CLUSTER = {"bootstrapServers": ["k:1"]}
OF_A_TENANT: list[tuple[str, str, Any]] = [
    ("GET", "", None),
    ("GET", "/health", None),
    ("GET", "/clusters", None),
    ("POST", "/clusters", CLUSTER | {"name": "main"}),
    ("GET", "/clusters/main", None),
    ("PUT", "/clusters/main", CLUSTER),
    ("DELETE", "/clusters/main", None),
    ("GET", "/monitors", None),
    ("POST", "/monitors", MONITOR | {"name": "orders"}),
    ("POST", "/monitors/bulk", {"items": [{"delete": "orders"}]}),
    ("POST", "/monitors/bulk?dryRun=true", {"items": [{"put": MONITOR | {"name": "orders"}}]}),
    ("GET", "/monitors?deleted=true", None),
    ("GET", "/monitors?failing=true&cluster=main", None),
    ("GET", "/policy-warnings", None),
    ("GET", "/monitors/orders", None),
    ("PUT", "/monitors/orders", MONITOR),
    ("DELETE", "/monitors/orders", None),
    ("POST", "/monitors/orders/restore", None),
    ("GET", "/monitors/orders/verdict", None),
    ("GET", "/monitors/orders/explain", None),
    ("GET", "/monitors/orders/samples", None),
    ("GET", "/monitors/orders/health", None),
    ("GET", "/bindings", None),
    ("POST", "/bindings", {"namespace": "prod"}),
    ("DELETE", "/bindings?namespace=prod", None),
    ("GET", "/keys", None),
    ("POST", "/keys", {"name": "mine", "role": "tenant-admin"}),
    ("PUT", "", {}),
    ("DELETE", "", None),
]
OF_AN_OBJECT = [
    ("GET", "/clusters/{}"),
    ("DELETE", "/clusters/{}"),
    ("GET", "/monitors/{}"),
    ("DELETE", "/monitors/{}"),
    ("POST", "/monitors/{}/restore"),
    ("GET", "/monitors/{}/verdict"),
    ("GET", "/monitors/{}/explain"),
    ("GET", "/monitors/{}/samples"),
    ("GET", "/monitors/{}/state"),
    ("GET", "/monitors/{}/health"),
    ("DELETE", "/keys/{}"),
]


@contextmanager
def statements() -> Iterator[list[str]]:
    """Every statement that the registry runs in this block."""
    seen: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        seen.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)


async def ask(
    api: httpx.AsyncClient, method: str, path: str, body: Any, headers: dict[str, str]
) -> tuple[tuple[int, bytes, list[tuple[str, str]]], list[str]]:
    with statements() as seen:
        answer = await api.request(method, path, json=body, headers=headers)
    return (answer.status_code, answer.content, sorted(answer.headers.items())), seen


@pytest.mark.parametrize("role", ["tenant-admin", "tenant-viewer"])
async def test_another_tenant_is_like_none(shop: Shop, other: Shop, role: str) -> None:
    await other.monitor("orders")
    key = await shop.key(role)
    await shop.api.get("/v1/tenants", headers=key)  # The first use of a key writes when that was.
    for method, path, body in OF_A_TENANT:
        foreign, of_foreign = await ask(shop.api, method, other.path + path, body, key)
        missing, of_missing = await ask(shop.api, method, f"/v1/tenants/{fresh('none')}{path}", body, key)
        assert foreign == missing, f"{method} {path}"
        assert foreign[0] in {403, 404}, f"{method} {path}"
        assert of_foreign == of_missing, f"{method} {path}"


async def test_another_tenants_object_is_like_none(shop: Shop, other: Shop) -> None:
    theirs = fresh("theirs")
    await other.api.put(f"{other.path}/clusters/{theirs}", json=CLUSTER)
    await other.monitor(theirs)
    made = await other.api.post(f"{other.path}/keys", json={"name": "x", "role": "tenant-viewer"})
    key = await shop.key("tenant-admin")
    await shop.api.get("/v1/tenants", headers=key)
    for method, path in OF_AN_OBJECT:
        name, nowhere = (made.json()["prefix"], "0" * 12) if "keys" in path else (theirs, fresh("none"))
        foreign, of_foreign = await ask(shop.api, method, shop.path + path.format(name), None, key)
        missing, of_missing = await ask(shop.api, method, shop.path + path.format(nowhere), None, key)
        assert foreign == missing, f"{method} {path}"
        assert foreign[0] == 404, f"{method} {path}"
        assert of_foreign == of_missing, f"{method} {path}"


async def test_the_same_names_are_free_in_every_tenant(shop: Shop, other: Shop) -> None:
    assert (await shop.monitor("orders")).status_code == 201
    assert (await other.monitor("orders")).status_code == 201
    await other.api.delete(f"{other.path}/monitors/orders")
    assert (await shop.api.get(f"{shop.path}/monitors/orders")).status_code == 200


async def test_another_tenants_cluster_cannot_be_measured(shop: Shop, other: Shop) -> None:
    theirs = fresh("theirs")
    await other.api.put(f"{other.path}/clusters/{theirs}", json=CLUSTER)
    foreign = await shop.monitor("orders", cluster=theirs)
    missing = await shop.monitor("orders", cluster=fresh("none"))
    assert (foreign.status_code, foreign.content) == (missing.status_code, missing.content) == (422, missing.content)


async def test_a_tenants_key_sees_its_own_tenant_only(shop: Shop, other: Shop, shared_url: str) -> None:
    for each in (shop, other):
        await each.monitor("orders", policy={"samplingInterval": 10})
    write(shared_url, other.name, "orders", [(5, (other_lag := 4711,))])
    key = await shop.key("tenant-viewer")
    listing = (await shop.api.get("/v1/tenants", headers=key)).json()
    assert [item["name"] for item in listing["items"]] == [shop.name]
    mine = await shop.api.get(f"{shop.path}/monitors/orders/samples", headers=key)
    assert mine.json()["items"] == []
    assert str(other_lag) in (await other.api.get(f"{other.path}/monitors/orders/samples")).text
    assert (await shop.api.get(f"{shop.path}/monitors/orders/verdict", headers=key)).json()["reason"] == "no_data"


async def test_a_role_may_do_its_part(shop: Shop) -> None:
    for role, method, path, status in (
        ("tenant-viewer", "GET", "/monitors", 200),
        ("tenant-viewer", "PUT", "/monitors/orders", 403),
        ("tenant-viewer", "DELETE", "/monitors/orders", 403),
        ("tenant-viewer", "GET", "/keys", 403),
        ("tenant-admin", "PUT", "/monitors/orders", 201),
        ("tenant-admin", "GET", "/keys", 200),
        ("tenant-admin", "PUT", "", 403),
        ("tenant-admin", "DELETE", "", 403),
        ("tenant-admin", "POST", "/bindings", 403),
    ):
        key = await shop.key(role)
        body = {"namespace": "prod"} if "bindings" in path else MONITOR if "monitors" in path else {}
        given = body if method in {"PUT", "POST"} else None
        answer = await shop.api.request(method, shop.path + path, json=given, headers=key)
        assert answer.status_code == status, f"{role} {method} {path}: {answer.text}"


async def test_only_the_platform_makes_tenants_and_platform_keys(shop: Shop) -> None:
    key = await shop.key("tenant-admin")
    assert (await shop.api.post("/v1/tenants", json={"name": fresh("t")}, headers=key)).status_code == 403
    assert (await shop.api.post("/v1/keys", json={"name": "x"}, headers=key)).status_code == 403
    assert (await shop.api.get("/v1/keys", headers=key)).status_code == 403
