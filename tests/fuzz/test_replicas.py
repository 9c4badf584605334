"""Replicas of the scaler under random faults: never 0 or inactive without a measured calm."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, ClassVar, TypeVar
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.contract import Answer, Judgment, choose_answer
from lagscale.errors import LagscaleError, StoreUnavailable, Unknown
from services.scaler.answers import answer as answers
from services.scaler.answers.answer import AnswerSource, MonitorAnswer
from services.scaler.answers.last_known import LastKnownAnswers
from tests.fuzz.simulated_replicas import SNAPSHOT_TTL_MS, Replica, World
from tests.support.memory_samples import MemorySamples

#: A machine of 40 steps costs as much as many histories.
EXAMPLES = int(os.environ.get("LAGSCALE_FUZZ_EXAMPLES", "5000")) // 125
STEPS = 40
SETTINGS = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
)
T = TypeVar("T")
POLICY = {"lagThreshold": "10", "sustainSeconds": "20", "samplingInterval": "10", "allowIdleConsumers": "true"}
HOLDS, WORKS, SCOPES, DOWNS = ("300", "60", "0"), ("0", "30"), ("partition", "total"), ("0", "60")
BEFORE = (0, 12, 12)
#: Of five seconds each; samples are stale after six of them.
STEP_COUNTS = (2, 1, 4, 8, 12)
PRODUCED, CONSUMED, MEMBERS = (5, 1, 0), (0, 1, 50), (None, 0, 1, 3)
STATES = ("away", "hangs", "up")
#: Seconds by which a host's wall clock is wrong.
SKEWS = (-86_400, -60, 0, 60, 86_400)
which = st.integers(0, 1)
steps = st.sampled_from(STEP_COUNTS)


class Replicas(RuleBasedStateMachine):
    """Two replicas on one store; after every step both are polled as KEDA polls."""

    #: Answers by kind, over all runs.
    counts: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.new_event_loop()
        self._folder = tempfile.TemporaryDirectory()
        self.world = World(Policy.parse(POLICY))
        self.replicas: list[Replica] = []

    @initialize(
        hold_seconds=st.sampled_from(HOLDS),
        work=st.sampled_from(WORKS),
        scope=st.sampled_from(SCOPES),
        down=st.sampled_from(DOWNS),
        before=st.sampled_from(BEFORE),
    )
    def begin(self, hold_seconds: str, work: str, scope: str, down: str, before: int) -> None:
        keys = {
            "holdSeconds": hold_seconds,
            "workSeconds": work,
            "persistenceScope": scope,
            "scaleDownStabilization": down,
        }
        self.world = World(Policy.parse({**POLICY, **keys}))
        self.replicas = [Replica(self.world, Path(self._folder.name) / str(number)) for number in range(2)]
        self.time_passes(before)

    @rule(steps=steps)
    def time_passes(self, steps: int) -> None:
        for _ in range(steps):
            self.world.step()

    @rule(partition=which, produced=st.sampled_from(PRODUCED), consumed=st.sampled_from(CONSUMED), steps=steps)
    def the_load_changes(self, partition: int, produced: int, consumed: int, steps: int) -> None:
        self.world.partitions[partition].produced = produced
        self.world.partitions[partition].consumed = consumed
        self.time_passes(steps)

    @rule(partition=which, members=st.sampled_from((0, 3)))
    def a_backlog_lasts(self, partition: int, members: int) -> None:
        self.world.members = members
        self.the_load_changes(partition, 5, 0, 12)

    @rule(partition=which, steps=steps)
    def a_few_messages_come_and_nobody_reads(self, partition: int, steps: int) -> None:
        self.world.members = 0
        self.world.partitions[partition].end += 3
        self.the_load_changes(partition, 0, 0, steps)

    @rule(members=st.sampled_from(MEMBERS))
    def members_come_and_go(self, members: int | None) -> None:
        self.world.members = members

    @rule(partition=which, readable=st.booleans(), steps=steps)
    def a_partition_is_lost_or_found(self, partition: int, readable: bool, steps: int) -> None:
        self.world.partitions[partition].readable = readable
        self.time_passes(steps)

    @rule(scraping=st.booleans(), steps=steps)
    def the_scraper_stops_or_starts(self, scraping: bool, steps: int) -> None:
        self.world.scraping = scraping
        self.time_passes(steps)

    @rule(state=st.sampled_from(STATES), steps=steps)
    def the_store_comes_and_goes(self, state: str, steps: int) -> None:
        self.world.store.turn(away=state == "away", hangs=state == "hangs")
        self.time_passes(steps)

    @rule()
    def all_is_well_again(self) -> None:
        self.world.store.turn(away=False, hangs=False)
        self.world.scraping = True
        for partition in self.world.partitions:
            partition.readable = True
        self.time_passes(6)

    @rule(replica=which, seconds=st.sampled_from(SKEWS))
    def a_host_clock_is_set(self, replica: int, seconds: int) -> None:
        self.replicas[replica].skew_ms = seconds * 1000

    @rule()
    def a_scraper_with_a_wrong_clock_writes(self) -> None:
        assert self.world.poll_from_the_future()

    @rule(replica=which)
    def a_replica_writes_its_local_cache(self, replica: int) -> None:
        self.replicas[replica].write_local_cache()

    @rule(replica=which, steps=steps)
    def a_replica_is_away_and_comes_back(self, replica: int, steps: int) -> None:
        self.time_passes(steps)
        self._run(self.replicas[replica].restart())

    @invariant()
    def no_answer_is_0_or_inactive_without_measured_calm(self) -> None:
        for replica in self.replicas:
            value = self._run(replica.get_answer(begins_poll=True))
            activity = self._run(replica.get_answer(begins_poll=False))
            for answer in (value, activity):
                self._check(answer)
            assert _answer_of(value) == _answer_of(activity), "value and activity of one poll contradict each other"

    def teardown(self) -> None:
        for replica in self.replicas:
            self._run(replica.close())
        self._loop.close()
        self._folder.cleanup()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)

    def _check(self, answer: MonitorAnswer | LagscaleError) -> None:
        if isinstance(answer, LagscaleError):
            self.counts[type(answer).__name__] += 1
            assert isinstance(answer, Unknown | StoreUnavailable), repr(answer)
            return
        given, world = answer.answer, self.world
        self.counts[
            f"{answer.source}, {'more' if given.value else '0'}, {'active' if given.active else 'inactive'}"
        ] += 1
        assert given.active or given.value == 0
        if answer.source is AnswerSource.MEASURED:
            assert given.value > 0 or world.was_calm(world.now_ms), "0 without measured calm"
            assert given.active or world.nobody_waits(world.now_ms), "inactive while messages wait"
            return
        assert given.active, "inactive was not measured"
        if given.last_known_ms is not None:
            assert given.value > 0 or world.was_calm(given.last_known_ms), "a last-known 0 was never measured"
        if answer.source is AnswerSource.LAST_KNOWN:
            assert world.now_ms - (given.last_known_ms or 0) <= world.policy.hold_ms + SNAPSHOT_TTL_MS


def _answer_of(answer: MonitorAnswer | LagscaleError) -> Answer | str:
    return "an error" if isinstance(answer, LagscaleError) else answer.answer


@pytest.mark.fuzz
@pytest.mark.timeout(300 + EXAMPLES)
def test_never_0_or_inactive_without_measured_calm() -> None:
    run_state_machine_as_test(Replicas, settings=SETTINGS)


@pytest.mark.fuzz
@pytest.mark.timeout(300)
def test_numbered_walks_reach_every_kind_of_answer() -> None:
    Replicas.counts.clear()
    for seed in range(40):
        _walk(Random(seed))
    expected = {
        "measured, more, active",
        "measured, 0, active",
        "measured, 0, inactive",
        "last_known, more, active",
        "last_known, 0, active",
        "last_known_locally, more, active",
        "last_known_locally, 0, active",
        "activation, more, active",
        "HistoryTooShort",
        "DataUnavailable",
        "StoreUnavailable",
        "StoreTimeout",
    }
    assert {what: Replicas.counts[what] for what in expected if Replicas.counts[what] < 5} == {}


def _walk(random: Random) -> None:
    """A machine driven by random numbers alone: evenly, and the same in every run."""
    machine, some = Replicas(), random.choice

    def which_one() -> int:
        return some((0, 1))

    def for_some_time() -> int:
        return some(STEP_COUNTS)

    moves = (
        lambda: machine.time_passes(for_some_time()),
        lambda: machine.the_load_changes(which_one(), some(PRODUCED), some(CONSUMED), for_some_time()),
        lambda: machine.a_backlog_lasts(which_one(), some((0, 3))),
        lambda: machine.a_few_messages_come_and_nobody_reads(which_one(), for_some_time()),
        lambda: machine.members_come_and_go(some(MEMBERS)),
        lambda: machine.a_partition_is_lost_or_found(which_one(), some((False, True)), for_some_time()),
        lambda: machine.the_scraper_stops_or_starts(some((False, True)), for_some_time()),
        lambda: machine.the_store_comes_and_goes(some(STATES), for_some_time()),
        machine.all_is_well_again,
        lambda: machine.a_host_clock_is_set(which_one(), some(SKEWS)),
        machine.a_scraper_with_a_wrong_clock_writes,
        lambda: machine.a_replica_writes_its_local_cache(which_one()),
        lambda: machine.a_replica_is_away_and_comes_back(which_one(), for_some_time()),
    )
    try:
        machine.begin(some(HOLDS), some(WORKS), some(SCOPES), some(DOWNS), some(BEFORE))
        for _ in range(STEPS):
            some(moves)()
            machine.no_answer_is_0_or_inactive_without_measured_calm()
    finally:
        machine.teardown()


def _unknown_is_0() -> AbstractContextManager[object]:
    def zero(judgment: Judgment, policy: Policy, last_known: Answer | None = None) -> Answer:
        return choose_answer(judgment, policy, last_known) or Answer(0.0, False)

    return mock.patch.object(answers, "choose_answer", zero)


def _inactive_is_last_known() -> AbstractContextManager[object]:
    return mock.patch.object(LastKnownAnswers, "find_answer", return_value=Answer(0.0, False, 1))


def _samples_never_stale() -> AbstractContextManager[object]:
    rounds = MemorySamples.judge

    async def judge(self: MemorySamples, requests: list[Any]) -> list[Judgment]:
        return await rounds(
            self, [replace(request, policy=replace(request.policy, stale_after_ms=10**9)) for request in requests]
        )

    return mock.patch.object(MemorySamples, "judge", judge)


@pytest.mark.fuzz
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("break_it", "found"),
    [
        (_unknown_is_0, "inactive was not measured|0 without measured calm"),
        (_inactive_is_last_known, "inactive was not measured"),
        (_samples_never_stale, "0 without measured calm|inactive while messages wait"),
    ],
)
def test_a_scaler_that_guesses_is_found(break_it: Callable[[], AbstractContextManager[object]], found: str) -> None:
    quick = settings(SETTINGS, max_examples=300, phases=(Phase.generate,), report_multiple_bugs=False)
    with break_it(), pytest.raises(AssertionError, match=found):
        run_state_machine_as_test(Replicas, settings=quick)
