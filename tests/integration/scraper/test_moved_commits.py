"""Commits that move otherwise than by reading: reset by hand, beyond the end, overtaken, deleted, expired."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from devstack.broker import Broker
from devstack.server import wait_until
from lagscale.domain.lag.samples import Flag
from tests.integration.scraper import raw_requests

pytestmark = pytest.mark.integration
World = Any  # The fixture's class lives in conftest, which is not importable by name.


def fresh(prefix: str = "g") -> str:
    return f"{prefix}-{uuid.uuid4().hex[:10]}"


def newest(world: World, target: int) -> dict[str, Any]:
    """The row of one more round."""
    stored = len(world.rows(target))
    world.tick()
    rows = world.rows(target)
    assert len(rows) == stored + 1
    return dict(rows[0])


def cut(world: World, topic: str, offset: int, partition: int = 0) -> None:
    """Delete the records below an offset, as `kafka-delete-records` does."""
    world.admin.delete_records([TopicPartition(topic, partition, offset)])[
        TopicPartition(topic, partition, offset)
    ].result(20)


def test_a_group_reset_to_the_earliest_offset_is_a_rewind(world: World) -> None:
    topic, group = world.topic(2), fresh()
    world.produce(topic, 40, 0)
    world.produce(topic, 20, 1)
    cut(world, topic, 5)
    world.commit(group, topic, 40, 20)
    (target,) = world.monitor(world.cluster(), group, topic)
    row = newest(world, target)
    assert (row["lags"], row["flags"], row["total_lag"]) == ([0, 0], None, 0)
    world.commit(group, topic, 5, None)
    row = newest(world, target)
    assert (row["lags"], row["flags"], row["lost"]) == ([35, 0], [Flag.REWIND, 0], None)
    assert (row["total_lag"], row["max_part"], row["lagging"]) == (35, 0, 1)
    # Nothing was read: a commit that went back is no work.
    assert row["moved_age"] is None
    # It went back once.
    row = newest(world, target)
    assert (row["lags"], row["flags"]) == ([35, 0], None)


def test_a_group_reset_to_an_offset_goes_back_or_ahead_by_it(world: World) -> None:
    topic, group = world.topic(), fresh()
    world.produce(topic, 30)
    world.commit(group, topic, 10)
    (target,) = world.monitor(world.cluster(), group, topic)
    assert newest(world, target)["lags"] == [20]
    world.commit(group, topic, 4)
    row = newest(world, target)
    assert (row["lags"], row["flags"]) == ([26], [Flag.REWIND])
    world.commit(group, topic, 25)
    row = newest(world, target)
    assert (row["lags"], row["flags"]) == ([5], None)


def test_a_group_reset_to_the_latest_offset_has_no_lag_at_once(world: World) -> None:
    topic, group = world.topic(), fresh()
    world.produce(topic, 500)
    world.commit(group, topic, 100)
    (target,) = world.monitor(world.cluster(), group, topic)
    assert newest(world, target)["lags"] == [400]
    world.commit(group, topic, 500)
    row = newest(world, target)
    assert (row["lags"], row["flags"], row["total_lag"], row["lagging"]) == ([0], None, 0, 0)


def test_messages_deleted_before_they_were_read_are_lost_until_the_group_reads_on(world: World) -> None:
    topic, group = world.topic(2), fresh()
    world.produce(topic, 100, 0)
    world.produce(topic, 10, 1)
    world.commit(group, topic, 30, 4)
    (target,) = world.monitor(world.cluster(), group, topic)
    row = newest(world, target)
    assert (row["lags"], row["flags"], row["lost"]) == ([70, 6], None, None)
    cut(world, topic, 80)
    row = newest(world, target)
    assert (row["lags"], row["flags"], row["lost"]) == ([20, 6], [Flag.LOST, 0], [50, 0])
    # The log start moved the position, and no consumer did.
    assert row["moved_age"] is None
    cut(world, topic, 100)
    row = newest(world, target)
    assert (row["lags"], row["ends"], row["lost"]) == ([0, 6], [100, 10], [70, 0])
    world.commit(group, topic, 100, 4)
    row = newest(world, target)
    assert (row["lags"], row["flags"], row["lost"]) == ([0, 6], None, None)


def test_a_commit_beyond_the_end_of_a_topic_that_stayed_is_a_read_skew(world: World) -> None:
    topic, group = world.topic(2), fresh()
    world.produce(topic, 10, 0)
    world.produce(topic, 7, 1)
    world.commit(group, topic, 25, 3)
    (target,) = world.monitor(world.cluster(), group, topic)
    for _ in range(2):
        row = newest(world, target)
        assert (row["lags"], row["ends"], row["flags"], row["epoch"]) == ([0, 4], [10, 7], None, 0)
    # The end passes the commit, and lag is counted from there.
    world.produce(topic, 20)
    row = newest(world, target)
    assert (row["lags"], row["flags"]) == ([5, 4], None)


def test_a_commit_beyond_the_end_of_a_topic_created_again_is_a_reset_until_the_end_reaches_it(world: World) -> None:
    topic, group = world.topic(2), fresh()
    world.produce(topic, 50, 0)
    world.produce(topic, 50, 1)
    world.commit(group, topic, 50, 50)
    (target,) = world.monitor(world.cluster(), group, topic)
    row = newest(world, target)
    assert (row["lags"], row["flags"], row["epoch"]) == ([0, 0], None, 0)
    world.drop_topic(topic)
    world.topic(2, topic)
    world.produce(topic, 20, 0)
    world.produce(topic, 60, 1)
    # The broker forgets commits with the topic; a consumer that did not notice commits on from where it was.
    world.commit(group, topic, 50, 10)
    wait_until(lambda: world.tick() and world.rows(target)[0]["epoch"] == 1, 20, "the new id was seen")
    row = world.rows(target)[0]
    reset = Flag.RESET | Flag.UNCOMMITTED
    assert (row["lags"], row["ends"], row["flags"]) == ([20, 50], [20, 60], [reset | Flag.RESET_BEGINS, 0])
    assert (row["total_lag"], row["none_total"]) == (50, 20)
    row = newest(world, target)
    assert (row["lags"], row["flags"], row["epoch"]) == ([20, 50], [reset, 0], 1)
    world.produce(topic, 35, 0)
    row = newest(world, target)
    assert (row["lags"], row["flags"]) == ([5, 50], None)


def test_a_stale_commit_that_comes_after_the_new_topic_was_seen_is_a_reset_too(world: World) -> None:
    topic, group = world.topic(), fresh()
    world.produce(topic, 50)
    world.commit(group, topic, 50)
    (target,) = world.monitor(world.cluster(), group, topic)
    assert newest(world, target)["epoch"] == 0
    world.drop_topic(topic)
    world.topic(1, topic)
    world.produce(topic, 3)
    wait_until(lambda: world.tick() and world.rows(target)[0]["epoch"] == 1, 20, "the new id was seen")
    assert world.rows(target)[0]["flags"] == [Flag.UNCOMMITTED]
    world.commit(group, topic, 50)
    row = newest(world, target)
    assert (row["lags"], row["flags"]) == ([3], [Flag.RESET | Flag.RESET_BEGINS | Flag.UNCOMMITTED])


def test_deleted_commits_leave_a_partition_uncommitted(world: World) -> None:
    topic, group = world.topic(2), fresh()
    world.produce(topic, 9, 0)
    world.produce(topic, 8, 1)
    cut(world, topic, 3)
    world.commit(group, topic, 9, 6)
    (target,) = world.monitor(world.cluster(), group, topic)
    assert newest(world, target)["lags"] == [0, 2]
    raw_requests.delete_commits(world.broker.address, group, topic, [0])
    row = newest(world, target)
    # From the log start: deleted messages cannot be read.
    assert (row["lags"], row["flags"]) == ([6, 2], [Flag.UNCOMMITTED, 0])
    assert (row["total_lag"], row["none_total"]) == (2, 6)
    # Committed again it is no rewind: there was nothing to go back from.
    world.commit(group, topic, 4, 6)
    row = newest(world, target)
    assert (row["lags"], row["flags"]) == ([5, 2], None)


def test_a_deleted_group_is_uncommitted_everywhere(world: World) -> None:
    topic, group = world.topic(2), fresh()
    world.produce(topic, 9, 0)
    world.commit(group, topic, 9, 0)
    (target,) = world.monitor(world.cluster(), group, topic)
    assert newest(world, target)["lags"] == [0, 0]
    world.admin.delete_consumer_groups([group])[group].result(20)
    row = newest(world, target)
    assert (row["lags"], row["flags"], row["members"]) == ([9, 0], [Flag.UNCOMMITTED] * 2, 0)
    assert world.state(target) == "ok"


@pytest.fixture(scope="module")
def forgetful() -> Iterator[Broker]:
    """A broker that looks for expired commits all the time, and may be killed; never the one of the environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LAGSCALE_DEVSTACK_KAFKA_BOOTSTRAP", raising=False)
        server = Broker(settings={"offsets.retention.check.interval.ms": "100"})
        with server:
            yield server


