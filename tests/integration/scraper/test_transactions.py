"""Transactions: the last stable offset, what an open one holds back, and offsets without messages."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition

from devstack.server import wait_until
from lagscale.store.scraping import leases
from lagscale.store.scraping.targets import PollState, write_poll_states

pytestmark = pytest.mark.integration
World = Any  # The fixture's class lives in conftest, which is not importable by name.
READ_COMMITTED = {"isolation.level": "read_committed"}


def fresh(prefix: str = "g") -> str:
    return f"{prefix}-{uuid.uuid4().hex[:10]}"


@contextmanager
def transactional(world: World) -> Iterator[Producer]:
    producer = Producer({"bootstrap.servers": world.broker.address, "transactional.id": fresh("tx"), "linger.ms": 0})
    producer.init_transactions(20)
    yield producer
    del producer


def write(producer: Producer, topic: str, count: int) -> None:
    """A transaction of so many messages in partition 0, left open."""
    producer.begin_transaction()
    for _ in range(count):
        producer.produce(topic, b"x", partition=0)
    assert producer.flush(20) == 0


def both(world: World, group: str, topic: str) -> Callable[[], list[tuple[list[int], list[int]]]]:
    """Ends and lags of one more round, under read_committed and without."""
    cluster = world.cluster()
    (stable,) = world.monitor(cluster, group, topic, isolation="read_committed")
    (every,) = world.monitor(cluster, group, topic)

    def measured() -> list[tuple[list[int], list[int]]]:
        stored = len(world.rows(stable))
        world.tick()
        rows = [world.rows(target) for target in (stable, every)]
        assert [len(found) for found in rows] == [stored + 1] * 2
        assert [found[0]["flags"] for found in rows] == [None, None]
        return [(found[0]["ends"], found[0]["lags"]) for found in rows]

    return measured


def test_an_open_transaction_holds_the_end_back_until_it_ends(world: World) -> None:
    topic, group = world.topic(), fresh()
    world.produce(topic, 4)
    world.commit(group, topic, 1)
    measured = both(world, group, topic)
    assert measured() == [([4], [3]), ([4], [3])]
    with transactional(world) as producer:
        write(producer, topic, 3)
        # Others write after it; readers of committed messages do not get those yet.
        world.produce(topic, 10)
        assert measured() == [([4], [3]), ([17], [16])]
        producer.commit_transaction(20)
    # Three messages, ten of others, and the marker.
    wait_until(lambda: measured()[0] == ([18], [17]), 20, "the transaction's end was seen")
    assert measured() == [([18], [17]), ([18], [17])]


def test_an_aborted_transaction_leaves_its_offsets_in_the_lag_until_a_consumer_passes_them(world: World) -> None:
    topic, group = world.topic(), fresh()
    world.produce(topic, 2)
    world.commit(group, topic, 2)
    measured = both(world, group, topic)
    with transactional(world) as producer:
        write(producer, topic, 5)
        producer.abort_transaction(20)
    wait_until(lambda: measured()[0] == ([8], [6]), 20, "the abort was seen")
    # A consumer gets none of the five, and passes them with the message behind.
    world.produce(topic, 1)
    consumer = world.consumer(group, [topic], **READ_COMMITTED)
    try:
        (message,) = consumer.consume(1, 30)
        assert message.offset() == 8
        consumer.commit(asynchronous=False)
        assert measured() == [([9], [0]), ([9], [0])]
    finally:
        consumer.close()


def test_the_marker_behind_the_last_message_is_lag_until_the_commit_passes_it(world: World) -> None:
    topic, group = world.topic(), fresh()
    with transactional(world) as producer:
        write(producer, topic, 3)
        producer.commit_transaction(20)
    consumer = world.consumer(group, [topic], **READ_COMMITTED)
    try:
        read = consumer.consume(3, 30)
        assert [message.offset() for message in read] == [0, 1, 2]
        # The offset after the message, as many programs commit by hand.
        consumer.commit(message=read[-1], asynchronous=False)
        measured = both(world, group, topic)
        wait_until(lambda: measured()[0][0] == [4], 20, "the transaction's end was seen")
        assert measured() == [([4], [1]), ([4], [1])]

        def has_passed() -> bool:
            assert consumer.poll(0.1) is None
            return bool(consumer.position([TopicPartition(topic, 0)])[0].offset == 4)

        # The client's own position passes the marker when it is polled on.
        wait_until(has_passed, 20, "the consumer passed the marker")
        consumer.commit(asynchronous=False)
        assert measured() == [([4], [0]), ([4], [0])]
    finally:
        consumer.close()


def test_a_commit_between_the_last_stable_offset_and_the_end_is_no_lag_and_no_fault(world: World) -> None:
    topic, group = world.topic(), fresh()
    world.produce(topic, 4)
    with transactional(world) as producer:
        write(producer, topic, 3)
        # As a consumer leaves it that reads uncommitted messages too.
        world.commit(group, topic, 6)
        measured = both(world, group, topic)
        assert measured() == [([4], [0]), ([7], [1])]
        assert measured() == [([4], [0]), ([7], [1])]
        producer.commit_transaction(20)
    wait_until(lambda: measured()[0] == ([8], [2]), 20, "the transaction's end was seen")


def test_records_deleted_up_to_an_open_transaction_leave_no_negative_lag(world: World) -> None:
    topic, group = world.topic(), fresh()
    world.produce(topic, 4)
    world.commit(group, topic, 1)
    with transactional(world) as producer:
        write(producer, topic, 3)
        cut = TopicPartition(topic, 0, 4)
        world.admin.delete_records([cut])[cut].result(20)
        (stable,) = world.monitor(world.cluster(), group, topic, isolation="read_committed")
        world.tick()
        (row,) = world.rows(stable)
        assert (row["ends"], row["lags"], row["lost"]) == ([4], [0], [3])
        producer.abort_transaction(20)


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_an_open_transaction_is_stored_since_it_was_first_read(world: World, isolation: str) -> None:
    topic, group = world.topic(2), fresh()
    world.produce(topic, 5)
    (target,) = world.monitor(world.cluster(), group, topic, isolation=isolation)

    def read_again() -> dict[str, Any]:
        """What is stored after one more round, a minute after the one before."""
        past = "jsonb_set(unstable, '{at}', to_jsonb((unstable ->> 'at')::bigint - 60000))"
        world.ask(f"update target_state set seen_at = seen_at - interval '1 min', unstable = {past}")
        world.tick()
        ((stored,),) = world.ask("select unstable from target_state where target_id = %s", target)
        assert stored["at"] == round(world.rows(target)[0]["ts"].timestamp() * 1000)
        return dict(stored["partitions"])

    assert read_again() == {}
    with transactional(world) as producer:
        write(producer, topic, 3)
        ((stable, messages, since),) = read_again().values()
        assert (stable, messages) == (5, 3)
        world.produce(topic, 4)
        assert read_again() == {"0": [5, 7, since]}
        producer.commit_transaction(20)
        # Another one, at another last stable offset.
        write(producer, topic, 1)

        def has_moved() -> bool:
            found = read_again()
            return bool(found) and found["0"][:2] == [13, 1] and found["0"][2] > since

        wait_until(has_moved, 20, "the second transaction was read")
        producer.abort_transaction(20)
    wait_until(lambda: read_again() == {}, 20, "the end was read")


def test_a_round_that_does_not_read_stable_offsets_keeps_what_is_stored(world: World) -> None:
    topic, group = world.topic(), fresh()
    (target,) = world.monitor(world.cluster(), group, topic)
    world.tick()
    stored = world.ask("select unstable from target_state")
    assert stored[0][0]["partitions"] == {}
    state = PollState(target, "incomplete", "", 1)
    lease = leases.acquire(world.database, world.options.holder, 30)
    assert lease is not None
    write_poll_states(world.database, [], [state], lease)
    assert world.state(target) == "incomplete"
    assert world.ask("select unstable from target_state") == stored
