"""Reading the audit: filters, pages that stay in place, export as lines of JSON, and whose rows one sees."""

from __future__ import annotations

import json
from typing import Any

import httpx
import psycopg
import pytest

from lagscale.store.registry.audit import AuditFilter
from lagscale.store.registry.session import AccessScope, RegistryDatabase
from services.api.audit.routes import export_lines
from services.api.deps import TenantAccess
from tests.integration.api.conftest import Shop, fresh
from tests.support.api_server import ADMIN, bearer, serving
from tests.support.registry_statements import statements

pytestmark = pytest.mark.integration


async def page(shop: Shop, **query: str) -> list[dict[str, Any]]:
    answer = await shop.api.get(f"{shop.path}/audit", params=query)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def did(items: list[dict[str, Any]]) -> list[str]:
    return [f"{item['action']} {item['object']}" for item in items]


def exported(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    return [json.loads(line) for line in answer.text.splitlines()]


def fill(url: str, shop: Shop, number: int) -> None:
    """So many events of long ago, several at each instant."""
    with psycopg.connect(url) as connection:
        connection.execute(
            "insert into audit_event (tenant_id, at, actor, action, object) "
            "select id, '2020-01-01'::timestamptz + (n / 7) * interval '1 minute', 'filler', 'test.fill', "
            "'fill/' || n from tenant, generate_series(1, %s) as n where name = %s",
            (number, shop.name),
        )


async def test_it_tells_who_what_when_and_how_it_was(shop: Shop) -> None:
    await shop.monitor("orders", policy={"lagThreshold": 500})
    await shop.monitor("orders", policy={"lagThreshold": 900})
    newest, before, *_ = await page(shop)
    assert did([newest, before]) == ["monitor.update monitor/orders", "monitor.create monitor/orders"]
    assert newest["actor"] == "bootstrap key"
    assert newest["tenant"] == shop.name
    assert (newest["before"]["policy"], newest["after"]["policy"]) == ({"lagThreshold": "500"}, {"lagThreshold": "900"})
    assert before["before"] is None
    assert newest["at"] > before["at"]


async def test_filters_choose(shop: Shop) -> None:
    key = await shop.key("tenant-admin")
    await shop.monitor("orders")
    await shop.api.delete(f"{shop.path}/monitors/orders", headers=key)
    await shop.monitor("orders_2".replace("_", "-"))
    assert did(await page(shop, action="monitor.create")) == [
        "monitor.create monitor/orders-2",
        "monitor.create monitor/orders",
    ]
    assert did(await page(shop, object="monitor/orders")) == [
        "monitor.delete monitor/orders",
        "monitor.create monitor/orders",
    ]
    assert len(await page(shop, object="monitor/*")) == 3
    assert did(await page(shop, actor="key *")) == ["monitor.delete monitor/orders"]
    assert await page(shop, actor="key") == []
    # What a pattern of SQL would mean is a letter here.
    assert await page(shop, object="m_nitor/*") == []
    assert await page(shop, object="%*") == []
    everything = await page(shop)
    middle = everything[1]["at"]
    assert did(await page(shop, since=middle)) == did(everything[:2])
    assert did(await page(shop, until=middle)) == did(everything[2:])


@pytest.mark.parametrize(
    "query", [{"since": "yesterday"}, {"since": "1767607200"}, {"since": "2030-01-01T00:00:00"}, {"cursor": "x"}, {"limit": "0"}, {"cursor": "WyIyMDMwIiwiMSJd"}, {"actor": "a\x00b"}],
)  # fmt: skip
async def test_faults_are_told(shop: Shop, query: dict[str, str]) -> None:
    answer = await shop.api.get(f"{shop.path}/audit", params=query)
    assert answer.status_code == 422
    assert [fault["field"] for fault in answer.json()["errors"]] == list(query)


async def test_pages_stay_in_place_while_events_come_in(shop: Shop, shared_url: str) -> None:
    fill(shared_url, shop, 60)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        query = {"limit": "7", "action": "test.fill"} | ({} if cursor is None else {"cursor": cursor})
        answer = (await shop.api.get(f"{shop.path}/audit", params=query)).json()
        seen += [item["id"] for item in answer["items"]]
        with psycopg.connect(shared_url) as connection:
            connection.execute(
                "insert into audit_event (tenant_id, actor, action, object) select id, 'a', 'test.fill', 'late' "
                "from tenant where name = %s",
                (shop.name,),
            )
        cursor = answer["next"]
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == 60


async def test_an_export_has_all_of_it_the_oldest_first(shop: Shop, other: Shop, shared_url: str) -> None:
    fill(shared_url, shop, 1203)
    fill(shared_url, other, 3)
    lines = exported(await shop.api.get(f"{shop.path}/audit/export", params={"action": "test.fill"}))
    assert len(lines) == len({line["id"] for line in lines}) == 1203
    assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)
    assert {line["tenant"] for line in lines} == {shop.name}
    everything = exported(await shop.api.get(f"{shop.path}/audit/export"))
    assert everything[-1]["action"] == "cluster.create"
    listed = await page(shop, limit="1")
    assert everything[-1] == listed[0]


