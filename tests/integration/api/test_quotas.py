"""Quotas of a tenant over REST: who sets them, what they count, and that they hold whoever creates at once."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import psycopg
import pytest
import sqlalchemy as sa

from lagscale.domain.quotas import Quota
from lagscale.store.registry import quotas
from lagscale.store.registry.session import AccessScope, RegistryDatabase
from tests.integration.api.conftest import Shop

pytestmark = pytest.mark.integration


async def limit(shop: Shop, **given: int) -> httpx.Response:
    return await shop.api.put(f"{shop.path}/quotas", json=given)


async def used(shop: Shop) -> dict[str, Any]:
    answer = await shop.api.get(f"{shop.path}/quotas")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def cluster(shop: Shop, name: str) -> httpx.Response:
    return await shop.api.post(f"{shop.path}/clusters", json={"name": name, "bootstrapServers": ["127.0.0.1:9092"]})


def measured(url: str, shop: Shop, partitions: int | None, code: str = "ok") -> None:
    """What the scraper would have written of all targets of the tenant."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "insert into target_state (target_id, tenant_id, code, since, seen_at, partitions) "
            "select t.id, t.tenant_id, %s, now(), now(), %s from lag_target t join tenant n on n.id = t.tenant_id "
            "where n.name = %s on conflict (target_id) do update set partitions = excluded.partitions, code = excluded.code",
            [code, partitions, shop.name],
        )


async def test_a_new_tenant_has_fifty_clusters_and_sees_what_it_uses(shop: Shop) -> None:
    assert (await shop.monitor("orders")).status_code == 201
    found = (await shop.api.get(f"{shop.path}/quotas", headers=await shop.key("tenant-viewer"))).json()
    assert found == {
        "monitors": {"limit": 1000, "used": 1},
        "clusters": {"limit": 50, "used": 1},
        "patterns": {"limit": 100, "used": 0},
        "partitions": {"limit": 50_000, "used": 0, "unmeasured": 1, "refused": 0},
        "callsPerSecond": {"limit": 500},
        "requestsPerSecond": {"limit": 200},
        "version": 1,
    }


@pytest.mark.parametrize("role", ["tenant-admin", "tenant-viewer"])
async def test_only_the_platform_sets_quotas(shop: Shop, role: str) -> None:
    header = await shop.key(role)
    refused = await shop.api.put(f"{shop.path}/quotas", json={"clusters": 900}, headers=header)
    assert refused.status_code == 403
    assert (await used(shop))["clusters"]["limit"] == 50


async def test_quotas_of_another_tenant_are_answered_like_those_of_none(shop: Shop, other: Shop) -> None:
    header = await shop.key("tenant-admin")
    foreign = await shop.api.get(f"{other.path}/quotas", headers=header)
    missing = await shop.api.get("/v1/tenants/nobody-there/quotas", headers=header)
    assert foreign.status_code == missing.status_code == 404
    assert foreign.content == missing.content


async def test_what_is_left_out_is_the_default_again_and_what_was_not_seen_is_not_overwritten(shop: Shop) -> None:
    first = await limit(shop, clusters=3, patterns=2)
    assert first.json()["clusters"] == {"limit": 3, "used": 1}
    second = await shop.api.put(f"{shop.path}/quotas", json={"patterns": 2}, headers={"If-Match": '"1"'})
    assert second.status_code == 412
    third = await shop.api.put(f"{shop.path}/quotas", json={"patterns": 2}, headers={"If-Match": first.headers["etag"]})
    assert third.json()["clusters"]["limit"] == 50
    assert third.json()["patterns"]["limit"] == 2
    assert (await limit(shop, patterns=2)).json()["version"] == third.json()["version"], "nothing changed"


