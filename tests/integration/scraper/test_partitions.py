"""Partitions that are added, vanish with their topic, or have no leader."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import NewPartitions

from devstack.broker import Broker
from devstack.server import wait_until
from lagscale.domain.lag.rounds import Note
from lagscale.domain.lag.samples import Flag
from services.scraper.kafka.coordinators import find_offsets_partition

pytestmark = pytest.mark.integration
World = Any  # The fixture's class lives in conftest, which is not importable by name.


def fresh(prefix: str = "g") -> str:
    return f"{prefix}-{uuid.uuid4().hex[:10]}"


def add_partitions(world: World, topic: str, total: int) -> None:
    world.admin.create_partitions([NewPartitions(topic, total)])[topic].result(20)
    wait_until(lambda: len(world.admin.list_topics(topic, 5).topics[topic].partitions) == total, 20, "they are there")


def test_partitions_that_are_added_are_first_seen_uncommitted(world: World) -> None:
    topic, group = world.topic(2), fresh()
    world.produce(topic, 6, 0)
    world.commit(group, topic, 2, 0)
    (target,) = world.monitor(world.cluster(), group, topic)
    world.tick()
    (row,) = world.rows(target)
    assert (row["lags"], row["flags"], row["parts"]) == ([4, 0], None, 2)
    add_partitions(world, topic, 4)
    world.produce(topic, 50, 3)
    wait_until(lambda: world.tick() and world.rows(target)[0]["parts"] == 4, 20, "the new partitions were measured")
    row = world.rows(target)[0]
    first_seen = Flag.FIRST_SEEN | Flag.UNCOMMITTED
    assert (row["lags"][:2], row["flags"], row["epoch"]) == ([4, 0], [0, 0, first_seen, first_seen], 0)
    world.tick()
    row = world.rows(target)[0]
    # First seen once; their messages stay out of the committed total.
    assert (row["lags"], row["flags"]) == ([4, 0, 0, 50], [0, 0, Flag.UNCOMMITTED, Flag.UNCOMMITTED])
    assert (row["total_lag"], row["none_total"], row["none_max_part"]) == (4, 50, 3)
    world.commit(group, topic, 2, 0, 0, 20)
    world.tick()
    row = world.rows(target)[0]
    assert (row["lags"], row["flags"], row["total_lag"]) == ([4, 0, 0, 30], None, 34)


def test_a_topic_created_again_with_fewer_partitions_keeps_no_lag_of_the_others(world: World) -> None:
    topic, group = world.topic(6), fresh()
    for partition in range(6):
        world.produce(topic, 10, partition)
    world.commit(group, topic, 1, 1, 1, 1, 1, 1)
    (target,) = world.monitor(world.cluster(), group, topic)
    world.tick()
    assert world.rows(target)[0]["total_lag"] == 54
    world.drop_topic(topic)
    world.topic(3, topic)
    world.commit(group, topic, 0, 0, 0)
    wait_until(lambda: world.tick() and world.rows(target)[0]["epoch"] == 1, 20, "the new id was seen")
    row = world.rows(target)[0]
    assert (row["lags"], row["flags"], row["carried_lags"]) == ([0, 0, 0], None, None)
    assert (row["parts"], row["never"], row["total_lag"]) == (3, 0, 0)
    assert world.state(target) == "ok"


def test_a_topic_that_comes_back_after_it_was_removed_is_first_seen_under_its_new_id(world: World) -> None:
    topic, group = world.topic(2), fresh()
    world.produce(topic, 5)
    world.commit(group, topic, 2, 0)
    (target,) = world.monitor(world.cluster(), group, topic, stale_after_ms=200)
    world.tick()
    world.drop_topic(topic)
    wait_until(lambda: world.tick() and world.rows(target)[0]["lags"] == [], 20, "the topic was gone")
    row = world.rows(target)[0]
    assert (row["notes"], row["parts"], row["total_lag"], row["carried_lags"]) == (Note.NO_TOPIC, 0, 0, None)
    assert world.state(target) == "no_topic"
    world.topic(1, topic)
    world.produce(topic, 3)
    wait_until(lambda: world.tick() and world.rows(target)[0]["parts"] == 1, 20, "the new topic was measured")
    row = world.rows(target)[0]
    assert row["flags"] == [Flag.FIRST_SEEN | Flag.UNCOMMITTED]
    assert (row["epoch"], row["notes"], row["absent_age"]) == (1, 0, None)
    assert world.state(target) == "ok"


class Disks:
    """A broker with a disk more than it needs; partitions of topics and those that keep commits lie on either."""

    def __init__(self, folder: Path) -> None:
        self.extra = folder / "extra"
        self.broker = Broker(
            settings={
                # As the scraper expects it, so it is known which partition has a group's commits.
                "offsets.topic.num.partitions": "50",
                # The disk is found to have failed when its checkpoints are written.
                "log.flush.offset.checkpoint.interval.ms": "200",
                "log.flush.start.offset.checkpoint.interval.ms": "200",
            },
            extra_log_dirs=[self.extra],
        )

    def lose(self) -> None:
        """The disk with its partitions is not there any more; the broker and the other disk live on."""
        self.extra.rename(self.extra.with_name("lost"))
        # Nothing can be made again where a file lies.
        self.extra.write_text("")

    def has(self, topic: str, partition: int) -> bool:
        return (self.extra / f"{topic}-{partition}").exists()

    def group(self, *, on_lost_disk: bool) -> str:
        """A new group whose commits are on that disk, or on the other."""
        names = (fresh() for _ in range(1000))
        return next(
            name for name in names if self.has("__consumer_offsets", find_offsets_partition(name, 50)) is on_lost_disk
        )


@pytest.fixture
def disks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disks]:
    """Never the broker of the environment."""
    monkeypatch.delenv("LAGSCALE_DEVSTACK_KAFKA_BOOTSTRAP", raising=False)
    made = Disks(tmp_path)
    with made.broker:
        yield made


def leaders(world: World, topic: str) -> list[bool]:
    """Which partitions have a leader."""
    leaders_by_partition = world.open().describe_topics([topic], world.soon())[topic].partitions
    return [leaders_by_partition[partition] for partition in sorted(leaders_by_partition)]


def test_a_partition_without_a_leader_is_missing_and_holds_up_no_other(make_world: Any, disks: Disks) -> None:
    world = make_world(disks.broker)
    topic = world.topic(4)
    for partition in range(4):
        world.produce(topic, 10, partition)
    # The first commit makes the topic of commits.
    world.commit(fresh(), topic, 0)
    group = disks.group(on_lost_disk=False)
    world.commit(group, topic, 1, 2, 3, 4)
    (target,) = world.monitor(world.cluster(), group, topic)
    world.tick()
    assert world.rows(target)[0]["lags"] == [9, 8, 7, 6]
    has_leader = [not disks.has(topic, partition) for partition in range(4)]
    assert True in has_leader
    assert False in has_leader
    disks.lose()
    wait_until(lambda: leaders(world, topic) == has_leader, 30, "the partitions of the lost disk had no leader")
    world.tick()
    row = world.rows(target)[0]
    lags = [9, 8, 7, 6]
    assert row["lags"] == [lag if there else None for lag, there in zip(lags, has_leader, strict=True)]
    assert row["carried_lags"] == [None if there else lag for lag, there in zip(lags, has_leader, strict=True)]
    # The newest samples still count, with their age.
    assert (row["parts"], row["total_lag"], row["notes"]) == (4, 30, 0)
    assert row["oldest_age"] > 0
    assert world.state(target) == "incomplete"


def test_a_group_without_a_coordinator_is_missing_and_holds_up_no_other(make_world: Any, disks: Disks) -> None:
    world = make_world(disks.broker)
    topic = world.topic(2)
    world.produce(topic, 10, 0)
    world.produce(topic, 10, 1)
    world.commit(fresh(), topic, 0)
    lost, safe = disks.group(on_lost_disk=True), disks.group(on_lost_disk=False)
    for group in (lost, safe):
        world.commit(group, topic, 4, 4)
    cluster = world.cluster()
    (stopped,) = world.monitor(cluster, lost, topic)
    (measured,) = world.monitor(cluster, safe, topic)
    has_leader = [not disks.has(topic, partition) for partition in range(2)]
    assert sorted(has_leader) == [False, True]
    disks.lose()
    wait_until(lambda: leaders(world, topic) == has_leader, 30, "the partitions of the lost disk had no leader")
    world.tick()
    # Nothing is known of its commits, and that is not 'uncommitted'.
    row = world.rows(stopped)[0]
    assert (row["lags"], row["never"], row["members"]) == ([None, None], 2, None)
    assert world.state(stopped) == "timeout"
    row = world.rows(measured)[0]
    assert row["lags"] == [6 if there else None for there in has_leader]
    assert (row["members"], row["flags"]) == (0, None)
    assert world.state(measured) == "incomplete"
