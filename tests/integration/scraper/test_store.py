"""The scraper's side of the store: rows there and back, doubles, the future, and the lease."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from devstack.server import wait_until
from lagscale.domain.lag.rounds import Note, SampleRow, TargetRound, build_row
from lagscale.domain.lag.samples import Flag, Sample
from lagscale.errors import LeaseLost, StoreTimeout, StoreUnavailable
from lagscale.store.connection import ScraperDatabase
from lagscale.store.samples.write import PostgresSamples, TopicIncarnation
from lagscale.store.scraping import leases, targets, topic_links
from lagscale.store.scraping.leases import Lease

pytestmark = pytest.mark.integration
World = Any


@pytest.fixture
def store(world: World) -> PostgresSamples:
    return PostgresSamples(world.database)


@pytest.fixture
def target(world: World) -> int:
    (made,) = world.monitor(world.cluster(), "g", "orders")
    return int(made)


@pytest.fixture
def lease(world: World) -> Lease:
    found = leases.acquire(world.database, "me", 30)
    assert found is not None
    return found


def rows(at_ms: int) -> list[SampleRow]:
    """Three rounds that use every column: a loss, a missing partition, one outside, a topic's new id."""
    first = TargetRound(
        at_ms,
        0,
        (Sample(5, 10), Sample(7, 9, Flag.UNCOMMITTED), Sample(2, 30, Flag.LOST, 12), None),
        frozenset({3}),
        members=2,
        members_age_ms=0,
        group_state=3,
        ends_asked_ms=-1,
        ends_answered_ms=40_000,
    )
    second = TargetRound(at_ms + 1000, 0, (None, Sample(7, 9, Flag.UNCOMMITTED), None, None), frozenset({3}))
    third = TargetRound(at_ms + 2000, 1, (Sample(1, 1, Flag.FIRST_SEEN), None), notes=Note(0), absent_age_ms=None)
    made: list[SampleRow] = []
    for one in (first, second, third):
        made.append(build_row(made[-1] if made else None, one))
    return made


def test_a_row_is_read_as_it_was_written(world: World, store: PostgresSamples, target: int, lease: Lease) -> None:
    begin = int(world.database.now_ms()[0]) - 60_000
    for row in rows(begin):
        assert store.append([(world.tenant, target, row)], lease).stored == 1
        read = store.newest([target])[target]
        assert read.round == row.round
        assert read.markers == row.markers
        assert [c and (c.sample.lag, c.sample.end, c.sample.flags, c.age_ms) for c in read.carried] == [
            c and (c.sample.lag, c.sample.end, c.sample.flags, c.age_ms) for c in row.carried
        ]


def test_doubles_are_stored_once(world: World, store: PostgresSamples, target: int, lease: Lease) -> None:
    (row, *_) = rows(int(world.database.now_ms()[0]) - 60_000)
    assert store.append([(world.tenant, target, row)], lease).stored == 1
    written = store.append([(world.tenant, target, row)], lease)
    assert (written.stored, written.duplicates, written.refused) == (0, 1, 0)


def test_rows_of_the_future_are_refused_and_counted(
    world: World, store: PostgresSamples, target: int, lease: Lease
) -> None:
    now = int(world.database.now_ms()[0])
    (future, *_) = rows(now + 60_000)
    (past, *_) = rows(now - 60_000)
    written = store.append([(world.tenant, target, future), (world.tenant, target, past)], lease)
    assert (written.stored, written.duplicates, written.refused) == (1, 0, 1)


def test_a_target_without_rows_or_without_existence(store: PostgresSamples, target: int) -> None:
    baseline = store.read_baselines([target, 10_000_000])
    assert list(baseline) == [target]
    assert (baseline[target].row, baseline[target].topic_id, baseline[target].incarnation) == (None, None, 0)


def test_what_is_read_as_a_whole_is_planned_each_time(world: World, store: PostgresSamples, target: int) -> None:
    # A plan of a registry of one monitor compares each row with each when there are thousands.
    for _ in range(10):
        targets.read_inventory(world.database)
        topic_links.read_scopes(world.database)
        store.read_baselines([target])
    with world.database.transaction() as connection:
        statements = [text for (text,) in connection.execute("select statement from pg_prepared_statements")]
    assert [text for text in statements if "monitor" in text] == []
    assert any("every_lag_sample" in text for text in statements), "what is read by a key is planned once"


def test_topic_ids_are_remembered(world: World, store: PostgresSamples, target: int, lease: Lease) -> None:
    (row, *_) = rows(int(world.database.now_ms()[0]) - 60_000)
    store.append([(world.tenant, target, row)], lease, [TopicIncarnation(target, "abc", 4)])
    baseline = store.read_baselines([target])[target]
    assert (baseline.topic_id, baseline.incarnation) == ("abc", 4)


