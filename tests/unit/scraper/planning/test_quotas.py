"""Who fits into a quota of partitions: the older one first, and what is not known yet takes nothing."""

from __future__ import annotations

from lagscale.store.scraping.targets import ClusterEntry, PollInventory, TargetEntry
from services.scraper.deadlines import LARGE_PARTITIONS
from services.scraper.kafka.status import PollCode
from services.scraper.planning.plan import GroupPlan, Slot
from services.scraper.planning.planner import PollPlanner
from services.scraper.planning.quotas import apply_quotas, filter_by_quota
from services.scraper.polling.round import TopicDescription
from tests.support.engine_options import TENANT_PARTITIONS

BEGIN = 1_700_000_000_000
TICK = 1000


def target(number: int, partitions: int | None = None, *, tenant: int = 1, group: str = "") -> TargetEntry:
    name = group or f"group-{number}"
    return TargetEntry(number, tenant, tenant, name, f"topic-{number}", False, "", TICK, 30_000, partitions)


def fits(*targets: TargetEntry, quota: int) -> list[int]:
    return [one.target_id for one in apply_quotas(targets, {1: quota}) if one.fits]


def test_the_older_targets_go_first_and_a_small_one_after_a_great_one_fits() -> None:
    assert fits(target(3, 40), target(1, 50), target(2, 60), target(4, 11), quota=100) == [1, 3]


def test_what_fills_the_quota_exactly_fits() -> None:
    assert fits(target(1, 60), target(2, 40), quota=100) == [1, 2]


def test_what_nobody_has_counted_fits_until_it_was() -> None:
    (first, second) = apply_quotas([target(1), target(2, 90)], {1: 100})
    assert (first.left, second.left, first.fits, second.fits) == (100, 100, True, True)
    assert apply_quotas([target(1, 70), target(2)], {1: 100})[1].left == 30


def test_tenants_do_not_share_a_quota() -> None:
    found = apply_quotas([target(1, 90), target(2, 90, tenant=2)], {1: 100, 2: 100})
    assert [one.fits for one in found] == [True, True]


def described(*sizes: int) -> dict[str, TopicDescription]:
    return {
        f"topic-{n}": TopicDescription(f"id-{n}", dict.fromkeys(range(size), True)) for n, size in enumerate(sizes, 1)
    }


def test_a_topic_that_grew_beyond_what_is_left_is_refused_with_both_numbers() -> None:
    group = GroupPlan("g", tuple(apply_quotas([target(1, 5), target(2, 5)], {1: 12})), TICK, True)
    measured, rejected = filter_by_quota([group], described(5, 8))
    assert [[one.target_id for one in plan.targets] for plan in measured] == [[1]]
    ((refused, problem),) = rejected
    assert (refused.target_id, problem.code) == (2, PollCode.OVER_QUOTA)
    for words in ("8 partitions", "7 are left", "12 measured partitions", "`partitions`", "platform administrator"):
        assert words in problem.message


def test_a_topic_found_to_be_large_waits_for_its_own_turn_unless_it_has_it() -> None:
    group = GroupPlan("g", (target(1),), TICK, True)
    large = described(LARGE_PARTITIONS + 1)
    assert filter_by_quota([group], large)[1][0][1].code is PollCode.LARGE
    assert filter_by_quota([GroupPlan("g", (target(1),), TICK, True, large=True)], large)[1] == []
    assert filter_by_quota([group], described(LARGE_PARTITIONS))[1] == []


def polling(*targets: TargetEntry, quotas: dict[int, int] | None = None, version: int = 1) -> PollInventory:
    clusters = {n: ClusterEntry(n, n, (f"kafka-{n}:9092",), {}, None, 1) for n in {one.cluster_id for one in targets}}
    return PollInventory(version, clusters, targets, quotas or {})


def names(slots: list[Slot]) -> list[str]:
    return [group.name for slot in slots for plan in slot.clusters for group in plan.groups]


def test_a_target_over_quota_is_asked_for_its_size_once_a_minute_and_at_once_when_there_is_room() -> None:
    planner = PollPlanner(TICK, 1, TENANT_PARTITIONS)
    few = polling(target(1, 60), target(2, 60), quotas={1: 100})
    ticks = [names(planner.plan(few, (), BEGIN + n * TICK)) for n in range(120)]
    assert sum("group-1" in tick for tick in ticks) == 120
    assert sum("group-2" in tick for tick in ticks) == 2
    many = polling(target(1, 60), target(2, 60), quotas={1: 200}, version=2)
    assert sorted(names(planner.plan(many, (), BEGIN + 120 * TICK))) == ["group-1", "group-2"]


def test_large_groups_are_in_no_slot_once_their_cluster_is_proven() -> None:
    planner = PollPlanner(TICK, 2, TENANT_PARTITIONS)
    world = polling(target(1, LARGE_PARTITIONS + 1), target(2, 5))
    assert names(planner.plan(world, (), BEGIN)) == ["group-2"]
    ((group,),) = [plan.groups for plan in planner.large]
    assert (group.name, group.large) == ("group-1", True)
    # Of a cluster that does not answer it is polled like any other, which shows whether it does again.
    assert sorted(names(planner.plan(world, {1}, BEGIN + TICK))) == ["group-1", "group-2"]
    assert planner.large == ()


def test_a_tenant_has_only_its_share_of_a_tick_and_nobody_of_it_is_forgotten() -> None:
    planner = PollPlanner(TICK, 1, tenant_partitions=1000)
    crowd = [target(n, 100) for n in range(30)]
    world = polling(*crowd, target(99, 5, tenant=2))
    ticks = [names(planner.plan(world, (), BEGIN + n * TICK)) for n in range(12)]
    assert all("group-99" in tick for tick in ticks)
    assert all(len(tick) == 11 for tick in ticks)
    for begin in range(0, 12, 3):
        assert len({name for tick in ticks[begin : begin + 3] for name in tick}) == 31, "all within three ticks"


def test_clusters_of_one_slot_are_asked_by_turns_of_their_tenants() -> None:
    clusters = {n: ClusterEntry(n, 1 if n < 50 else n, (f"k-{n}:9092",), {}, None, 1) for n in range(53)}
    targets = tuple(TargetEntry(n, clusters[n].tenant_id, n, "g", "t", False, "", TICK, 30_000) for n in range(53))
    (slot,) = PollPlanner(TICK, 1, TENANT_PARTITIONS).plan(PollInventory(1, clusters, targets), (), BEGIN)
    assert {plan.cluster.tenant_id for plan in slot.clusters[:4]} == {1, 50, 51, 52}
