"""The quota of partitions from the first poll to what the scalers read: counted, refused by name, measured when it fits."""

from __future__ import annotations

import uuid

import pytest

from devstack.server import wait_until
from lagscale.store.connection import open_pool
from lagscale.store.registrations.load import ROLE, PostgresRegistrations
from tests.integration.scraper.conftest import World

pytestmark = pytest.mark.integration


def group() -> str:
    return f"g-{uuid.uuid4().hex[:8]}"


def limit(world: World, partitions: int) -> None:
    world.ask("update tenant set max_partitions = %s where id = %s", partitions, world.tenant)


def version(world: World) -> int:
    return int(world.ask("select version from registry_change")[0][0])


def state(world: World, target: int) -> tuple[str, str, int | None]:
    found = world.ask("select code, message, partitions from target_state where target_id = %s", target)
    return (*found[0],) if found else ("", "", None)  # type: ignore[return-value]


def settle(world: World, target: int, code: str) -> None:
    def settled() -> bool:
        world.tick()
        return state(world, target)[0] == code

    wait_until(settled, 60, f"the target was {code}")


async def over_quota(world: World) -> set[str]:
    """What the scaler reads of the tenant's monitors."""
    pool = open_pool(world.url, ROLE, 1, application="test")
    await pool.open(wait=True)
    try:
        return {one.over_quota_reason for one in (await PostgresRegistrations(pool).load()).monitors}
    finally:
        await pool.close()


async def test_the_second_topic_does_not_fit_and_is_not_measured_until_there_is_room(world: World) -> None:
    limit(world, 5)
    cluster = world.cluster()
    (first,) = world.monitor(cluster, group(), world.topic(3))
    (second,) = world.monitor(cluster, group(), world.topic(4))
    settle(world, first, "ok")
    settle(world, second, "over_quota")
    code, message, partitions = state(world, second)
    assert (code, partitions) == ("over_quota", 4)
    assert all(words in message for words in ("4 partitions", "2 are left", "5 measured partitions", "administrator"))
    rows = len(world.rows(second))
    for _ in range(3):
        world.tick()
    assert len(world.rows(second)) == rows, "it is not measured"
    assert world.rows(first)[0]["parts"] == 3
    assert await over_quota(world) == {"", message}

    limit(world, 7)
    settle(world, second, "ok")
    assert world.rows(second)[0]["parts"] == 4
    assert await over_quota(world) == {""}


def test_a_quota_that_is_lowered_leaves_the_newer_one_out_at_the_next_plan(world: World) -> None:
    cluster = world.cluster()
    (first,) = world.monitor(cluster, group(), world.topic(3))
    (second,) = world.monitor(cluster, group(), world.topic(4))
    settle(world, first, "ok")
    settle(world, second, "ok")
    limit(world, 3)
    rows = len(world.rows(second))
    before = len(world.rows(first))
    for _ in range(4):
        world.tick()
    assert len(world.rows(second)) == rows
    assert len(world.rows(first)) == before + 4
    # Its state follows when it is asked for its size, which is once a minute.
    world.at_ms += 60_000
    settle(world, second, "over_quota")


def test_only_what_changes_an_answer_or_a_plan_raises_the_version(world: World) -> None:
    (target,) = world.monitor(world.cluster(), group(), world.topic(2))
    before = version(world)
    settle(world, target, "ok")
    counted = version(world)
    assert counted > before, "its partitions are known now"
    for _ in range(3):
        world.tick()
    assert version(world) == counted
    # A cluster that does not answer has not lost its partitions.
    world.ask("update cluster set bootstrap = '{127.0.0.1:9}', version = version + 1")
    changed = version(world)
    settle(world, target, "cluster")
    assert state(world, target)[2] == 2
    assert version(world) == changed