def is_expired(world: World) -> bool:
    return bool(world.ask("select expires_at <= clock_timestamp() from scraper_lease")[0][0])


def is_taken(database: ScraperDatabase) -> bool:
    try:
        return leases.acquire(database, "taker", 30) is not None
    except StoreTimeout:
        return False


def test_one_lease_at_a_time_and_a_new_epoch_for_each_holder(world: World) -> None:
    database = world.database
    first = leases.acquire(database, "a", 30)
    assert first is not None
    assert leases.acquire(database, "b", 30) is None
    assert leases.acquire(database, "a", 30) == first
    leases.release(database, "a")
    second = leases.acquire(database, "b", 30)
    assert second is not None
    assert second.epoch > first.epoch
    assert leases.acquire(database, "a", 30) is None


def test_an_expired_lease_is_free_and_its_old_holder_gets_a_new_epoch(world: World) -> None:
    first = leases.acquire(world.database, "a", 0)
    second = leases.acquire(world.database, "a", 30)
    assert first is not None
    assert second is not None
    assert second.epoch == first.epoch + 1


def test_who_lost_the_lease_writes_nothing(world: World, store: PostgresSamples, target: int) -> None:
    old = leases.acquire(world.database, "old", 0)
    assert leases.acquire(world.database, "new", 30) is not None
    assert old is not None
    (row, *_) = rows(int(world.database.now_ms()[0]) - 60_000)
    with pytest.raises(LeaseLost):
        store.append([(world.tenant, target, row)], old, [TopicIncarnation(target, "abc", 4)])
    assert store.read_baselines([target])[target].row is None
    assert store.read_baselines([target])[target].topic_id is None


def test_nobody_takes_the_lease_while_a_batch_is_being_written(world: World) -> None:
    held_lease = leases.acquire(world.database, "writer", 0.2)
    assert held_lease is not None
    other = ScraperDatabase(world.url)
    with world.database.transaction() as connection:
        leases.lock_lease(connection, held_lease)
        wait_until(lambda: is_expired(world), 5, "the lease expired")
        with pytest.raises(StoreTimeout):
            leases.acquire(other, "taker", 30)
    assert leases.acquire(other, "taker", 30) is not None
    other.close()


def test_a_writer_that_stops_in_its_transaction_is_ended_by_the_server(world: World) -> None:
    held_lease = leases.acquire(world.database, "stopped", 0.1)
    assert held_lease is not None
    other = ScraperDatabase(world.url)
    stopped = pytest.raises(StoreUnavailable)
    with stopped, world.database.transaction() as connection:
        leases.lock_lease(connection, held_lease)
        wait_until(lambda: is_taken(other), 20, "another took the lease")
        connection.execute("select 1")
    other.close()


def test_the_scraper_cannot_read_samples_past_the_view(world: World) -> None:
    with psycopg.connect(world.url) as connection:
        connection.execute("set role lagscale_scraper")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("select * from lag_sample")


def test_retention_drops_what_is_old_and_says_so(
    world: World, store: PostgresSamples, target: int, lease: Lease
) -> None:
    now = int(world.database.now_ms()[0])
    (old, *_) = rows(now - 40 * 3_600_000)
    (new, *_) = rows(now - 60_000)
    store.append([(world.tenant, target, old), (world.tenant, target, new)], lease)
    assert len(store.drop_older_than(24)) == 1
    assert len(world.rows(target)) == 1
    assert store.drop_older_than(24) == []


def test_a_removal_may_take_longer_than_a_poll_waits(world: World) -> None:
    impatient = ScraperDatabase(world.url, response_timeout_seconds=0.2)
    with pytest.raises(StoreUnavailable), impatient.transaction() as connection:
        connection.execute("select pg_sleep(1)")
    patient = ScraperDatabase(world.url, response_timeout_seconds=60)
    with patient.transaction() as connection:
        connection.execute("select pg_sleep(1)")
    patient.close()


def test_decisions_and_unasked_monitors_are_removed_in_time(world: World, store: PostgresSamples, target: int) -> None:
    with psycopg.connect(world.url, autocommit=True) as connection:
        for age in ("15 days", "13 days"):
            connection.execute(
                "insert into decision (told_at, tenant_id, monitor_id, replica, verdict, reason, code)"
                " values (now() - %s::interval, %s, 1, 'r', 'calm', 'no_breach', 'OK')",
                [age, world.tenant],
            )
        connection.execute(
            "update monitor set auto_registered = true, created_at = now() - interval '8 days' where tenant_id = %s",
            [world.tenant],
        )
        assert store.remove_unused() == {"decisions": 1, "unasked monitors": 1}
        assert store.remove_unused() == {}
