"""Whose dead clusters are asked: few at a tick, tenants by turns, each less and less often, all soon after an outage."""

from __future__ import annotations

import itertools
from collections import Counter

from services.scraper.deadlines import MAX_PROBES
from services.scraper.planning.planner import ClusterBackoff
from services.scraper.planning.quotas import interleave


def asked(backoff: ClusterBackoff, waiting: dict[int, int], ticks: range) -> list[list[int]]:
    return [backoff.select_clusters(waiting, set(waiting), tick) for tick in ticks]


def test_one_of_each_owner_then_the_next_of_each() -> None:
    assert interleave(["a1", "a2", "a3", "b1", "c1", "c2"], lambda one: one[0]) == ["a1", "b1", "c1", "a2", "c2", "a3"]


def test_no_tick_asks_more_than_the_bound_of_clusters_that_never_answer() -> None:
    ticks = asked(ClusterBackoff(1000), dict.fromkeys(range(400), 1), range(100))
    assert max(len(tick) for tick in ticks) == MAX_PROBES
    assert {cluster for tick in ticks for cluster in tick} == set(range(400)), "each has its turn"


def test_a_tenant_with_one_cluster_does_not_wait_for_one_with_hundreds() -> None:
    backoff = ClusterBackoff(5000)
    crowd = dict.fromkeys(range(400), 1)
    asked(backoff, crowd, range(50))
    (now,) = asked(backoff, {**crowd, 900: 2}, range(50, 51))
    assert 900 in now
    # It is dead too, and asked again as soon as its own pauses say.
    later = asked(backoff, {**crowd, 900: 2}, range(51, 100))
    pauses = [tick for tick, clusters in enumerate(later) if 900 in clusters]
    assert pauses[:3] == [0, 1, 2]
    assert all(after - before <= 3 for before, after in itertools.pairwise(pauses))


def test_many_tenants_with_one_each_have_their_turns_before_anyones_second() -> None:
    waiting = {cluster: cluster for cluster in range(40)} | dict.fromkeys(range(100, 400), 99)
    ticks = asked(ClusterBackoff(1000), waiting, range(3))
    assert set(range(40)) <= {cluster for tick in ticks for cluster in tick}
    assert max(Counter(waiting[cluster] for tick in ticks for cluster in tick).values()) <= 3 * MAX_PROBES


def test_after_an_outage_of_all_each_tick_asks_twice_as_many() -> None:
    backoff = ClusterBackoff(5000)
    waiting = dict.fromkeys(range(400), 1)
    sizes = []
    for tick in range(10):
        select_clusters = backoff.select_clusters(waiting, set(waiting), tick)
        sizes.append(len(select_clusters))
        # All that are asked answer.
        waiting = {cluster: 1 for cluster in waiting if cluster not in select_clusters}
    assert sizes[:5] == [16, 32, 64, 128, 160]


def test_what_answered_or_was_removed_is_forgotten() -> None:
    backoff = ClusterBackoff(1000)
    for tick in range(200):
        backoff.select_clusters({tick: tick}, {tick}, tick)
    assert len(backoff._failures) == 1
    assert len(backoff._served) <= 20
