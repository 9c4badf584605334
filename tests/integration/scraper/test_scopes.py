"""Topic discovery on a real broker and a real database: topics come and go, are first seen, and are never guessed."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from devstack.server import wait_until
from lagscale.domain.lag.rounds import Note
from lagscale.domain.lag.samples import Flag
from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.state_codes import StateCode
from lagscale.domain.verdict.contract import Judgment, Reason, Verdict, VerdictRequest
from lagscale.errors import StoreUnavailable
from lagscale.store.connection import ScraperDatabase, open_pool
from lagscale.store.registrations.load import ROLE, PostgresRegistrations, Registration
from lagscale.store.scraping import leases
from lagscale.store.verdicts.judge import PostgresVerdicts
from services.scraper.engine.leader import Leader
from services.scraper.kafka.clients import Clients
from services.scraper.kafka.cluster import KafkaCluster
from services.scraper.polling.round import Committed, GroupDescription, Partition, PollProblem
from services.scraper.topics.discovery import DiscoveryLimits, TopicDiscovery
from tests.support.fake_opener import FakeOpener

pytestmark = pytest.mark.integration
World = Any
POLICY = parse_policy({"lagThreshold": "100", "sustainSeconds": "60", "workSeconds": "0"})


class Recorded:
    """A cluster's client that records its requests, and fails on demand. Clients are replaced as in the service."""

    def __init__(self, address: str) -> None:
        self.clients = Clients(8)
        self.address = address
        self.asked: list[tuple[str, ...]] = []
        self.problem: PollProblem | None = None

    def list_topics(self, until: float) -> frozenset[str] | PollProblem:
        self.asked.append(("listing",))
        return self.problem or self._client.list_topics(until)

    def request_commits(
        self, groups: Mapping[str, Sequence[Partition]], until: float
    ) -> Callable[[], Mapping[str, Committed | PollProblem]]:
        self.asked.append(("commits", *groups))
        assert not any(groups.values()), "no topic is asked for by name"
        return self._client.request_commits(groups, until)

    def request_groups(
        self, names: Sequence[str], until: float
    ) -> Callable[[], Mapping[str, GroupDescription | PollProblem]]:
        self.asked.append(("groups", *names))
        return self._client.request_groups(names, until)

    @property
    def _client(self) -> KafkaCluster:
        return self.clients.get(1, 1, lambda: {"bootstrap.servers": self.address})


class Scopes:
    """A world with topic discovery by the test's own calls, and what the scalers read of it."""

    def __init__(self, world: World, pool: Any) -> None:
        self.world = world
        self.client = Recorded(world.broker.address)
        self.registrations = PostgresRegistrations(pool)
        self.verdicts = PostgresVerdicts(pool)
        self.limit = 20
        self.database = ScraperDatabase(world.url)
        self.discovery = self.restarted()
        self.prefix = f"p{uuid.uuid4().hex[:8]}"
        self.group = f"g-{uuid.uuid4().hex[:8]}"
        self.cluster = world.cluster()

    def restarted(self) -> TopicDiscovery:
        """A discovery without memory."""
        clock = itertools.count(0, 100)

        self.discovery = TopicDiscovery(
            self.database,
            FakeOpener(lambda _: self.client),
            DiscoveryLimits(5.0, self.limit),
            lambda: leases.acquire(self.world.database, self.world.options.holder, 30),
            on_pass=lambda _: None,
            # Every pass comes long after the one before, so that no test waits for one.
            clock=lambda: float(next(clock)),
        )
        return self.discovery

    def register(self, pattern: str | None = None, *exclude: str, stale_after_ms: int = 30_000) -> int:
        made = self.world.ask(
            "insert into monitor (tenant_id, name, cluster_id, consumer_group, topic_pattern, exclude_topics, policy, "
            "sampling_ms, stale_after_ms, content_hash) values (%s, %s, %s, %s, %s, %s, '{}', 2000, %s, '') returning id",
            *(self.world.tenant, f"m-{uuid.uuid4().hex[:8]}", self.cluster, self.group, pattern, list(exclude)),
            stale_after_ms,
        )
        return int(made[0][0])

    def by_prefix(self, *exclude: str, stale_after_ms: int = 30_000) -> int:
        return self.register(f"{self.prefix}\\..*", *exclude, stale_after_ms=stale_after_ms)

    def topic(self, name: str, partitions: int = 1) -> str:
        return str(self.world.topic(partitions, f"{self.prefix}.{name}"))

    def links(self, monitor: int) -> dict[str, int]:
        return dict(
            self.world.ask(
                "select substring(t.topic from %s), t.id from monitor_target x join lag_target t on t.id = x.target_id "
                "where x.monitor_id = %s",
                len(self.prefix) + 2,
                monitor,
            )
        )

    def code(self, monitor: int) -> str:
        return str(self.world.ask("select code from monitor_scope where monitor_id = %s", monitor)[0][0])

    def found(self, monitor: int, *names: str) -> dict[str, int]:
        """Run passes until exactly these topics are linked."""

        def looked_up() -> bool:
            self.discovery.run_once()
            return set(self.links(monitor)) == set(names)

        # A new group has no coordinator at first.
        wait_until(looked_up, 30, f"{names} were not linked")
        return self.links(monitor)

    def measured(self, target: int) -> dict[str, Any]:
        """Tick until the target has a row with samples; the newest row."""

        def ticked() -> bool:
            self.world.tick()
            rows = self.world.rows(target)
            return bool(rows) and any(lag is not None for lag in rows[0]["lags"])

        wait_until(ticked, 30, "the topic was not measured")
        newest: dict[str, Any] = self.world.rows(target)[0]
        return newest

    async def registration(self, monitor: int) -> Registration:
        (found,) = [one for one in (await self.registrations.load()).monitors if one.monitor_id == monitor]
        return found

    async def judged(self, monitor: int) -> Judgment:
        targets = (await self.registration(monitor)).target_ids
        return (await self.verdicts.judge([VerdictRequest(self.world.tenant, targets, POLICY)]))[0]


