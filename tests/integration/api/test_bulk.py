"""Many changes of monitors in one request: all or none, told field by field, quick, and one change for scalers."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import httpx
import pytest

from tests.integration.api.conftest import Shop, fresh
from tests.integration.api.test_registry import fields, rows

pytestmark = pytest.mark.integration

#: Far above what is measured (1.5 s), for machines that are busy.
SECONDS_FOR_A_THOUSAND = 20.0


def put(name: str, **given: Any) -> dict[str, Any]:
    return {"put": {"name": name, "cluster": "main", "consumerGroup": "readers", "topics": ["orders"], **given}}


async def bulk(shop: Shop, *items: dict[str, Any], dry: bool = False) -> httpx.Response:
    return await shop.api.post(
        f"{shop.path}/monitors/bulk", json={"items": list(items)}, params={"dryRun": "true"} if dry else None
    )


async def names(shop: Shop) -> list[str]:
    return [item["name"] for item in (await shop.api.get(f"{shop.path}/monitors")).json()["items"]]


def version_of(url: str) -> int:
    return int(rows(url, "select version from registry_change")[0]["version"])


async def test_changes_are_told_dry_and_then_made(shop: Shop, shared_url: str) -> None:
    await shop.monitor("a", policy={"lagThreshold": 5})
    await shop.monitor("b")
    await shop.monitor("c")
    items = (
        put("a", policy={"lagThreshold": 7, "holdSeconds": 60}, topics=["orders", "refunds"]),
        put("b"),
        {"delete": "c"},
        {"delete": "never-there"},
        put("d"),
    )
    before = version_of(shared_url)
    told = (await bulk(shop, *items, dry=True)).json()
    assert version_of(shared_url) == before
    assert await names(shop) == ["a", "b", "c"]
    made = (await bulk(shop, *items)).json()
    assert version_of(shared_url) == before + 1
    assert await names(shop) == ["a", "b", "d"]
    assert (told["dryRun"], made["dryRun"]) == (True, False)
    for answer in (told, made):
        assert [item["outcome"] for item in answer["items"]] == [
            "changed", "unchanged", "deleted", "unchanged", "created",
        ]  # fmt: skip
        assert [answer[kind] for kind in ("created", "changed", "unchanged", "deleted")] == [1, 1, 2, 1]
        assert answer["items"][0]["differences"] == {
            "policy.lagThreshold": {"before": "5", "after": "7"},
            "policy.holdSeconds": {"before": None, "after": "60"},
            "topics": {"before": ["orders"], "after": ["orders", "refunds"]},
        }
    assert [item["version"] for item in told["items"]] == [1, 1, 1, None, None]
    assert [item["version"] for item in made["items"]] == [2, 1, None, None, 1]
    again = (await bulk(shop, *items)).json()
    assert {item["outcome"] for item in again["items"]} == {"unchanged"}
    assert version_of(shared_url) == before + 1


async def test_what_is_made_in_bulk_is_as_if_put_one_by_one(shop: Shop, other: Shop, shared_url: str) -> None:
    bodies = [
        put("listed", topics=["a", "b"]),
        put("pattern", topics=None, topicPattern="orders\\..*", excludeTopics=["orders.test"]),
        put("group", topics=None),
        put("one", topics=["a"], policy={"partitionLimitation": "1-3", "isolationLevel": "read_committed"}),
    ]
    await bulk(shop, *(put(body["put"]["name"], topics=["b", "c"]) for body in bodies))
    assert (await bulk(shop, *bodies)).json()["changed"] == 4
    for body in bodies:
        await other.monitor(body["put"]["name"], topics=["b", "c"])
        await other.monitor(body["put"]["name"], **body["put"])
    for query in (
        "select m.name, l.topic, l.isolation_level, l.partition_limitation from monitor m "
        "join monitor_target x on x.monitor_id = m.id join lag_target l on l.id = x.target_id "
        "join tenant t on t.id = m.tenant_id where t.name = %s order by 1, 2, 3, 4",
        "select m.name, v.version, v.policy from monitor m join monitor_version v on v.monitor_id = m.id "
        "join tenant t on t.id = m.tenant_id where t.name = %s order by 1, 2",
        "select a.action, a.object, a.after -> 'policy' as policy from audit_event a "
        "join tenant t on t.id = a.tenant_id where t.name = %s and a.object like 'monitor/%%' order by 2, 1",
    ):
        found = rows(shared_url, query, shop.name)
        if "l.topic" in query:
            # What is listed is measured; of what is looked up only that goes which is no longer meant.
            measured = [(row["name"], row["topic"]) for row in found]
            assert measured == [("group", "b"), ("group", "c"), ("listed", "a"), ("listed", "b"), ("one", "a")]
        assert found
        assert found == rows(shared_url, query, other.name)


async def test_faults_of_all_items_come_together_and_nothing_is_made(shop: Shop, shared_url: str) -> None:
    before = version_of(shared_url)
    answer = await bulk(
        shop,
        put("good"),
        put("a", policy={"lagThreshold": 0, "lagTreshold": 1}),
        put("b", cluster="elsewhere"),
        put("c", topics=None, topicPattern="("),
    )
    assert fields(answer) == {
        "items.1.put.policy.lagThreshold",
        "items.1.put.policy.lagTreshold",
        "items.2.put.cluster",
        "items.3.put.topicPattern",
    }
    assert await names(shop) == []
    assert version_of(shared_url) == before


@pytest.mark.parametrize(
    ("items", "field"),
    [
        ([], "items"),
        ([{}], "items.0"),
        ([put("a") | {"delete": "a"}], "items.0"),
        ([{"put": {"cluster": "main", "consumerGroup": "g"}}], "items.0.put.name"),
        ([put("a"), {"delete": "a"}], "items.1.delete"),
        ([{"delete": "A"}], "items.0.delete"),
        ([{"delete": "a", "version": -1}], "items.0.version"),
        ([put("a", policy={"lagThreshold": [1]})], "items.0.put.policy.lagThreshold"),
        ([{"delete": f"m{number}"} for number in range(1001)], "items"),
    ],
)
async def test_a_fault_of_an_item_names_its_field(shop: Shop, items: list[Any], field: str) -> None:
    assert fields(await bulk(shop, *items)) == {field}


async def test_an_item_of_another_version_stops_all(shop: Shop) -> None:
    await shop.monitor("a")
    for item in (put("a") | {"version": 4}, put("a") | {"version": 0}, {"delete": "b", "version": 1}):
        refused = await bulk(shop, put("new"), item)
        assert (refused.status_code, refused.json()["detail"].startswith("items.1.version")) == (412, True)
    assert await names(shop) == ["a"]
    good = await bulk(shop, put("a", overridable=True) | {"version": 1}, put("new") | {"version": 0})
    assert good.json()["items"][0]["version"] == 2


async def test_the_quota_counts_what_is_there_in_the_end(shop: Shop) -> None:
    await shop.api.put(shop.path, json={"maxMonitors": 2})
    assert (await bulk(shop, put("a"), put("b"))).status_code == 200
    for dry in (True, False):
        assert (await bulk(shop, put("c"), dry=dry)).status_code == 429
        assert (await bulk(shop, put("c"), put("d"), {"delete": "a"}, dry=dry)).status_code == 429
    assert (await bulk(shop, put("c"), put("d"), {"delete": "a"}, {"delete": "b"})).status_code == 200
    assert await names(shop) == ["c", "d"]


async def test_two_at_once_do_not_mix(shop: Shop) -> None:
    mine, theirs = ([put(f"m{number}", consumerGroup=group) for number in range(20)] for group in ("mine", "theirs"))
    answers = await asyncio.gather(bulk(shop, *mine), bulk(shop, *reversed(theirs)), bulk(shop, *mine))
    assert {answer.status_code for answer in answers} == {200}
    listing = (await shop.api.get(f"{shop.path}/monitors")).json()["items"]
    assert len({item["consumerGroup"] for item in listing}) == 1
    assert len(listing) == 20


async def test_a_thousand_are_made_changed_and_deleted_within_seconds(shop: Shop) -> None:
    numbers = range(1000)
    rounds = (
        [put(f"m{number}", topics=[f"t{number}", "shared"]) for number in numbers],
        [put(f"m{number}", topics=[f"t{number}", "other"], policy={"lagThreshold": 9}) for number in numbers],
        [{"delete": f"m{number}"} for number in numbers],
    )
    for items, kind in zip(rounds, ("created", "changed", "deleted"), strict=True):
        began = time.monotonic()
        answer = await bulk(shop, *items)
        took = time.monotonic() - began
        assert answer.json()[kind] == 1000, answer.text[:500]
        assert took < SECONDS_FOR_A_THOUSAND, f"{kind}: {took:.1f} s"


async def test_another_tenants_bulk_is_like_none_and_a_viewer_may_not(shop: Shop, other: Shop) -> None:
    await other.monitor("orders")
    admin, viewer = await shop.key("tenant-admin"), await shop.key("tenant-viewer")
    body = {"items": [{"delete": "orders"}]}
    foreign = await shop.api.post(f"{other.path}/monitors/bulk", json=body, headers=admin)
    missing = await shop.api.post(f"/v1/tenants/{fresh('none')}/monitors/bulk", json=body, headers=admin)
    assert (foreign.status_code, foreign.content) == (missing.status_code, missing.content) == (404, missing.content)
    assert (await shop.api.post(f"{shop.path}/monitors/bulk", json=body, headers=viewer)).status_code == 403
    assert await names(other) == ["orders"]