async def test_the_tenants_body_has_them_too_and_trying_changes_nothing(shop: Shop) -> None:
    made = await shop.api.put(shop.path, json={"maxClusters": 3, "maxPartitions": 70_000, "callsPerSecond": 9})
    assert made.json()["maxClusters"] == 3
    found = await used(shop)
    assert (found["clusters"]["limit"], found["partitions"]["limit"], found["callsPerSecond"]["limit"]) == (
        3,
        70_000,
        9,
    )
    tried = await shop.api.put(f"{shop.path}/quotas?dryRun=true", json={"clusters": 4})
    assert tried.json()["clusters"] == {"limit": 4, "used": 1}
    assert (await used(shop)) == found
    assert (await limit(shop, clusters=4)).status_code == 200
    assert (await shop.api.get(shop.path)).json()["maxClusters"] == 4


async def test_a_change_of_quotas_is_in_the_tenants_audit(shop: Shop, shared_url: str) -> None:
    await limit(shop, clusters=7)
    with psycopg.connect(shared_url) as connection:
        row = connection.execute(
            "select e.before->>'max_clusters', e.after->>'max_clusters' from audit_event e "
            "join tenant t on t.id = e.tenant_id where t.name = %s and e.action = 'tenant.quotas'",
            [shop.name],
        ).fetchall()
    assert row == [("50", "7")]


async def test_the_cluster_after_the_last_is_refused_with_the_way_out_and_fits_again_later(shop: Shop) -> None:
    await limit(shop, clusters=2)
    assert (await cluster(shop, "second")).status_code == 201
    for refused in (
        await cluster(shop, "third"),
        await shop.api.put(f"{shop.path}/clusters/third", json={"bootstrapServers": ["127.0.0.1:9092"]}),
    ):
        assert refused.status_code == 429
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.json()["type"] == "urn:lagscale:problem:quota-exceeded"
        detail = refused.json()["detail"]
        assert all(word in detail for word in ("2 clusters", "delete some", "platform administrator", "`clusters`"))
        assert "retry-after" not in refused.headers, "waiting does not help"
    assert (await cluster(shop, "second")).status_code == 409, "a name that is taken is told before the quota"
    again = await shop.api.put(f"{shop.path}/clusters/second", json={"bootstrapServers": ["127.0.0.1:9093"]})
    assert again.status_code == 200, "what is there can be changed"
    await shop.api.delete(f"{shop.path}/clusters/second")
    assert (await cluster(shop, "third")).status_code == 201


async def test_a_quota_below_what_is_used_removes_nothing(shop: Shop) -> None:
    await cluster(shop, "second")
    lowered = await limit(shop, clusters=0, monitors=0)
    assert lowered.json()["clusters"] == {"limit": 0, "used": 2}
    assert (await shop.monitor("orders")).status_code == 429
    assert (await shop.api.get(f"{shop.path}/clusters/second")).status_code == 200


async def test_many_creations_at_once_end_exactly_at_the_quota(shop: Shop) -> None:
    await limit(shop, clusters=5, monitors=3)
    clusters = await asyncio.gather(*(cluster(shop, f"c-{n}") for n in range(12)))
    assert sorted(answer.status_code for answer in clusters) == [201] * 4 + [429] * 8
    monitors = await asyncio.gather(*(shop.monitor(f"m-{n}", topics=[f"t-{n}"]) for n in range(12)))
    assert sorted(answer.status_code for answer in monitors) == [201] * 3 + [429] * 9


async def test_monitors_without_a_list_of_topics_have_a_quota_of_their_own(shop: Shop) -> None:
    await limit(shop, patterns=1)
    assert (await shop.monitor("all", topics=None)).status_code == 201
    refused = await shop.monitor("some", topics=None, topicPattern="orders-.*")
    assert refused.status_code == 429
    assert "list their topics" in refused.json()["detail"]
    assert (await shop.monitor("listed")).status_code == 201
    assert (await shop.monitor("listed", topics=None)).status_code == 429, "nor may a list become none"
    assert (await shop.monitor("all", topics=None, policy={"lagThreshold": 7})).status_code == 200
    assert (await used(shop))["patterns"] == {"limit": 1, "used": 1}