@pytest.fixture
async def scopes(world: World) -> AsyncIterator[Scopes]:
    pool = open_pool(world.url, ROLE, 2, application="test-scopes")
    await pool.open(wait=True)
    made = Scopes(world, pool)
    yield made
    made.database.close()
    await pool.close()


async def test_topics_of_a_pattern_come_and_the_scalers_know(scopes: Scopes) -> None:
    monitor = scopes.by_prefix(f"{scopes.prefix}.no", ".*\\.retry")
    scopes.topic("a")
    for name in ("no", "b.retry"):
        scopes.topic(name)
    first = scopes.found(monitor, "a")
    version = await scopes.registrations.version()
    assert (await scopes.registration(monitor)).target_ids == (first["a"],)
    scopes.discovery.run_once()
    assert await scopes.registrations.version() == version, "nothing new is no change"
    scopes.topic("b")
    second = scopes.found(monitor, "a", "b")
    assert await scopes.registrations.version() > version
    found = await scopes.registration(monitor)
    assert found.topics == (f"{scopes.prefix}.a", f"{scopes.prefix}.b")
    assert found.target_ids == (second["a"], second["b"])
    assert scopes.code(monitor) == "ok"
    assert {call[0] for call in scopes.client.asked} == {"listing"}


async def test_a_topic_that_appears_under_a_pattern_is_first_seen(scopes: Scopes) -> None:
    """History 37: its start is known and it is calm at once, though 500 messages wait."""
    monitor = scopes.by_prefix()
    scopes.topic("a")
    scopes.measured(scopes.found(monitor, "a")["a"])
    scopes.discovery.run_once()
    topic = scopes.topic("b")
    scopes.world.produce(topic, 500)
    scopes.world.commit(scopes.group, topic, 0)
    target = scopes.found(monitor, "a", "b")["b"]
    assert (await scopes.judged(monitor)).verdict is Verdict.CALM, "a link alone makes nothing unknown"
    row = scopes.measured(target)
    assert row["lags"] == [500]
    assert row["flags"] == [Flag.FIRST_SEEN]
    judged = await scopes.judged(monitor)
    assert (judged.verdict, judged.reason, judged.partitions) == (Verdict.CALM, Reason.NOT_YET, 2)


