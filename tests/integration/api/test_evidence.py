"""Verdicts with their evidence, samples and health, from rows as the scraper writes them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

from tests.integration.api.conftest import Shop
from tests.support.stored_rounds import target_of, write

pytestmark = pytest.mark.integration

POLICY = {"lagThreshold": 100, "sustainSeconds": 30, "samplingInterval": 10, "workSeconds": 0}


async def verdict(shop: Shop, monitor: str = "orders") -> dict[str, Any]:
    answer = await shop.api.get(f"{shop.path}/monitors/{monitor}/verdict")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_lag_that_lasts_is_sustained_with_its_island(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", policy=POLICY)
    write(shared_url, shop.name, "orders", [(50, (0, 0)), (41, (150, 0)), (31, (160, 0)), (21, (180, 0)), (11, (200, 0)), (1, (900, 7))])  # fmt: skip
    found = await verdict(shop)
    assert (found["verdict"], found["reason"], found["value"], found["active"]) == ("sustained", "lasted", 200.0, True)
    assert (found["total"], found["partitions"], found["missing"], found["members"]) == (907, 2, 0, 0)
    island = found["island"]
    assert (island["topic"], island["partition"], island["lag"], island["startKnown"]) == ("orders", 0, 900, True)
    assert island["durationSeconds"] == 40.0
    assert "Partition 0 of orders has been above 100 for 40 s" in found["sentence"]
    assert found["answer"] == {"value": 200.0, "active": True, "lastKnown": False, "knownAt": None}
    assert found["policy"]["maxGapSeconds"] == 25.0
    age = datetime.fromisoformat(found["judgedAt"]) - datetime.fromisoformat(found["newestRoundAt"])
    assert timedelta(seconds=0.9) < age < timedelta(seconds=20)


async def test_a_short_spike_is_calm(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", policy=POLICY)
    write(shared_url, shop.name, "orders", [(41, (0,)), (31, (0,)), (21, (0,)), (11, (0,)), (1, (900,))])
    found = await verdict(shop)
    assert (found["verdict"], found["reason"], found["value"]) == ("calm", "not_yet", 0.0)
    assert found["answerSentence"] == "KEDA gets value 0, inactive."


async def test_without_samples_measuring_begins(shop: Shop) -> None:
    await shop.monitor("orders", policy=POLICY)
    found = await verdict(shop)
    assert (found["verdict"], found["reason"], found["value"], found["answer"]) == ("unknown", "no_data", None, None)
    assert found["total"] is None
    assert found["sentence"].startswith("Not every topic has a sample yet")


async def test_a_topic_that_is_not_there_is_named(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", policy=POLICY)
    write(shared_url, shop.name, "orders", [(1, ())])
    found = await verdict(shop)
    assert (found["reason"], found["absentTopics"]) == ("no_topic", ["orders"])
    assert "orders" in found["sentence"]


async def test_a_stale_answer_is_held(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", policy=POLICY | {"staleAfterSeconds": 30})
    write(shared_url, shop.name, "orders", [(140, (0,)), (130, (150,)), (120, (160,)), (110, (170,)), (100, (180,))])
    found = await verdict(shop)
    assert (found["verdict"], found["reason"]) == ("unknown", "stale")
    assert found["total"] is None
    assert found["answer"]["lastKnown"] is True
    assert found["answer"]["active"] is True
    assert found["answer"]["value"] == 100.0
    assert "last-known answer" in found["answerSentence"]


async def test_samples_are_listed_by_target_and_partition_the_newest_first(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", topics=["orders", "refunds"], policy=POLICY)
    write(shared_url, shop.name, "orders", [(30, (1, 2)), (20, (None, 3)), (10, (4, 5))])
    write(shared_url, shop.name, "refunds", [(25, (7,)), (5, (8,))])
    path = f"{shop.path}/monitors/orders/samples"
    everything = (await shop.api.get(path)).json()
    assert [(item["topic"], len(item["partitions"])) for item in everything["items"]] == [
        ("refunds", 1), ("orders", 2), ("orders", 1), ("refunds", 1), ("orders", 2),
    ]  # fmt: skip
    hole = everything["items"][2]
    assert hole["missing"] == [0]
    assert hole["partitions"] == [
        {"partition": 1, "lag": 3, "endOffset": 10_000, "position": 9_997, "flags": [], "lost": 0}
    ]
    paged: list[dict[str, Any]] = []
    params: dict[str, Any] = {"limit": 2}
    while True:
        page = (await shop.api.get(path, params=params)).json()
        paged += page["items"]
        if page["next"] is None:
            break
        params = {"limit": 2, "cursor": page["next"]}
    assert paged == everything["items"]
    begin, end = everything["items"][3]["at"], everything["items"][1]["at"]
    between = (await shop.api.get(path, params={"from": begin, "to": end})).json()
    assert between["items"] == everything["items"][2:4]


@pytest.mark.parametrize(("name", "value"), [("from", "yesterday"), ("to", "2030-01-01T00:00:00"), ("cursor", "WyJ4IiwgInkiXQ")])  # fmt: skip
async def test_a_fault_of_the_span_names_the_parameter(shop: Shop, name: str, value: str) -> None:
    await shop.monitor("orders")
    answer = await shop.api.get(f"{shop.path}/monitors/orders/samples", params={name: value})
    assert answer.status_code == 422
    assert [fault["field"] for fault in answer.json()["errors"]] == [name]


async def test_health_tells_states_since_when_and_the_newest_samples_age(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", topics=["orders", "refunds"])
    write(shared_url, shop.name, "orders", [(9, (1,))])
    tenant_id, refunds = target_of(shared_url, shop.name, "refunds")
    with psycopg.connect(shared_url) as connection:
        connection.execute(
            "insert into target_state values (%s, %s, 'no_topic', 'The topic does not exist.', '2030-01-01Z', now())",
            (refunds, tenant_id),
        )
        connection.execute(
            "insert into cluster_state select id, tenant_id, 'authentication_failed', 'The broker refuses.', "
            "'2030-01-01Z', now() from cluster where tenant_id = %s",
            (tenant_id,),
        )
    health = (await shop.api.get(f"{shop.path}/monitors/orders/health")).json()
    assert health["clusterState"]["code"] == "authentication_failed"
    first, second = health["targets"]
    assert (first["topic"], first["state"]) == ("orders", None)
    assert 8.9 < first["newestSampleAgeSeconds"] < 60
    assert (second["topic"], second["state"]["code"], second["newestSampleAt"]) == ("refunds", "no_topic", None)
    assert second["state"]["since"] == "2030-01-01T00:00:00Z"
    whole = (await shop.api.get(f"{shop.path}/health")).json()
    assert whole["ok"] is False
    [cluster] = whole["clusters"]
    assert cluster["targetsByCode"] == {"not_asked": 1, "no_topic": 1}
    assert cluster["newestSampleAgeSeconds"] > 8.9
    assert cluster["stalestTargetAgeSeconds"] is None
    shown = (await shop.api.get(f"{shop.path}/clusters/main")).json()
    assert shown["state"]["code"] == "authentication_failed"


async def test_the_service_is_ready_while_the_store_answers(shop: Shop) -> None:
    for path in ("/readyz", "/healthz", "/livez"):
        assert (await shop.api.get(path, headers={"Authorization": ""})).status_code == 200
