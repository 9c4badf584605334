"""Planning of ticks: who is due, in which slot, and how seldom a dead cluster is asked."""

from __future__ import annotations

import itertools
from collections import Counter

from lagscale.store.scraping.targets import ClusterEntry, PollInventory, TargetEntry
from services.scraper.planning.plan import Slot
from services.scraper.planning.planner import PollPlanner
from tests.support.engine_options import TENANT_PARTITIONS

TICK = 1000
BEGIN = 1_700_000_000_000


def polling(groups: int, *, sampling_ms: int = TICK, clusters: int = 1, version: int = 1) -> PollInventory:
    entries = {n: ClusterEntry(n, 1, (f"kafka-{n}:9092",), {}, None, 1) for n in range(clusters)}
    targets = tuple(
        TargetEntry(n, 1, n % clusters, f"group-{n}", f"topic-{n % 7}", False, "", sampling_ms, 30_000)
        for n in range(groups)
    )
    return PollInventory(version, entries, targets)


def names(slots: list[Slot]) -> list[str]:
    return [group.name for slot in slots for plan in slot.clusters for group in plan.groups]


def test_every_group_is_polled_at_every_tick_when_its_interval_is_the_tick() -> None:
    planner = PollPlanner(TICK, 2, TENANT_PARTITIONS)
    for tick in range(3):
        assert sorted(names(planner.plan(polling(5), (), BEGIN + tick * TICK))) == [f"group-{n}" for n in range(5)]


def test_longer_intervals_are_spread_over_the_ticks_and_leave_nobody_out() -> None:
    planner = PollPlanner(TICK, 2, TENANT_PARTITIONS)
    ticks = [names(planner.plan(polling(400, sampling_ms=10 * TICK), (), BEGIN + n * TICK)) for n in range(20)]
    assert Counter(name for tick in ticks for name in tick) == {f"group-{n}": 2 for n in range(400)}
    assert all(15 < len(tick) < 75 for tick in ticks)


def test_a_group_whose_tick_was_missed_is_due_at_the_next_one() -> None:
    planner = PollPlanner(TICK, 2, TENANT_PARTITIONS)
    polled_groups: set[str] = set(names(planner.plan(polling(50, sampling_ms=4 * TICK), (), BEGIN)))
    polled_groups |= set(names(planner.plan(polling(50, sampling_ms=4 * TICK), (), BEGIN + 4 * TICK)))
    assert len(polled_groups) == 50


def test_jitter_of_ticks_neither_doubles_nor_drops_a_turn() -> None:
    planner = PollPlanner(TICK, 2, TENANT_PARTITIONS)
    times = [BEGIN + n * TICK + (-40 if n % 2 else 40) for n in range(20)]
    polled = Counter(n for at in times for n in names(planner.plan(polling(30, sampling_ms=5 * TICK), (), at)))
    assert set(polled.values()) == {4}


def test_an_interval_that_is_no_multiple_of_the_tick_is_polled_oftener_not_seldomer() -> None:
    (slot,) = PollPlanner(4000, 2, TENANT_PARTITIONS).plan(polling(1, sampling_ms=4000), (), BEGIN)
    assert slot.clusters[0].groups[0].interval_ms == 4000
    planner = PollPlanner(4000, 2, TENANT_PARTITIONS)
    plans = [planner.plan(polling(1, sampling_ms=10_000), (), BEGIN + n * 4000) for n in range(10)]
    assert {g.interval_ms for slots in plans for s in slots for c in s.clusters for g in c.groups} == {8000}


def test_a_removed_target_is_polled_no_more() -> None:
    planner = PollPlanner(TICK, 2, TENANT_PARTITIONS)
    assert len(names(planner.plan(polling(3), (), BEGIN))) == 3
    assert len(names(planner.plan(polling(2, version=2), (), BEGIN + TICK))) == 2


def test_many_groups_are_divided_evenly_and_each_is_in_one_slot() -> None:
    slots = PollPlanner(TICK, 4, TENANT_PARTITIONS).plan(polling(1003, clusters=3), (), BEGIN)
    assert len(slots) == 4
    found = names(slots)
    assert len(found) == len(set(found)) == 1003
    sizes = [sum(len(plan.groups) for plan in slot.clusters) for slot in slots]
    assert max(sizes) - min(sizes) <= 4


def test_failed_clusters_have_a_slot_of_their_own_with_a_short_deadline() -> None:
    slots = PollPlanner(5000, 2, TENANT_PARTITIONS).plan(polling(30, clusters=10, sampling_ms=5000), {3, 4}, BEGIN)
    assert {plan.cluster.cluster_id for plan in slots[-1].clusters} == {3, 4}
    assert slots[-1].seconds <= 1.0
    assert not {3, 4} & {plan.cluster.cluster_id for slot in slots[:-1] for plan in slot.clusters}
    assert all(slot.seconds <= 2.5 for slot in slots)


def test_a_cluster_that_stays_dead_is_asked_less_and_less_often_but_never_given_up() -> None:
    planner = PollPlanner(TICK, 2, TENANT_PARTITIONS)
    asked = [n for n in range(300) if names(planner.plan(polling(1), {0}, BEGIN + n * TICK))]
    assert asked[:3] == [0, 1, 2]
    pauses = [later - sooner for sooner, later in itertools.pairwise(asked)]
    assert pauses[:5] == sorted(pauses[:5])
    # Each pause is shorter by up to a quarter, by chance.
    assert all(11 <= pause <= 15 for pause in pauses[8:])
    assert len(set(pauses[8:])) > 1


def test_a_cluster_that_answers_again_is_polled_at_every_tick() -> None:
    planner = PollPlanner(TICK, 2, TENANT_PARTITIONS)
    for n in range(40):
        planner.plan(polling(1), {0}, BEGIN + n * TICK)
    assert all(names(planner.plan(polling(1), (), BEGIN + n * TICK)) for n in range(40, 43))


def test_few_groups_are_described_at_every_poll_and_many_take_turns_within_a_minute() -> None:
    few = PollPlanner(TICK, 2, TENANT_PARTITIONS).plan(polling(20), (), BEGIN)
    assert all(group.describe for slot in few for plan in slot.clusters for group in plan.groups)
    planner = PollPlanner(5000, 2, TENANT_PARTITIONS)
    described: Counter[str] = Counter()
    for n in range(12):
        slots = planner.plan(polling(1000, sampling_ms=5000), (), BEGIN + n * 5000)
        described.update(g.name for slot in slots for plan in slot.clusters for g in plan.groups if g.describe)
    assert len(described) == 1000
    assert set(described.values()) == {2}