def test_expired_commits_leave_a_partition_uncommitted(make_world: Any, forgetful: Broker) -> None:
    world = make_world(forgetful)
    topic, group = world.topic(2), fresh()
    world.produce(topic, 12, 0)
    world.produce(topic, 5, 1)
    world.commit(group, topic, None, 3)
    raw_requests.commit_for(forgetful.address, group, topic, {0: 10}, milliseconds=3_600_000)
    (target,) = world.monitor(world.cluster(), group, topic)
    row = newest(world, target)
    assert (row["lags"], row["flags"]) == ([2, 2], None)
    raw_requests.commit_for(forgetful.address, group, topic, {0: 10}, milliseconds=1)
    wait_until(lambda: world.tick() and world.rows(target)[0]["flags"] is not None, 30, "the commit had expired")
    row = world.rows(target)[0]
    assert (row["lags"], row["flags"]) == ([12, 2], [Flag.UNCOMMITTED, 0])
    assert (row["total_lag"], row["none_total"], row["moved_age"]) == (2, 12, None)


def test_a_log_that_lost_its_end_under_the_same_id_is_a_reset(make_world: Any, forgetful: Broker) -> None:
    world = make_world(forgetful)
    topic, group = world.topic(2), fresh()
    for partition in range(2):
        world.produce(topic, 50, partition)
    world.commit(group, topic, 45, 45)
    (target,) = world.monitor(world.cluster(), group, topic)
    assert newest(world, target)["lags"] == [5, 5]
    forgetful.kill()
    forgetful.empty(topic, 0)
    forgetful.start()
    world.produce(topic, 20, 0)

    def measured() -> bool:
        world.tick()
        return world.rows(target)[0]["lags"] == [20, 5]

    wait_until(measured, 60, "the shorter log was measured")
    row = world.rows(target)[0]
    assert (row["ends"], row["epoch"], row["total_lag"], row["none_total"]) == ([20, 50], 0, 5, 20)
    reset = Flag.RESET | Flag.UNCOMMITTED
    assert row["flags"][0] & reset == reset
    # It begins with the first sample that shows it.
    begun = [row["flags"][0] & Flag.RESET_BEGINS for row in world.rows(target) if row["flags"] and row["flags"][0]]
    assert begun[-1] == Flag.RESET_BEGINS
    assert not any(begun[:-1])
    world.produce(topic, 30, 0)
    row = newest(world, target)
    assert (row["lags"], row["ends"], row["flags"]) == ([5, 5], [50, 50], None)