@pytest.mark.parametrize("remembers", ["nothing", "an old answer"])
async def test_a_topic_that_appears_after_a_gap_has_an_unknown_start(scopes: Scopes, remembers: str) -> None:
    monitor = scopes.by_prefix()
    scopes.topic("a")
    scopes.measured(scopes.found(monitor, "a")["a"])
    scopes.restarted()
    old = "null" if remembers == "nothing" else "clock_timestamp() - interval '50 seconds'"
    scopes.world.ask(f"update monitor_scope set resolved_at = {old}")
    topic = scopes.topic("b")
    scopes.world.produce(topic, 500)
    scopes.world.commit(scopes.group, topic, 0)
    wait_until(lambda: topic in scopes.world.admin.list_topics(timeout=5).topics, 20, "the topic was not there")
    target = scopes.found(monitor, "a", "b")["b"]
    assert scopes.world.rows(target) == []
    row = scopes.measured(target)
    assert row["lags"] == [500]
    assert row["flags"] is None
    judged = await scopes.judged(monitor)
    assert (judged.verdict, judged.reason) == (Verdict.UNKNOWN, Reason.START_UNKNOWN)


async def test_a_topic_goes_when_it_was_absent_for_long_enough_and_its_history_stays(scopes: Scopes) -> None:
    monitor = scopes.by_prefix(stale_after_ms=1500)
    scopes.topic("a")
    target = scopes.found(monitor, "a")["a"]
    scopes.measured(target)
    scopes.world.drop_topic(f"{scopes.prefix}.a")
    wait_until(lambda: _absent(scopes, monitor), 20, "the topic's absence was noted")
    assert set(scopes.links(monitor)) == {"a"}
    scopes.found(monitor)
    assert scopes.code(monitor) == StateCode.NO_MATCH
    assert any(row["lags"] for row in scopes.world.rows(target))
    judged = await scopes.judged(monitor)
    assert (judged.verdict, judged.reason) == (Verdict.UNKNOWN, Reason.NOTHING_TO_MEASURE)
    # Back again, the topic is the same target, first seen under a new id.
    scopes.discovery.run_once()
    scopes.topic("a")
    assert scopes.found(monitor, "a")["a"] == target
    row = scopes.measured(target)
    assert (row["epoch"], row["flags"][0] & Flag.FIRST_SEEN) == (1, Flag.FIRST_SEEN)


def _absent(scopes: Scopes, monitor: int) -> bool:
    scopes.discovery.run_once()
    return bool(
        scopes.world.ask("select 1 from monitor_target where monitor_id = %s and absent_at is not null", monitor)
    )


async def test_all_topics_of_a_group_are_those_with_commits_and_no_other_is_asked(scopes: Scopes) -> None:
    """History 22: a topic without commits of the group does not count; a new commit brings its topic in."""
    monitor = scopes.register()
    first, second, _ = (scopes.topic(name) for name in ("a", "b", "c"))
    # Another topic, on which another group has commits.
    scopes.world.commit("another-group", second, 0)
    scopes.world.commit(scopes.group, first, 0)
    linked = scopes.found(monitor, "a")
    scopes.measured(linked["a"])
    # What is polled are targets, and the only one is the topic with commits.
    assert scopes.world.ask("select topic from lag_target") == [(first,)]
    assert set(scopes.client.asked) == {("commits", scopes.group)}
    scopes.discovery.run_once()
    scopes.world.produce(second, 7)
    scopes.world.commit(scopes.group, second, 0)
    target = scopes.found(monitor, "a", "b")["b"]
    # The previous answer did not name it, but the topic existed.
    assert [row["notes"] for row in scopes.world.rows(target)] == [Note.NO_COMMITS]
    assert (await scopes.judged(monitor)).verdict is Verdict.CALM
    row = scopes.measured(target)
    assert (row["lags"], row["flags"]) == ([7], None)


async def test_a_group_without_commits_has_nothing_to_measure(scopes: Scopes) -> None:
    monitor = scopes.register()
    scopes.topic("a")

    def looked_up() -> bool:
        scopes.discovery.run_once()
        return scopes.code(monitor) == StateCode.NO_MATCH

    wait_until(looked_up, 30, "the group was not looked up")
    assert set(scopes.client.asked) == {("commits", scopes.group)}
    assert scopes.links(monitor) == {}
    judged = await scopes.judged(monitor)
    assert (judged.verdict, judged.reason) == (Verdict.UNKNOWN, Reason.NOTHING_TO_MEASURE)


