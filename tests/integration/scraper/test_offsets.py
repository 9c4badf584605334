"""What the scraper stores of a real broker: every kind of offset, absent and recreated topics, kinds of groups."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from devstack.server import wait_until
from lagscale.domain.lag.rounds import Note
from lagscale.domain.lag.samples import Flag

pytestmark = pytest.mark.integration
World = Any  # The fixture's class lives in conftest, which is not importable by name.


def fresh(prefix: str = "g") -> str:
    return f"{prefix}-{uuid.uuid4().hex[:10]}"


def test_committed_and_uncommitted_partitions(world: World) -> None:
    topic, group = world.topic(3), fresh()
    world.produce(topic, 10, 0)
    world.produce(topic, 4, 1)
    world.commit(group, topic, 3, 4)
    (target,) = world.monitor(world.cluster(), group, topic)
    world.tick()
    (row,) = world.rows(target)
    assert (row["lags"], row["ends"]) == ([7, 0, 0], [10, 4, 0])
    assert row["flags"] == [0, 0, Flag.UNCOMMITTED]
    assert (row["parts"], row["total_lag"], row["max_part"], row["lagging"], row["members"]) == (3, 7, 0, 1, 0)
    assert world.state(target) == "ok"


def test_a_commit_below_the_log_start_has_lost_messages(world: World) -> None:
    topic, group = world.topic(), fresh()
    world.produce(topic, 1000)
    world.commit(group, topic, 100)
    world.admin.delete_records([TopicPartition(topic, 0, 900)])[TopicPartition(topic, 0, 900)].result(20)
    (target,) = world.monitor(world.cluster(), group, topic)
    world.tick()
    (row,) = world.rows(target)
    assert (row["lags"], row["lost"], row["flags"]) == ([100], [800], [Flag.LOST])


def test_two_groups_on_one_topic_do_not_disturb_each_other(world: World) -> None:
    topic, first, second, cluster = world.topic(), fresh(), fresh(), world.cluster()
    world.produce(topic, 8)
    world.commit(first, topic, 8)
    world.commit(second, topic, 1)
    (calm,) = world.monitor(cluster, first, topic)
    (behind,) = world.monitor(cluster, second, topic)
    world.tick()
    assert [world.rows(target)[0]["lags"] for target in (calm, behind)] == [[0], [7]]


def test_all_topics_of_a_group_have_one_time(world: World) -> None:
    topics, group = (world.topic(), world.topic()), fresh()
    targets = world.monitor(world.cluster(), group, *topics)
    world.tick()
    assert len({world.rows(target)[0]["ts"] for target in targets}) == 1


def test_an_unknown_topic_is_reported_at_once_and_measured_when_it_appears(world: World) -> None:
    name, group = fresh("later"), fresh()
    (target,) = world.monitor(world.cluster(), group, name)
    world.tick()
    (row,) = world.rows(target)
    assert (row["lags"], row["notes"], row["absent_age"]) == ([], Note.NO_TOPIC, 0)
    assert world.state(target) == "no_topic"
    world.topic(2, name)
    world.produce(name, 15)
    wait_until(lambda: world.tick() and len(world.rows(target)[0]["lags"]) == 2, 20, "the topic was measured")
    row = world.rows(target)[0]
    assert (row["lags"], row["absent_age"]) == ([15, 0], None)
    assert row["flags"] == [Flag.FIRST_SEEN | Flag.UNCOMMITTED] * 2
    assert world.state(target) == "ok"


def test_a_topic_created_again_resets_the_commit_beyond_its_end(world: World) -> None:
    topic, group, cluster = world.topic(), fresh(), world.cluster()
    other, other_group = world.topic(), fresh()
    world.produce(topic, 50)
    world.commit(group, topic, 50)
    world.produce(other, 5)
    world.commit(other_group, other, 2)
    (target,) = world.monitor(cluster, group, topic)
    (untouched,) = world.monitor(cluster, other_group, other)
    world.tick()
    world.drop_topic(topic)
    world.topic(1, topic)
    world.produce(topic, 3)
    wait_until(lambda: world.tick() and world.rows(target)[0]["epoch"] == 1, 20, "the new id was seen")
    row = world.rows(target)[0]
    # The broker forgets commits with the topic, or keeps them: either way nothing is read as caught up.
    assert (row["lags"], row["ends"]) == ([3], [3])
    assert row["flags"][0] & Flag.UNCOMMITTED
    assert world.rows(untouched)[0]["lags"] == [3]
    assert world.ask("select epoch from lag_target where id = %s", target) == [(1,)]


def test_a_deleted_topic_is_missing_until_it_was_absent_for_its_stale_time(world: World) -> None:
    topic, group = world.topic(2), fresh()
    world.produce(topic, 5)
    world.commit(group, topic, 2, 0)
    (target,) = world.monitor(world.cluster(), group, topic, stale_after_ms=700)
    world.tick()
    world.drop_topic(topic)
    world.tick()
    row = world.rows(target)[0]
    assert (row["lags"], row["carried_lags"], row["notes"], row["total_lag"]) == ([None, None], [3, 0], 0, 3)
    wait_until(lambda: world.tick() and world.rows(target)[0]["lags"] == [], 20, "the topic was gone")
    row = world.rows(target)[0]
    assert row["notes"] == Note.NO_TOPIC
    assert row["absent_age"] >= 700


def test_read_committed_stops_at_an_open_transaction(world: World) -> None:
    from confluent_kafka import Producer

    topic, group, cluster = world.topic(), fresh(), world.cluster()
    world.produce(topic, 4)
    world.commit(group, topic, 1)
    producer = Producer({"bootstrap.servers": world.broker.address, "transactional.id": fresh("tx")})
    producer.init_transactions(20)
    producer.begin_transaction()
    for _ in range(3):
        producer.produce(topic, b"x", partition=0)
    producer.flush(20)
    (stable,) = world.monitor(cluster, group, topic, isolation="read_committed")
    (every,) = world.monitor(cluster, group, topic)
    world.tick()
    producer.abort_transaction(20)
    assert [world.rows(target)[0]["ends"] for target in (stable, every)] == [[4], [7]]


def test_partitions_outside_the_limitation_are_left_out(world: World) -> None:
    topic, group = world.topic(4), fresh()
    for partition in range(4):
        world.produce(topic, 2, partition)
    (target,) = world.monitor(world.cluster(), group, topic, limitation="1,3")
    world.tick()
    row = world.rows(target)[0]
    assert row["lags"] == [None, 2, None, 2]
    assert [flag & Flag.EXCLUDED for flag in row["flags"]] == [Flag.EXCLUDED, 0, Flag.EXCLUDED, 0]
    assert row["parts"] == 2
    world.tick()
    assert world.rows(target)[0]["carried_lags"] is None


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_of_classic_and_new_groups_are_counted(world: World, protocol: str) -> None:
    topic, group = world.topic(2), fresh()
    world.produce(topic, 6)
    (target,) = world.monitor(world.cluster(), group, topic)
    consumer = world.consumer(group, [topic], **{"group.protocol": protocol})
    try:
        read: list[Any] = []

        def has_read() -> bool:
            read.extend(consumer.consume(6, 0.2))
            return len(read) >= 6

        wait_until(has_read, 30, "six messages were read")
        consumer.commit(asynchronous=False)
        world.tick()
        row = world.rows(target)[0]
        assert (row["lags"][0], row["members"], row["members_age"], row["group_state"]) == (0, 1, 0, 3)
    finally:
        consumer.close()
    world.tick()
    assert world.rows(target)[0]["members"] == 0


def test_nothing_is_created_on_the_broker_by_looking(world: World) -> None:
    name, group = fresh("never"), fresh()
    world.monitor(world.cluster(), group, name)
    world.tick()
    assert name not in AdminClient({"bootstrap.servers": world.broker.address}).list_topics(timeout=5).topics
