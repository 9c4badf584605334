"""The decision log: changes and repeats, in a bounded queue whose dropped rows are counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.contract import Answer, Judgment, Reason, Verdict
from lagscale.errors import DataUnavailable, StoreUnavailable
from lagscale.store.registrations.answers import Decision
from services.scaler import metrics
from services.scaler.answers import decision_log as room
from services.scaler.answers.decision_log import DecisionLog
from services.scaler.triggers.directory import ResolvedMonitor

POLICY = Policy.parse({})
ANSWER = Answer(900.0, True)
SUSTAINED = Judgment(Verdict.SUSTAINED, Reason.LASTED, 900.0, True, 1_000, 2_000)


@dataclass
class Store:
    """Stores rows; can be unavailable."""

    rows: list[Decision] = field(default_factory=list)
    away: bool = False

    async def append(self, decisions: list[Decision]) -> None:
        if self.away:
            raise StoreUnavailable
        self.rows += decisions

    async def mark_asked(self, monitor_ids: list[int]) -> None:
        if self.away:
            raise StoreUnavailable


@dataclass
class World:
    """A decision log with its clock and its store."""

    store: Store = field(default_factory=Store)
    now_ms: int | None = 10_000

    def __post_init__(self) -> None:
        self.decision_log = DecisionLog(self.store, "replica-1", lambda: self.now_ms)

    async def written(self) -> list[Decision]:
        await self.decision_log.flush()
        rows, self.store.rows = self.store.rows, []
        return rows


def build_monitor(monitor: int | None = 7, key: str = "k1", **facts: Any) -> ResolvedMonitor:
    return ResolvedMonitor(1, "acme", "orders", POLICY, monitor, None, {}, key, **{"version": 3, **facts})


@pytest.fixture
def world() -> World:
    return World()


def lost() -> float:
    return float(metrics.DECISIONS_DROPPED._value.get())


async def test_a_row_holds_all_that_explains_it(world: World) -> None:
    world.decision_log.record_answer(
        build_monitor(overrides={"lagThreshold": "7"}), Answer(900.0, True, 500), SUSTAINED
    )
    assert await world.written() == [
        Decision(
            10_000, 1, 7, "replica-1", 1_000, "sustained", 900.0, True, True, "lasted", "OK", 3, {"lagThreshold": "7"}
        )
    ]


async def test_an_error_is_written_with_its_reason_code_and_snapshot(world: World) -> None:
    error = DataUnavailable("The newest sample is too old.", reason="stale")
    error.facts["snapshot_ms"] = 1_000
    world.decision_log.record_error(build_monitor(), error)
    world.decision_log.record_error(build_monitor(), StoreUnavailable())
    first, second = await world.written()
    assert (first.verdict, first.reason, first.code, first.snapshot_ms) == ("unknown", "stale", "UNAVAILABLE", 1_000)
    assert (first.value, first.active, first.held) == (None, None, False)
    assert (second.reason, second.code, second.snapshot_ms) == ("StoreUnavailable", "UNAVAILABLE", None)


async def test_answers_from_memory_are_recorded_as_such(world: World) -> None:
    world.decision_log.record_answer(build_monitor(), Answer(900.0, True, 500), None)
    (row,) = await world.written()
    assert (row.verdict, row.reason, row.held, row.snapshot_ms) == ("unknown", "store_silent", True, None)


async def test_the_same_answer_is_written_again_after_five_minutes(world: World) -> None:
    for now_ms in (10_000, 100_000, 309_999, 310_000):
        world.now_ms = now_ms
        world.decision_log.record_answer(build_monitor(), ANSWER, SUSTAINED)
    assert [row.decided_ms for row in await world.written()] == [10_000, 310_000]


async def test_another_policy_is_a_change_even_when_it_is_the_one_of_before(world: World) -> None:
    for now_ms, key, value in ((10_000, "k1", 900.0), (11_000, "k2", 100.0), (12_000, "k1", 900.0)):
        world.now_ms = now_ms
        world.decision_log.record_answer(build_monitor(key=key), Answer(value, True), SUSTAINED)
    assert [row.value for row in await world.written()] == [900.0, 100.0, 900.0]


async def test_triggers_with_overrides_have_their_own_rows(world: World) -> None:
    for _ in range(3):
        world.decision_log.record_answer(build_monitor(), ANSWER, SUSTAINED)
        world.decision_log.record_answer(
            build_monitor(key="k2", overrides={"lagThreshold": "7"}), Answer(100.0, True), SUSTAINED
        )
    rows = await world.written()
    assert [row.value for row in rows] == [900.0, 100.0]
    # Rows are identified by monitor, time and replica.
    assert [row.decided_ms for row in rows] == [10_000, 10_001]


async def test_rows_are_queued_while_the_store_is_unavailable(world: World) -> None:
    world.store.away = True
    world.decision_log.record_answer(build_monitor(), ANSWER, SUSTAINED)
    before = lost()
    assert await world.written() == []
    world.store.away = False
    assert [row.decided_ms for row in await world.written()] == [10_000]
    assert lost() == before


async def test_rows_beyond_the_queue_limit_are_counted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_MAX_QUEUED", 2)
    before = lost()
    for number in range(5):
        world.decision_log.record_answer(build_monitor(number), ANSWER, SUSTAINED)
    assert [row.monitor_id for row in await world.written()] == [3, 4]
    assert lost() == before + 3


async def test_rows_without_a_time_are_counted_and_written_once_the_clock_is_known(world: World) -> None:
    world.now_ms = None
    before = lost()
    for _ in range(3):
        world.decision_log.record_error(build_monitor(), StoreUnavailable())
    assert lost() == before + 1
    assert await world.written() == []
    world.now_ms = 10_000
    world.decision_log.record_error(build_monitor(), StoreUnavailable())
    assert [row.decided_ms for row in await world.written()] == [10_000]


async def test_a_monitor_without_a_registration_has_no_rows(world: World) -> None:
    world.decision_log.record_error(build_monitor(None), StoreUnavailable())
    assert await world.written() == []