async def test_too_many_topics_are_reported_and_the_linked_ones_stay(scopes: Scopes) -> None:
    monitor = scopes.by_prefix()
    scopes.topic("a")
    scopes.found(monitor, "a")
    scopes.limit = 2
    scopes.restarted()
    for name in ("b", "c"):
        scopes.topic(name)

    def limit_reported() -> bool:
        scopes.discovery.run_once()
        return scopes.code(monitor) == StateCode.TOO_MANY_TOPICS

    wait_until(limit_reported, 20, "the limit was told")
    found = await scopes.registration(monitor)
    assert "at most 2" in found.partial_reason
    # A cluster that does not answer makes the part no whole.
    scopes.client.problem = PollProblem(StateCode.TIMEOUT)
    scopes.discovery.run_once()
    assert (await scopes.registration(monitor)).partial_reason != ""
    scopes.client.problem = None
    version = await scopes.registrations.version()
    scopes.world.ask(
        "update monitor set exclude_topics = %s, version = version + 1 where id = %s", [f"{scopes.prefix}.c"], monitor
    )
    scopes.found(monitor, "a", "b")
    assert (await scopes.registration(monitor)).partial_reason == ""
    assert await scopes.registrations.version() > version


async def test_a_cluster_that_does_not_answer_changes_no_link(scopes: Scopes) -> None:
    monitor = scopes.by_prefix(stale_after_ms=1500)
    scopes.topic("a")
    scopes.found(monitor, "a")
    scopes.client.problem = PollProblem(StateCode.UNREACHABLE)
    for _ in range(3):
        scopes.discovery.run_once()
    assert scopes.code(monitor) == StateCode.UNREACHABLE
    assert set(scopes.links(monitor)) == {"a"}
    assert not scopes.world.ask("select 1 from monitor_target where absent_at is not null")


async def test_a_monitor_that_was_changed_or_deleted_meanwhile_gets_no_link(scopes: Scopes) -> None:
    monitor = scopes.by_prefix()
    topic = scopes.topic("a")

    class Changing(Recorded):
        def list_topics(self, until: float) -> frozenset[str] | PollProblem:
            scopes.world.ask("update monitor set version = version + 1 where id = %s", monitor)
            return frozenset({topic})

    scopes.client = Changing(scopes.world.broker.address)
    scopes.discovery.run_once()
    assert scopes.links(monitor) == {}
    assert scopes.world.ask("select * from monitor_scope") == []


async def test_a_scraper_that_does_not_lead_discovers_nothing(scopes: Scopes) -> None:
    monitor = scopes.by_prefix()
    scopes.topic("a")
    scopes.world.ask(
        "insert into scraper_lease values ('scraper', 'another', 5, clock_timestamp() + interval '1 hour')"
    )
    scopes.discovery.run_once()
    assert scopes.client.asked == []
    assert scopes.links(monitor) == {}


async def test_a_pattern_and_a_list_share_the_target_of_one_topic(scopes: Scopes) -> None:
    monitor = scopes.by_prefix()
    topic = scopes.topic("a")
    (listed,) = scopes.world.monitor(scopes.cluster, scopes.group, topic)
    scopes.measured(listed)
    before = len(scopes.world.rows(listed))
    assert scopes.found(monitor, "a")["a"] == listed
    assert len(scopes.world.rows(listed)) == before, "its rounds know more than any listing"


def test_an_unavailable_store_ends_no_thread(world: World) -> None:
    heard: list[Mapping[str, int]] = []
    away = TopicDiscovery(
        ScraperDatabase("postgresql://127.0.0.1:1/none"),
        FakeOpener(lambda _: PollProblem(StateCode.UNREACHABLE)),
        DiscoveryLimits(0.01, 5),
        lambda: leases.acquire(world.database, world.options.holder, 30),
        on_pass=heard.append,
    )
    with pytest.raises(StoreUnavailable):
        away.run_once()
    assert heard == []


async def test_topic_discovery_runs_beside_the_ticks_of_the_leader(scopes: Scopes) -> None:
    monitor = scopes.by_prefix()
    scopes.topic("a")
    ticks = Leader(replace(scopes.world.options, topics_seconds=0.1))
    try:
        assert ticks.keep_lease()
        wait_until(lambda: set(scopes.links(monitor)) == {"a"}, 20, "the topic was linked")
        slots, _ = ticks.plan()
        assert [group.name for slot in slots for plan in slot.clusters for group in plan.groups] == [scopes.group]
    finally:
        ticks.stop()