async def test_an_export_holds_no_connection_while_its_reader_is_slow(shop: Shop, shared_url: str) -> None:
    fill(shared_url, shop, 1203)
    database = RegistryDatabase(shared_url, size=1)
    try:
        everybody = AccessScope(None, "test")
        access = TenantAccess(database, everybody, shop.name)
        turns = [await export_lines(access, AuditFilter()) for _ in range(3)]
        # All have begun and none has ended, and the one connection is free for each in its turn.
        for _ in range(2):
            for lines in turns:
                assert (await anext(lines)).count(b"\n") == 500
        async with database.tenant(everybody, shop.name) as session:
            assert session.tenant["name"] == shop.name
    finally:
        await database.close()


async def test_the_platform_sees_all_and_a_tenant_its_own(
    api: httpx.AsyncClient, shop: Shop, other: Shop, shared_url: str
) -> None:
    await other.monitor("orders")
    made = await api.post("/v1/keys", json={"name": fresh("team")})
    newest = (await api.get("/v1/audit", params={"limit": "2"})).json()["items"]
    assert [(item["tenant"], item["action"]) for item in newest] == [
        (None, "key.create"),
        (other.name, "monitor.create"),
    ]
    of_other = (await api.get("/v1/audit", params={"tenant": other.name})).json()["items"]
    assert {item["tenant"] for item in of_other} == {other.name}
    key = await shop.key("tenant-admin")
    for path in ("/v1/audit", "/v1/audit/export"):
        assert (await api.get(path, headers=key)).status_code == 403
        assert (await api.get(path, headers=bearer(made.json()["key"]))).status_code == 200
    assert {item["tenant"] for item in exported(await api.get("/v1/audit/export"))} >= {None, shop.name, other.name}
    mine = (await api.get(f"{shop.path}/audit", headers=key)).json()["items"]
    assert {item["tenant"] for item in mine} == {shop.name}
    assert did(mine) == [f"key.create key/{key['Authorization'].split('_')[1]}", "cluster.create cluster/main"]


@pytest.mark.parametrize("path", ["/audit", "/audit/export", "/keys/000000000000/rotate"])
@pytest.mark.parametrize("role", ["tenant-admin", "tenant-viewer"])
async def test_another_tenants_is_like_none(shop: Shop, other: Shop, role: str, path: str) -> None:
    key = await shop.key(role)
    await shop.api.get("/v1/tenants", headers=key)  # The first use of a key writes when that was.
    answers = []
    for tenant in (other.path, f"/v1/tenants/{fresh('none')}"):
        method = "POST" if path.endswith("rotate") else "GET"
        with statements() as seen:
            answer = await shop.api.request(method, tenant + path, headers=key, json={} if method == "POST" else None)
        answers.append((answer.status_code, answer.content, sorted(answer.headers.items()), seen))
    assert answers[0] == answers[1]
    assert answers[0][0] == (404 if role == "tenant-admin" else 403)


async def test_a_tenants_end_takes_its_audit_and_leaves_the_platforms(api: httpx.AsyncClient, shop: Shop) -> None:
    await api.delete(f"{shop.path}/clusters/main")
    assert (await api.delete(shop.path)).status_code == 204
    rest = (await api.get("/v1/audit", params={"object": f"tenant/{shop.name}"})).json()["items"]
    assert did(rest) == [f"tenant.delete tenant/{shop.name}", f"tenant.create tenant/{shop.name}"]
    assert rest[0]["before"]["name"] == shop.name
    assert (await api.get("/v1/audit", params={"tenant": shop.name})).json()["items"] == []


async def test_the_address_is_the_proxys_word_only_where_it_is_trusted(shop: Shop, shared_url: str) -> None:
    header = bearer(ADMIN) | {"X-Forwarded-For": "203.0.113.9"}
    for proxies, peer, wanted in (
        ((), "198.51.100.7", "198.51.100.7"),
        (("10.0.0.0/8",), "198.51.100.7", "198.51.100.7"),
        (("10.0.0.0/8",), "10.1.2.3", "203.0.113.9"),
    ):
        async with serving(shared_url, proxies=proxies, peer=peer) as api:
            made = await api.post(f"{shop.path}/keys", json={"name": "x", "role": "tenant-viewer"}, headers=header)
            assert made.status_code == 201
        assert (await page(shop, object=f"key/{made.json()['prefix']}"))[0]["origin"] == wanted
