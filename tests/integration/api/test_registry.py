"""Tenants, clusters, monitors, bindings and keys: made, read, changed and removed over REST on a real database."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psycopg
import pytest
from psycopg.rows import dict_row

from lagscale.store.encryption import Keyring
from tests.integration.api.conftest import Shop, fresh
from tests.support.api_server import SECRET_KEY

pytestmark = pytest.mark.integration

CANARY = "canary-in-a-secret"


def rows(url: str, query: str, *values: object) -> list[dict[str, Any]]:
    with psycopg.connect(url, row_factory=dict_row) as connection:
        return connection.execute(query, values).fetchall()


def fields(answer: httpx.Response, status: int = 422) -> set[str]:
    assert answer.status_code == status, answer.text
    return {fault["field"] for fault in answer.json()["errors"]}


async def test_a_tenant_is_made_read_changed_and_removed(api: httpx.AsyncClient) -> None:
    name = fresh("t")
    made = await api.post("/v1/tenants", json={"name": name, "displayName": "Tea"})
    assert (made.status_code, made.json()["version"], made.headers["etag"]) == (201, 1, '"1"')
    assert (await api.post("/v1/tenants", json={"name": name})).status_code == 409
    assert (await api.get(f"/v1/tenants/{name}")).json() == made.json()
    same = await api.put(f"/v1/tenants/{name}", json={"displayName": "Tea"})
    assert (same.status_code, same.json()["version"]) == (200, 1)
    changed = await api.put(f"/v1/tenants/{name}", json={"autoRegister": True})
    assert (changed.json()["version"], changed.json()["autoRegister"], changed.json()["displayName"]) == (2, True, "")
    assert (await api.delete(f"/v1/tenants/{name}")).status_code == 204
    assert (await api.get(f"/v1/tenants/{name}")).status_code == 404


async def test_a_tenant_with_clusters_is_not_removed(shop: Shop) -> None:
    assert (await shop.api.delete(shop.path)).status_code == 409


async def test_a_later_version_is_not_overwritten(shop: Shop) -> None:
    await shop.monitor("orders")
    await shop.monitor("orders", policy={"lagThreshold": 7})
    path = f"{shop.path}/monitors/orders"
    body = {"cluster": "main", "consumerGroup": "readers", "topics": ["orders"]}
    late = await shop.api.put(path, json=body, headers={"If-Match": '"1"'})
    assert late.status_code == 412
    assert "current version is 2" in late.json()["detail"]
    assert (await shop.api.delete(path, headers={"If-Match": '"1"'})).status_code == 412
    assert (await shop.api.put(path, json=body, headers={"If-Match": '"2"'})).status_code == 200


async def test_a_monitor_is_made_with_its_targets(shop: Shop, shared_url: str) -> None:
    made = await shop.monitor("orders", topics=["orders", "refunds"], policy={"lagThreshold": 5, "holdSeconds": "60"})
    assert made.status_code == 201, made.text
    body = made.json()
    assert body["policy"] == {"lagThreshold": "5", "holdSeconds": "60"}
    assert body["topics"] == ["orders", "refunds"]
    await shop.monitor("refunds", topics=["refunds"])
    targets = rows(
        shared_url,
        "select t.topic, array_agg(m.name order by m.name) as monitors from lag_target t "
        "join monitor_target mt on mt.target_id = t.id join monitor m on m.id = mt.monitor_id "
        "join tenant on tenant.id = t.tenant_id where tenant.name = %s group by t.id, t.topic order by t.topic",
        shop.name,
    )
    # What two monitors need is measured once.
    assert targets == [
        {"topic": "orders", "monitors": ["orders"]},
        {"topic": "refunds", "monitors": ["orders", "refunds"]},
    ]


async def test_putting_the_same_monitor_changes_nothing(shop: Shop, shared_url: str) -> None:
    first = await shop.monitor("orders", policy={"lagThreshold": 5})
    version = rows(shared_url, "select version from registry_change")[0]["version"]
    again = await shop.monitor("orders", policy={"lagThreshold": "5"}, topics="orders")
    assert (again.status_code, again.json()) == (200, first.json())
    assert rows(shared_url, "select version from registry_change")[0]["version"] == version


async def test_a_changed_policy_is_remembered_and_keeps_the_target(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", policy={"lagThreshold": 5})
    await shop.monitor("orders", policy={"lagThreshold": 6, "sustainSeconds": 30})
    found = rows(
        shared_url,
        "select v.version, v.policy from monitor_version v join tenant t on t.id = v.tenant_id "
        "where t.name = %s order by v.version",
        shop.name,
    )
    assert [row["policy"] for row in found] == [{"lagThreshold": "5"}, {"lagThreshold": "6", "sustainSeconds": "30"}]
    targets = rows(
        shared_url, "select count(*) from lag_target l join tenant t on t.id = l.tenant_id where t.name = %s", shop.name
    )
    assert targets[0]["count"] == 1


async def test_a_removed_monitors_name_is_free_again(shop: Shop) -> None:
    await shop.monitor("orders")
    assert (await shop.api.delete(f"{shop.path}/monitors/orders")).status_code == 204
    assert (await shop.api.get(f"{shop.path}/monitors/orders")).status_code == 404
    assert (await shop.api.delete(f"{shop.path}/monitors/orders")).status_code == 404
    assert (await shop.monitor("orders")).status_code == 201


async def test_all_faults_of_a_monitor_are_told_at_once(shop: Shop) -> None:
    answer = await shop.monitor(
        "orders",
        topics=["a", "b"],
        policy={
            "lagThreshold": 0, "sustainSeconds": "soon", "partitionLimitation": "1-3", "lagTreshold": 1,
            "stuckAfterSeconds": 6,
        },
    )  # fmt: skip
    assert fields(answer) == {
        "policy.lagThreshold", "policy.sustainSeconds", "policy.partitionLimitation", "policy.lagTreshold",
        "policy.stuckAfterSeconds",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"topics": []}, "topics"),
        ({"topicPattern": "orders-.*"}, "topicPattern"),
        ({"topics": None, "topicPattern": "orders-("}, "topicPattern"),
        ({"topics": None, "topicPattern": ""}, "topicPattern"),
        ({"excludeTopics": ["a"]}, "excludeTopics"),
        ({"topics": None, "excludeTopics": "a,("}, "excludeTopics"),
        ({"topics": None, "policy": {"partitionLimitation": "1"}}, "policy.partitionLimitation"),
        ({"cluster": "elsewhere"}, "cluster"),
        ({"name": "another"}, "name"),
        ({"consumerGroup": ""}, "consumerGroup"),
        ({"policy": {"lagThreshold": [1]}}, "policy.lagThreshold"),
    ],
)
async def test_a_fault_of_a_monitor_names_its_field(shop: Shop, given: dict[str, Any], field: str) -> None:
    assert field in fields(await shop.monitor("orders", **given))


async def test_an_interval_below_the_tenants_minimum_is_refused(api: httpx.AsyncClient, shop: Shop) -> None:
    await api.put(shop.path, json={"minSamplingSeconds": 30})
    assert fields(await shop.monitor("orders", policy={"samplingInterval": 10})) == {"policy.samplingInterval"}
    assert (await shop.monitor("orders")).status_code == 201


async def test_the_quota_of_monitors_is_exact_under_concurrency(api: httpx.AsyncClient, shop: Shop) -> None:
    await api.put(shop.path, json={"maxMonitors": 3})
    answers = await asyncio.gather(*(shop.monitor(f"m{number}") for number in range(6)))
    assert sorted(answer.status_code for answer in answers) == [201, 201, 201, 429, 429, 429]
    assert (await shop.monitor("m-new")).json()["type"].endswith("quota-exceeded")


async def test_two_first_puts_of_one_name_make_one_object(api: httpx.AsyncClient, shop: Shop) -> None:
    name = fresh("twin")
    tenants = await asyncio.gather(*(api.put(f"/v1/tenants/{name}", json={}) for _ in range(4)))
    assert sorted(answer.status_code for answer in tenants) == [200, 200, 200, 201]
    body = {"bootstrapServers": ["k:1"]}
    clusters = await asyncio.gather(*(api.put(f"{shop.path}/clusters/twin", json=body) for _ in range(4)))
    assert sorted(answer.status_code for answer in clusters) == [200, 200, 200, 201]
    monitors = await asyncio.gather(*(shop.monitor("twin") for _ in range(4)))
    assert sorted(answer.status_code for answer in monitors) == [200, 200, 200, 201]


async def test_secrets_of_a_cluster_are_sealed_and_never_shown(shop: Shop, shared_url: str) -> None:
    path = f"{shop.path}/clusters/safe"
    body = {
        "bootstrapServers": "k-0:9092,k-1:9092",
        "security": {"sasl": "scram_sha512", "tls": "disable", "username": "admin"},
        "secrets": {"password": CANARY},
    }
    answers = [await shop.api.put(path, json=body), await shop.api.get(path), await shop.api.put(path, json=body)]
    assert [answer.status_code for answer in answers] == [201, 200, 200]
    assert [answer.json()["version"] for answer in answers] == [1, 1, 1]
    assert answers[0].json()["hasSecrets"]
    assert answers[0].json()["security"] == {
        "protocol": "SASL_PLAINTEXT", "mechanism": "SCRAM-SHA-512", "username": "admin",
    }  # fmt: skip
    [row] = rows(
        shared_url,
        "select c.* from cluster c join tenant t on t.id = c.tenant_id where t.name = %s and c.name = 'safe'",
        shop.name,
    )
    assert Keyring(SECRET_KEY).decrypt(row["secrets"]) == {"password": CANARY}
    listing = await shop.api.get(f"{shop.path}/clusters")
    audit = rows(shared_url, "select before, after from audit_event where object = 'cluster/safe'")
    assert audit
    assert CANARY not in str([row, audit, listing.text, *(answer.text for answer in answers)])


async def test_secrets_left_out_stay_and_an_empty_map_removes_them(shop: Shop) -> None:
    path = f"{shop.path}/clusters/safe"
    body: dict[str, Any] = {"bootstrapServers": ["k:1"], "secrets": {"password": CANARY}}
    await shop.api.put(path, json=body)
    kept = await shop.api.put(path, json={"bootstrapServers": ["k:2"]})
    assert (kept.json()["hasSecrets"], kept.json()["version"]) == (True, 2)
    removed = await shop.api.put(path, json={"bootstrapServers": ["k:2"], "secrets": {}})
    assert (removed.json()["hasSecrets"], removed.json()["version"]) == (False, 3)


async def test_a_cluster_in_use_stays_and_one_out_of_use_goes(shop: Shop) -> None:
    await shop.monitor("orders")
    used = await shop.api.delete(f"{shop.path}/clusters/main")
    assert used.status_code == 409
    assert "orders" in used.json()["detail"]
    await shop.api.delete(f"{shop.path}/monitors/orders")
    assert (await shop.api.delete(f"{shop.path}/clusters/main")).status_code == 204
    assert (await shop.api.get(f"{shop.path}/clusters/main")).status_code == 404


async def test_a_namespace_is_bound_once(shop: Shop, other: Shop) -> None:
    body = {"instance": fresh("keda"), "namespace": "prod"}
    assert (await shop.api.post(f"{shop.path}/bindings", json=body)).status_code == 201
    assert (await shop.api.post(f"{shop.path}/bindings", json=body)).status_code == 200
    assert (await other.api.post(f"{other.path}/bindings", json=body)).status_code == 409
    assert (await shop.api.post(f"{shop.path}/bindings", json=body | {"namespace": "*"})).status_code == 409
    assert [item["namespace"] for item in (await shop.api.get(f"{shop.path}/bindings")).json()["items"]] == ["prod"]
    assert (await other.api.delete(f"{other.path}/bindings", params=body)).status_code == 404
    assert (await shop.api.delete(f"{shop.path}/bindings", params=body)).status_code == 204
    whole = body | {"namespace": "*"}
    assert (await other.api.post(f"{other.path}/bindings", json=whole)).status_code == 201
    assert (await shop.api.post(f"{shop.path}/bindings", json=body)).status_code == 409


async def test_bindings_that_exclude_each_other_do_not_pass_each_other(shop: Shop, other: Shop) -> None:
    instance = fresh("keda")
    answers = await asyncio.gather(
        shop.api.post(f"{shop.path}/bindings", json={"instance": instance, "namespace": "*"}),
        other.api.post(f"{other.path}/bindings", json={"instance": instance, "namespace": "prod"}),
    )
    assert sorted(answer.status_code for answer in answers) == [201, 409]


@pytest.mark.parametrize("kind", ["tenants", "clusters", "monitors", "bindings", "keys"])
async def test_listings_are_read_page_by_page_and_stay_stable_under_writes(
    api: httpx.AsyncClient, shop: Shop, kind: str
) -> None:
    if kind == "tenants":
        path, shown = "/v1/tenants", "name"
    else:
        path, shown = f"{shop.path}/{kind}", {"bindings": "namespace", "keys": "prefix"}.get(kind, "name")

    async def add(number: int) -> str:
        name = fresh(f"n{number}")
        body: dict[str, Any] = {"name": name}
        if kind == "clusters":
            body["bootstrapServers"] = ["k:1"]
        if kind == "monitors":
            body |= {"cluster": "main", "consumerGroup": "g", "topics": ["t"]}
        if kind == "bindings":
            body = {"instance": shop.name, "namespace": name}
        if kind == "keys":
            body["role"] = "tenant-viewer"
        made = await api.post(path, json=body)
        assert made.status_code == 201, made.text
        return str(made.json()[shown])

    wanted = {await add(number) for number in range(5)}
    seen: list[str] = []
    cursor: str | None = None
    while True:
        answer = await api.get(path, params={"limit": 2} | ({"cursor": cursor} if cursor else {}))
        assert answer.status_code == 200, answer.text
        items = [item[shown] for item in answer.json()["items"]]
        assert len(items) <= 2
        seen += items
        cursor = answer.json()["next"]
        if cursor is None:
            break
        # Names that come in between neither double nor hide the old ones.
        if len(seen) < 6:
            await add(9)
    assert len(seen) == len(set(seen))
    assert wanted <= set(seen)
    assert seen == sorted(seen)


@pytest.mark.parametrize("cursor", ["x", "bm9uZQ", "WzFd", "WyJhIiwgImIiXQ", "é"])
async def test_a_made_up_cursor_is_a_fault(shop: Shop, cursor: str) -> None:
    assert fields(await shop.api.get(f"{shop.path}/monitors", params={"cursor": cursor})) == {"cursor"}


async def test_changes_are_written_down_with_who_made_them(shop: Shop, shared_url: str) -> None:
    editor = await shop.key("tenant-admin")
    body = {"cluster": "main", "consumerGroup": "readers", "topics": ["orders"]}
    await shop.api.put(f"{shop.path}/monitors/orders", json=body, headers=editor)
    await shop.api.put(f"{shop.path}/monitors/orders", json=body, headers=editor)
    await shop.api.delete(f"{shop.path}/monitors/orders")
    found = rows(
        shared_url,
        "select a.* from audit_event a join tenant t on t.id = a.tenant_id "
        "where t.name = %s and object = 'monitor/orders' order by at",
        shop.name,
    )
    assert [row["action"] for row in found] == ["monitor.create", "monitor.delete"]
    assert found[0]["actor"].startswith("key ")
    assert found[0]["after"]["topics"] == ["orders"]
    assert found[1]["actor"] == "bootstrap key"
    assert found[1]["after"] is None


async def test_a_refused_change_leaves_no_audit(shop: Shop, shared_url: str) -> None:
    before = rows(shared_url, "select count(*) from audit_event")
    await shop.monitor("orders", cluster="elsewhere")
    await shop.api.post(f"{shop.path}/clusters", json={"name": "main", "bootstrapServers": ["k:1"]})
    assert rows(shared_url, "select count(*) from audit_event") == before


async def test_a_key_is_shown_once_works_and_ends_when_revoked(shop: Shop, shared_url: str) -> None:
    made = (await shop.api.post(f"{shop.path}/keys", json={"name": "ci", "role": "tenant-viewer"})).json()
    key = {"Authorization": f"Bearer {made['key']}"}
    assert made["key"].startswith(f"lsk_{made['prefix']}_")
    assert (await shop.api.get(shop.path, headers=key)).status_code == 200
    [listed] = (await shop.api.get(f"{shop.path}/keys")).json()["items"]
    assert "key" not in listed
    assert listed["lastUsedAt"] is not None
    [row] = rows(shared_url, "select * from api_key where prefix = %s", made["prefix"])
    assert made["key"].split("_", 2)[2] not in str(row)
    wrong = key["Authorization"][:-1] + ("x" if key["Authorization"][-1] != "x" else "y")
    assert (await shop.api.get(shop.path, headers={"Authorization": wrong})).status_code == 401
    assert (await shop.api.delete(f"{shop.path}/keys/{made['prefix']}")).status_code == 204
    assert (await shop.api.get(shop.path, headers=key)).status_code == 401


async def test_an_expired_key_is_none(shop: Shop) -> None:
    gone = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    body = {"name": "old", "role": "tenant-admin", "expiresAt": gone}
    made = (await shop.api.post(f"{shop.path}/keys", json=body)).json()
    assert (await shop.api.get(shop.path, headers={"Authorization": f"Bearer {made['key']}"})).status_code == 401


async def test_the_platforms_keys_are_its_own(api: httpx.AsyncClient, shop: Shop) -> None:
    made = (await api.post("/v1/keys", json={"name": "ops"})).json()
    ops = {"Authorization": f"Bearer {made['key']}"}
    assert made["role"] == "platform-admin"
    assert (await api.get("/v1/tenants", headers=ops)).status_code == 200
    prefixes = {item["prefix"] for item in (await api.get("/v1/keys")).json()["items"]}
    assert made["prefix"] in prefixes
    assert fields(await api.post(f"{shop.path}/keys", json={"name": "x", "role": "platform-admin"})) == {"role"}
    assert (await api.delete(f"{shop.path}/keys/{made['prefix']}")).status_code == 404
    assert (await api.delete(f"/v1/keys/{made['prefix']}")).status_code == 204
    assert (await api.get("/v1/tenants", headers=ops)).status_code == 401
