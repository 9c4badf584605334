"""A monitor deleted, restored, its name used again, forgotten at last; and lists by what monitors are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from lagscale.store.connection import open_pool
from tests.integration.api.conftest import Shop
from tests.integration.api.replica import Replica, past
from tests.integration.api.test_explain import LASTING, POLICY, as_answered, explained
from tests.integration.api.test_registry import fields, rows
from tests.support.stored_rounds import write

pytestmark = pytest.mark.integration


@pytest.fixture
async def replica(shop: Shop, shared_url: str) -> AsyncIterator[Replica]:
    pool = open_pool(shared_url, "lagscale_scaler", 1, application="test-replica")
    await pool.open(wait=True)
    yield Replica(shared_url, shop, pool)
    await pool.close()


async def listed(shop: Shop, **query: Any) -> list[dict[str, Any]]:
    answer = await shop.api.get(f"{shop.path}/monitors", params=query)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["items"])


async def names(shop: Shop, **query: Any) -> list[str]:
    return [item["name"] for item in await listed(shop, **query)]


async def delete(shop: Shop, name: str) -> None:
    assert (await shop.api.delete(f"{shop.path}/monitors/{name}")).status_code == 204


async def restore(shop: Shop, name: str) -> Any:
    return await shop.api.post(f"{shop.path}/monitors/{name}/restore")


def age(url: str, shop: Shop, **columns: str) -> None:
    """Set instants of the tenant's monitors back by intervals."""
    with psycopg.connect(url, autocommit=True) as connection:
        for column, interval in columns.items():
            connection.execute(
                f"update monitor set {column} = now() - %s::interval "  # type: ignore[arg-type]
                "where tenant_id = (select id from tenant where name = %s)",
                (interval, shop.name),
            )
        connection.execute("select tidy_registry(clock_timestamp())")


async def test_a_deleted_monitor_is_listed_and_comes_back_with_its_history(
    shop: Shop, shared_url: str, replica: Replica
) -> None:
    await shop.monitor("orders", policy=POLICY)
    write(shared_url, shop.name, "orders", LASTING)
    at = await replica.record_answer()
    before = await explained(shop, at)
    await delete(shop, "orders")
    assert (await names(shop), await names(shop, deleted="true")) == ([], ["orders"])
    [gone] = await listed(shop, deleted="true")
    assert (gone["deletedAt"] is not None, gone["measuredTopics"]) == (True, [])
    gone_ms = await past(shared_url, 0)
    back = await restore(shop, "orders")
    assert (back.status_code, back.headers["etag"], back.json()["deletedAt"]) == (200, '"3"', None)
    assert back.json()["measuredTopics"] == ["orders"]
    assert (await names(shop), await names(shop, deleted="true")) == (["orders"], [])
    assert as_answered(await explained(shop, at)) == as_answered(before)
    assert (await shop.api.get(f"{shop.path}/monitors/orders/verdict")).json()["verdict"] == before["evaluation"][
        "verdict"
    ]
    hole = await explained(shop, gone_ms)
    assert any("restored after this time: nothing was measured" in note for note in hole["notes"]), hole["notes"]
    assert hole["registration"]["topics"] == []
    assert (await explained(shop))["notes"] == []
    [audited] = rows(
        shared_url,
        "select a.actor from audit_event a join tenant t on t.id = a.tenant_id "
        "where t.name = %s and a.action = 'monitor.restore'",
        shop.name,
    )
    assert audited["actor"] == "bootstrap key"


async def test_a_name_used_again_is_another_monitor_and_stands_in_the_way(shop: Shop) -> None:
    await shop.monitor("orders", consumerGroup="first")
    await delete(shop, "orders")
    await shop.monitor("orders", consumerGroup="second")
    taken = await restore(shop, "orders")
    assert (taken.status_code, taken.json()["type"]) == (409, "urn:lagscale:problem:conflict")
    await delete(shop, "orders")
    assert [item["consumerGroup"] for item in await listed(shop, deleted="true")] == ["first", "second"]
    # The last one comes back, so the moments of the first stay the first's.
    assert (await restore(shop, "orders")).json()["consumerGroup"] == "second"
    assert (await restore(shop, "orders")).status_code == 409
    assert (await restore(shop, "never-there")).status_code == 404


