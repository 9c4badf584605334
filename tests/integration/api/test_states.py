"""States of groups and partitions over the API, from rows as the scraper writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from lagscale.domain.lag.rounds import TargetRound
from lagscale.domain.lag.samples import Flag, Sample
from tests.integration.api.conftest import Shop
from tests.support.samples import as_rows, store_rows
from tests.support.stored_rounds import target_of

pytestmark = pytest.mark.integration

POLICY = {"lagThreshold": 100, "sustainSeconds": 30, "samplingInterval": 10, "workSeconds": 0}
#: Positions and ends of samples every 10 s over the window of 120 s.
SLOW = [(10 * n, 50 + 20 * n) for n in range(13)]
STILL = [(100, 5_000 + 20 * n) for n in range(13)]
CALM = [(20 * n, 20 * n) for n in range(13)]

Column = Sequence[tuple[int, int] | Sample | None]


def store(url: str, shop: Shop, topic: str, *columns: Column, members: int | None = 1, ago: float = 1) -> int:
    """Store rounds every 10 s, the newest `ago` seconds ago, each partition a column of (position, end)."""
    tenant_id, target_id = target_of(url, shop.name, topic)
    with psycopg.connect(url) as connection:
        clock = connection.execute("select (extract(epoch from clock_timestamp()) * 1000)::bigint").fetchone()
        assert clock is not None
        first = clock[0] - round(ago * 1000) - 10_000 * (len(columns[0]) - 1)
        taken = [
            TargetRound(
                first + 10_000 * number,
                0,
                tuple(Sample(one[1] - one[0], one[1]) if isinstance(one, tuple) else one for one in row),
                members=members,
                members_age_ms=None if members is None else 0,
            )
            for number, row in enumerate(zip(*columns, strict=True))
        ]
        store_rows(connection, [(tenant_id, target_id, row) for row in as_rows(taken)])
    return target_id


async def state(shop: Shop, monitor: str = "orders") -> dict[str, Any]:
    answer = await shop.api.get(f"{shop.path}/monitors/{monitor}/state")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_every_partition_has_its_state_with_the_numbers_behind_it(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", policy=POLICY)
    store(shared_url, shop, "orders", CALM, SLOW, STILL)
    found = await state(shop)
    assert (found["status"], found["members"], found["consumerGroup"]) == ("stall", 1, "readers")
    assert found["counts"] == {"stall": 1, "warn": 1, "ok": 1}
    assert found["sentence"] == "Of 3 partitions: 1 stall, 1 warn, 1 ok."
    still, slow, calm = found["partitions"]
    assert (still["partition"], still["rule"], still["stuck"], still["hot"]) == (2, "no_progress", True, True)
    assert (still["startLag"], still["lag"], still["position"], still["commitDelta"]) == (4_900, 5_140, 100, 0)
    assert still["unchangedSince"] == still["windowStart"]
    assert still["possiblyUnchangedEarlier"] is True
    assert (slow["partition"], slow["startLag"], slow["lag"], slow["commitDelta"], slow["advanceCount"]) == (
        1,
        50,
        170,
        120,
        12,
    )
    assert (calm["partition"], calm["status"], calm["lag"], calm["stuck"], calm["hot"]) == (0, "ok", 0, False, False)
    assert (found["windowSeconds"], found["stuckAfterSeconds"], found["stuckExcluded"]) == (120.0, 120.0, False)


async def test_without_members_a_commit_that_stands_still_is_a_stop(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", policy=POLICY)
    store(shared_url, shop, "orders", STILL, members=0)
    found = await state(shop)
    assert (found["status"], found["members"], found["partitions"][0]["stuck"]) == ("stop", 0, False)


async def test_a_commit_that_went_back_is_a_rewind(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", policy=POLICY)
    store(shared_url, shop, "orders", [(500, 500), Sample(400, 510, Flag.REWIND), (120, 520)])
    found = await state(shop)
    assert (found["status"], found["partitions"][0]["commitDelta"]) == ("rewind", -380)


async def test_stuck_is_what_the_verdict_leaves_out_where_the_policy_says_when(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", policy=POLICY | {"stuckAfterSeconds": 200})
    store(shared_url, shop, "orders", [(100, 5_000 + 20 * n) for n in range(22)])
    found = await state(shop)
    assert (found["stuckAfterSeconds"], found["stuckExcluded"]) == (200.0, True)
    assert found["partitions"][0]["stuck"] is True
    verdict = (await shop.api.get(f"{shop.path}/monitors/orders/verdict")).json()
    assert (verdict["verdict"], verdict["value"]) == ("calm", 0.0)
    await shop.monitor("orders", policy=POLICY | {"stuckAfterSeconds": 300})
    assert (await state(shop))["partitions"][0]["stuck"] is False


async def test_the_state_changes_no_verdict(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", policy=POLICY)
    store(shared_url, shop, "orders", STILL)
    assert (await state(shop))["partitions"][0]["stuck"] is True
    assert (await shop.api.get(f"{shop.path}/monitors/orders/verdict")).json()["verdict"] == "sustained"


async def test_what_is_not_measured_lately_is_unknown(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", topics=["orders", "refunds"], policy=POLICY)
    store(shared_url, shop, "orders", CALM)
    found = await state(shop)
    assert (found["status"], found["unmeasuredTopics"], found["counts"]) == ("unknown", ["refunds"], {"ok": 1})
    store(shared_url, shop, "refunds", CALM, ago=100)
    found = await state(shop)
    assert (found["status"], found["unmeasuredTopics"], found["counts"]) == (
        "unknown",
        ["refunds"],
        {"ok": 1, "unknown": 1},
    )
    assert found["partitions"][0]["rule"] == "stale"


async def test_a_monitor_without_samples_is_unknown(shop: Shop) -> None:
    await shop.monitor("orders", policy=POLICY)
    found = await state(shop)
    assert (found["status"], found["partitions"], found["newestRoundAt"]) == ("unknown", [], None)


async def test_another_tenants_rounds_are_not_read(shop: Shop, other: Shop, shared_url: str) -> None:
    for one in (shop, other):
        await one.monitor("orders", policy=POLICY)
    store(shared_url, shop, "orders", STILL)
    assert (await state(other))["partitions"] == []
    missing = await other.api.get(f"{other.path}/monitors/nothing/state")
    header = await other.key("tenant-viewer")
    foreign = await shop.api.get(f"{shop.path}/monitors/orders/state", headers=header)
    assert (foreign.status_code, foreign.content) == (missing.status_code, missing.content)
    assert missing.status_code == 404


async def test_an_open_transaction_is_told_since_when_and_how_it_was_measured(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", policy={**POLICY, "isolationLevel": "read_committed"})
    target = store(shared_url, shop, "orders", CALM, CALM)
    since, at = 1_790_000_000_000, 1_790_000_300_000
    # Of partition 1 there is one reading, which is any transaction under way.
    unstable = {"at": at, "partitions": {"0": [200, 1463, since], "1": [7, 1, at]}}
    with psycopg.connect(shared_url) as connection:
        connection.execute(
            "insert into target_state (target_id, tenant_id, code, since, seen_at, unstable) "
            "select id, tenant_id, 'ok', now(), now(), %s from lag_target where id = %s",
            [Jsonb(unstable), target],
        )
    found = await state(shop)
    (told,) = found["openTransactions"]
    sentence = (
        "1,463 messages of partition 0 of orders lie behind an open transaction. Consumers that read committed messages "
        "do not get them yet; they do not count as lag, and do not activate the workload. The last stable offset was "
        "200 from 2026-09-21T14:13:20.000Z or earlier until the newest reading at 2026-09-21T14:18:20.000Z."
    )
    assert (told.pop("since"), told.pop("readAt")) == ("2026-09-21T14:13:20Z", "2026-09-21T14:18:20Z")
    facts = {"topic": "orders", "partition": 0, "messages": 1463, "stableOffset": 200}
    assert told == {**facts, "sentence": sentence}
    assert found["sentence"] == f"All 2 partitions are ok. {sentence}"
    explained = (await shop.api.get(f"{shop.path}/monitors/orders/explain")).json()
    assert sentence in explained["notes"]
    past = await shop.api.get(f"{shop.path}/monitors/orders/explain", params={"at": explained["at"]})
    assert sentence not in past.json()["notes"]