async def test_bulk_and_restore_keep_to_the_quotas_that_one_by_one_meets(shop: Shop, shared_url: str) -> None:
    def put(name: str, **fields: Any) -> dict[str, Any]:
        return {"put": {"name": name, "cluster": "main", "consumerGroup": name} | fields}

    async def bulk(*items: dict[str, Any], query: str = "") -> int:
        answer = await shop.api.post(f"{shop.path}/monitors/bulk{query}", json={"items": list(items)})
        if answer.status_code == 429:
            assert "exceeded" in answer.json()["detail"]
        return answer.status_code

    listed = {"topics": ["orders"]}
    await limit(shop, patterns=1, monitors=3)
    for query in ("?dryRun=true", ""):
        assert await bulk(put("a"), put("b"), query=query) == 429, "two without a list"
        assert await bulk(*(put(name, **listed) for name in "abcd"), query=query) == 429, "four"
    assert await bulk(put("a"), put("b", **listed)) == 200
    for query in ("?dryRun=true", ""):
        assert await bulk(put("b"), query=query) == 429, "a list becomes none"
    for query in ("?dryRun=true", ""):
        assert await bulk(put("b"), {"delete": "a"}, query=query) == 200, "what is given up makes room"
    assert (await shop.api.post(f"{shop.path}/monitors/a/restore")).status_code == 429, "it has no list"
    assert await bulk(put("b", **listed)) == 200
    assert (await shop.api.post(f"{shop.path}/monitors/a/restore")).status_code == 200
    await limit(shop, partitions=5)
    measured(shared_url, shop, 5)
    for query in ("?dryRun=true", ""):
        assert await bulk(put("c", **listed), query=query) == 429, "partitions are used up"


async def test_no_monitor_is_added_when_the_measured_partitions_are_used_up(shop: Shop, shared_url: str) -> None:
    await limit(shop, partitions=600)
    assert (await shop.monitor("orders")).status_code == 201
    measured(shared_url, shop, 599)
    assert (await shop.monitor("second", topics=["others"])).status_code == 201, "one partition may be left for it"
    measured(shared_url, shop, 300)
    assert (await used(shop))["partitions"] == {"limit": 600, "used": 600, "unmeasured": 0, "refused": 0}
    refused = await shop.monitor("third", topics=["more"])
    assert refused.status_code == 429
    assert "600 measured partitions" in refused.json()["detail"]


async def test_a_registry_that_grows_is_planned_for_as_it_is(shop: Shop, shared_url: str) -> None:
    # A plan kept from when the tables were empty compares every target with every monitor, a thousand times each.
    database = RegistryDatabase(shared_url, size=1)
    try:
        for _ in range(20):
            async with database.tenant(AccessScope(None, "test"), shop.name) as session:
                await quotas.check_quota(session, Quota.PARTITIONS)
                await quotas.read_usage(session)
                kept = await session.fetch_all(sa.text("select statement from pg_prepared_statements"))
    finally:
        await database.close()
    assert kept == []


async def test_targets_that_do_not_fit_are_counted_apart(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders")
    measured(shared_url, shop, 90_000, "over_quota")
    assert (await used(shop))["partitions"] == {"limit": 50_000, "used": 0, "unmeasured": 0, "refused": 1}


async def test_too_many_requests_are_told_when_to_come_again(shop: Shop, other: Shop) -> None:
    header, others = await shop.key("tenant-admin"), await other.key("tenant-admin")
    await limit(shop, requestsPerSecond=1)
    app = shop.api._transport.app  # type: ignore[attr-defined]
    await app.state.tenant_rates.read(app.state.database)
    answers = [await shop.api.get(shop.path, headers=header) for _ in range(40)]
    assert {answer.status_code for answer in answers} == {200, 429}
    assert [answer.status_code for answer in answers[:10]] == [200] * 10, "a burst passes"
    refused = answers[-1] if answers[-1].status_code == 429 else answers[-2]
    assert refused.headers["retry-after"] == "1"
    assert refused.json()["type"] == "urn:lagscale:problem:rate-limit-exceeded"
    assert all(word in refused.json()["detail"] for word in ("1 API requests", "requestsPerSecond", "administrator"))
    assert (await shop.api.get(other.path, headers=others)).status_code == 200, "another tenant goes on"
    assert (await shop.api.get(shop.path)).status_code == 200, "so does the platform"