async def test_a_monitor_comes_back_by_the_rules_of_today(shop: Shop) -> None:
    await shop.monitor("orders", policy={"lagThreshold": 5})
    await shop.monitor("refunds")
    await delete(shop, "orders")
    await shop.api.put(shop.path, json={"policyLimits": {"lagThreshold": {"min": 100}}})
    assert fields(await restore(shop, "orders")) == {"policy.lagThreshold"}
    await shop.api.put(shop.path, json={"policyDefaults": {"holdSeconds": 60}, "maxMonitors": 1})
    assert (await restore(shop, "orders")).status_code == 429
    await shop.api.put(shop.path, json={"policyDefaults": {"holdSeconds": 60}})
    assert (await restore(shop, "orders")).json()["inheritedPolicy"] == {"holdSeconds": "60"}


async def test_what_was_deleted_long_ago_is_gone(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders")
    await delete(shop, "orders")
    age(shared_url, shop, deleted_at="29 days")
    assert await names(shop, deleted="true") == ["orders"]
    age(shared_url, shop, deleted_at="31 days")
    assert await names(shop, deleted="true") == []
    assert (await restore(shop, "orders")).status_code == 404


async def test_deleted_monitors_go_with_their_cluster(shop: Shop) -> None:
    await shop.monitor("orders")
    await delete(shop, "orders")
    assert (await shop.api.delete(f"{shop.path}/clusters/main")).status_code == 204
    assert await names(shop, deleted="true") == []
    assert (await restore(shop, "orders")).status_code == 404


async def test_deleted_monitors_are_read_page_by_page(shop: Shop) -> None:
    for group in ("one", "two", "three"):
        await shop.monitor("orders", consumerGroup=group)
        await delete(shop, "orders")
    await shop.monitor("another")
    await delete(shop, "another")
    seen: list[str] = []
    query: dict[str, Any] = {"deleted": "true", "limit": 1}
    while True:
        page = (await shop.api.get(f"{shop.path}/monitors", params=query)).json()
        seen += [item["consumerGroup"] for item in page["items"]]
        if page["next"] is None:
            break
        query["cursor"] = page["next"]
    assert seen == ["readers", "one", "two", "three"]


async def test_lists_by_cluster_group_and_state(shop: Shop, shared_url: str) -> None:
    await shop.api.put(f"{shop.path}/clusters/second", json={"bootstrapServers": ["k:2"]})
    await shop.monitor("a")
    await shop.monitor("b", cluster="second", consumerGroup="others")
    await shop.monitor("c", cluster="second", topics=["broken"])
    await shop.monitor("d", topics=None)
    assert await names(shop, cluster="second") == ["b", "c"]
    assert await names(shop, cluster="second", consumerGroup="readers") == ["c"]
    assert await names(shop, consumerGroup="nobody") == []
    assert await names(shop, cluster="\u0000") == []
    assert await names(shop, autoRegistered="true") == []
    assert await names(shop, failing="true") == []
    with psycopg.connect(shared_url, autocommit=True) as connection:
        connection.execute(
            "insert into target_state (target_id, tenant_id, code, since, seen_at) "
            "select l.id, l.tenant_id, 'topic_missing', now(), now() from lag_target l join tenant t "
            "on t.id = l.tenant_id where t.name = %s and l.topic = 'broken'",
            (shop.name,),
        )
        connection.execute(
            "insert into monitor_scope (monitor_id, tenant_id, monitor_version, matched, code, since, seen_at) "
            "select m.id, m.tenant_id, 1, 0, 'no_topics', now(), now() from monitor m join tenant t "
            "on t.id = m.tenant_id where t.name = %s and m.name = 'd'",
            (shop.name,),
        )
        assert await names(shop, failing="true") == ["c", "d"]
        assert await names(shop, failing="false") == ["a", "b"]
        connection.execute(
            "insert into cluster_state (cluster_id, tenant_id, code, since, seen_at) "
            "select c.id, c.tenant_id, 'unreachable', now(), now() from cluster c join tenant t "
            "on t.id = c.tenant_id where t.name = %s and c.name = 'second'",
            (shop.name,),
        )
    assert await names(shop, failing="true") == ["b", "c", "d"]


async def test_another_tenants_deleted_monitor_is_like_none(shop: Shop, other: Shop) -> None:
    await other.monitor("orders")
    await delete(other, "orders")
    key = await shop.key("tenant-admin")
    foreign = await shop.api.post(f"{other.path}/monitors/orders/restore", headers=key)
    mine = await shop.api.post(f"{shop.path}/monitors/orders/restore", headers=key)
    assert (foreign.status_code, foreign.content) == (mine.status_code, mine.content) == (404, mine.content)
    assert await names(shop, deleted="true") == []
