"""Monitors that list no topics: registered, changed, shown with what is measured, and judged honestly by a part."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.integration.api.conftest import Shop
from tests.support.stored_rounds import write

pytestmark = pytest.mark.integration

POLICY = {"lagThreshold": 100, "sustainSeconds": 30, "samplingInterval": 10, "workSeconds": 0}
PATTERN: dict[str, Any] = {"topics": None, "topicPattern": "orders.*", "excludeTopics": ["orders-b", "x.*"]}


def link(url: str, shop: Shop, *topics: str, code: str = "ok", message: str = "") -> None:
    """Link topics to the shop's only monitor, and say how looking them up went, as the scraper does."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "select m.id, m.tenant_id, m.cluster_id, m.consumer_group, m.version from monitor m "
            "join tenant t on t.id = m.tenant_id where t.name = %s and m.deleted_at is null",
            [shop.name],
        ).fetchone()
        assert row is not None
        monitor, tenant, cluster, group, version = row
        for topic in topics:
            connection.execute(
                "insert into lag_target (tenant_id, cluster_id, consumer_group, topic, isolation_level) "
                "values (%s, %s, %s, %s, 'read_uncommitted') on conflict do nothing",
                [tenant, cluster, group, topic],
            )
            connection.execute(
                "insert into monitor_target (monitor_id, target_id, tenant_id) "
                "select %s, id, tenant_id from lag_target where tenant_id = %s and topic = %s",
                [monitor, tenant, topic],
            )
        connection.execute(
            "insert into monitor_scope values (%s, %s, %s, now(), %s, %s, %s, now(), now())",
            [monitor, tenant, version, len(topics), code, message],
        )


async def shown(shop: Shop) -> dict[str, Any]:
    answer = await shop.api.get(f"{shop.path}/monitors/orders")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    (listed,) = (await shop.api.get(f"{shop.path}/monitors")).json()["items"]
    assert listed == found
    return found


async def test_a_pattern_is_registered_and_shows_what_is_measured(shop: Shop, shared_url: str) -> None:
    made = await shop.monitor("orders", **PATTERN)
    assert made.status_code == 201, made.text
    body = made.json()
    assert (body["topics"], body["topicPattern"], body["excludeTopics"], body["measuredTopics"], body["topicDiscovery"]) == (
        None, "orders.*", ["orders-b", "x.*"], [], None,
    )  # fmt: skip
    assert (await shop.monitor("orders", **PATTERN)).json()["version"] == 1
    link(shared_url, shop, "orders-c", "orders-a")
    found = await shown(shop)
    assert found["measuredTopics"] == ["orders-a", "orders-c"]
    assert found["topicDiscovery"]["code"] == "ok"
    health = (await shop.api.get(f"{shop.path}/monitors/orders/health")).json()
    assert health["topicDiscovery"]["code"] == "ok"
    assert [target["topic"] for target in health["targets"]] == ["orders-a", "orders-c"]


async def test_a_list_shows_its_topics_and_no_look_up(shop: Shop) -> None:
    await shop.monitor("orders", topics=["b", "a"])
    found = await shown(shop)
    assert (found["topics"], found["measuredTopics"], found["topicDiscovery"]) == (["b", "a"], ["a", "b"], None)


async def test_neither_list_nor_pattern_means_the_groups_topics(shop: Shop) -> None:
    assert (await shop.monitor("orders", topics=None)).status_code == 201
    found = await shown(shop)
    assert (found["topics"], found["topicPattern"], found["measuredTopics"]) == (None, None, [])
    verdict = (await shop.api.get(f"{shop.path}/monitors/orders/verdict")).json()
    assert (verdict["verdict"], verdict["reason"], verdict["answer"]) == ("unknown", "nothing_to_measure", None)


async def test_a_changed_scope_keeps_what_it_still_means(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", **PATTERN)
    link(shared_url, shop, "orders-a", "orders-c")
    await shop.monitor("orders", **PATTERN, policy={"lagThreshold": 7})
    assert (await shown(shop))["measuredTopics"] == ["orders-a", "orders-c"]
    narrowed = await shop.monitor("orders", **PATTERN | {"excludeTopics": ["orders-a"]})
    assert narrowed.json()["measuredTopics"] == ["orders-c"]
    listed = await shop.monitor("orders", topics=["orders-d"])
    assert (listed.json()["measuredTopics"], listed.json()["topicDiscovery"]) == (["orders-d"], None)
    again = await shop.monitor("orders", **PATTERN | {"consumerGroup": "others"})
    assert again.json()["measuredTopics"] == []


async def test_a_part_of_the_topics_is_never_calm(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", **PATTERN, policy=POLICY)
    link(shared_url, shop, "orders-a", code="too_many_topics", message="101 topics, at most 100")
    write(shared_url, shop.name, "orders-a", [(41, (0,)), (31, (0,)), (21, (0,)), (11, (0,)), (1, (0,))])
    found = (await shop.api.get(f"{shop.path}/monitors/orders/verdict")).json()
    assert (found["verdict"], found["value"], found["answer"]) == ("unknown", None, None)
    assert found["sentence"] == "101 topics, at most 100"


async def test_lag_that_lasts_in_a_part_is_told(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", **PATTERN, policy=POLICY)
    link(shared_url, shop, "orders-a", code="too_many_topics", message="101 topics, at most 100")
    write(shared_url, shop.name, "orders-a", [(50, (0,)), *((at, (150,)) for at in (41, 31, 21, 11, 1))], members=3)
    found = (await shop.api.get(f"{shop.path}/monitors/orders/verdict")).json()
    # The present three members are not taken away on the word of a part.
    assert (found["verdict"], found["value"], found["answer"]["lastKnown"]) == ("sustained", 300.0, False)
    assert found["sentence"].endswith("101 topics, at most 100")
