"""Polling of a simulated cluster: order of requests, leaderless partitions, errors, deadlines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from lagscale.domain.lag.samples import Offsets
from lagscale.domain.state_codes import StateCode
from lagscale.store.scraping.targets import ClusterEntry, TargetEntry
from services.scraper.planning.plan import ClusterPlan, GroupPlan, Slot
from services.scraper.polling.poll import ClusterPollResult, DatabaseClock, TargetPollResult, poll_slot
from services.scraper.polling.round import Committed, Ends, GroupDescription, Partition, PollProblem, TopicDescription
from tests.support.fake_opener import FakeOpener


class FakeCluster:
    """Answers from tables, and writes down what it was asked in which order."""

    def __init__(self, leaders: Mapping[str, Sequence[bool]]) -> None:
        self.leaders = leaders
        self.problem: PollProblem | None = None
        self.describes_groups = True
        self.shares: frozenset[str] = frozenset()
        self.refused: dict[str, PollProblem] = {}
        self.unread: set[Partition] = set()
        self.asked: list[str] = []
        self.partitions: set[Partition] = set()

    def describe_topics(self, names: Sequence[str], until: float) -> Mapping[str, TopicDescription | PollProblem]:
        self.asked.append("topics")
        if self.problem is not None:
            return dict.fromkeys(names, self.problem)
        return {
            name: TopicDescription(f"id-{name}", dict(enumerate(self.leaders[name])))
            if name in self.leaders
            else PollProblem(StateCode.NO_TOPIC)
            for name in names
        }

    def request_commits(
        self, groups: Mapping[str, Sequence[Partition]], until: float
    ) -> Callable[[], Mapping[str, Committed | PollProblem]]:
        self.asked.append("commits")

        def collect() -> Mapping[str, Committed | PollProblem]:
            self.asked.append("committed")
            return {group: self.refused.get(group) or dict.fromkeys(parts, 4) for group, parts in groups.items()}

        return collect

    def request_ends(
        self, partitions: Iterable[Partition], committed_only: Iterable[Partition], until: float
    ) -> Callable[[], Ends]:
        self.asked.append("ends")
        self.partitions |= set(partitions)
        read = [partition for partition in self.partitions if partition not in self.unread]
        return lambda: Ends(dict.fromkeys(read, 0), dict.fromkeys(read, 10), dict.fromkeys(committed_only, 8))

    def request_groups(
        self, names: Sequence[str], until: float
    ) -> Callable[[], Mapping[str, GroupDescription | PollProblem]]:
        return lambda: dict.fromkeys(names, GroupDescription(2, 3))

    def find_share_groups(self, names: Sequence[str], until: float) -> frozenset[str]:
        return self.shares


def target(number: int, topic: str, *, read_committed: bool = False, group: str = "g") -> TargetEntry:
    return TargetEntry(number, 1, 1, group, topic, read_committed, "", 1000, 30_000)


def plan(*targets: TargetEntry, cluster: int = 1) -> ClusterPlan:
    groups: dict[str, list[TargetEntry]] = {}
    for one in targets:
        groups.setdefault(one.consumer_group, []).append(one)
    return ClusterPlan(
        ClusterEntry(cluster, 1, ("kafka:9092",), {}, None, 1),
        tuple(GroupPlan(name, tuple(found), 1000, True) for name, found in groups.items()),
    )


def poll(
    slot: Slot,
    find: Callable[[ClusterEntry], FakeCluster | PollProblem],
    clock: Callable[[], int],
    clock_error_ms: int = 0,
) -> list[ClusterPollResult]:
    opener = FakeOpener(find)
    results = poll_slot(slot, opener, DatabaseClock(clock, clock_error_ms))
    assert opener.in_use == [], "each client is released"
    return results


def ask(cluster: FakeCluster, *targets: TargetEntry) -> ClusterPollResult:
    (answer,) = poll(Slot((plan(*targets),), 1.0), lambda _: cluster, lambda: 77)
    return answer


def offsets(answer: TargetPollResult) -> tuple[Offsets | None, ...]:
    assert answer.polled is not None
    return answer.polled.offsets


def test_commits_are_answered_before_ends_are_asked() -> None:
    cluster = FakeCluster({"orders": [True]})
    answer = ask(cluster, target(1, "orders"))
    assert cluster.asked == ["topics", "commits", "committed", "ends"]
    assert offsets(answer.targets[0]) == (Offsets(0, 10, 4, 10),)
    assert answer.targets[0].polled is not None
    assert (answer.targets[0].polled.members, answer.targets[0].polled.group_state) == (2, 3)


def test_all_topics_of_a_group_share_one_time() -> None:
    answer = ask(FakeCluster({"a": [True], "b": [True]}), target(1, "a"), target(2, "b"))
    assert [t.polled.at_ms for t in answer.targets if t.polled is not None] == [77, 77]


def test_a_partition_without_a_leader_is_never_asked_for_and_is_missing() -> None:
    cluster = FakeCluster({"orders": [True, False, True]})
    answer = ask(cluster, target(1, "orders"))
    assert cluster.partitions == {("orders", 0), ("orders", 2)}
    assert [one is None for one in offsets(answer.targets[0])] == [False, True, False]
    assert answer.targets[0].problem.code is StateCode.INCOMPLETE


def test_read_committed_takes_the_last_stable_offset_and_knows_the_high_watermark() -> None:
    answer = ask(FakeCluster({"orders": [True]}), target(1, "orders", read_committed=True), target(2, "orders"))
    assert [offsets(t)[0] for t in answer.targets] == [Offsets(0, 8, 4, 10), Offsets(0, 10, 4, 10)]


def test_an_end_that_could_not_be_read_leaves_its_partition_missing_alone() -> None:
    cluster = FakeCluster({"orders": [True, True]})
    cluster.unread = {("orders", 1)}
    answer = ask(cluster, target(1, "orders"))
    assert [one is None for one in offsets(answer.targets[0])] == [False, True]


def test_a_group_that_may_not_be_read_is_missing_and_says_why_and_others_go_on() -> None:
    cluster = FakeCluster({"orders": [True]})
    cluster.refused["dark"] = PollProblem(StateCode.AUTHORIZATION_FAILED)
    answer = ask(cluster, target(1, "orders", group="dark"), target(2, "orders", group="light"))
    assert [t.problem.code for t in answer.targets] == [StateCode.AUTHORIZATION_FAILED, StateCode.OK]
    assert [offsets(t)[0] for t in answer.targets] == [None, Offsets(0, 10, 4, 10)]
    assert answer.problem.code is StateCode.OK


def test_an_unknown_topic_is_a_round_without_partitions() -> None:
    answer = ask(FakeCluster({"orders": [True]}), target(1, "orders"), target(2, "nowhere"))
    assert offsets(answer.targets[1]) == ()
    assert answer.targets[1].problem.code is StateCode.NO_TOPIC
    assert answer.problem.code is StateCode.OK


def test_metadata_that_failed_makes_no_round_and_is_the_clusters_problem() -> None:
    cluster = FakeCluster({"orders": [True]})
    cluster.problem = PollProblem(StateCode.AUTHENTICATION_FAILED)
    answer = ask(cluster, target(1, "orders"))
    assert answer.problem.code is StateCode.AUTHENTICATION_FAILED
    assert [(t.polled, t.problem.code) for t in answer.targets] == [(None, StateCode.CLUSTER)]
    assert cluster.asked == ["topics"]


def test_a_cluster_without_a_client_costs_the_others_nothing() -> None:
    good = FakeCluster({"orders": [True]})
    slot = Slot((plan(target(1, "orders")), plan(target(2, "orders"), cluster=2)), 1.0)
    answers = poll(slot, lambda p: good if p.cluster_id == 1 else PollProblem(StateCode.SECRETS_UNREADABLE), lambda: 1)
    assert [answer.problem.code for answer in answers] == [StateCode.OK, StateCode.SECRETS_UNREADABLE]


def test_a_share_group_is_refused_by_name_and_makes_no_round() -> None:
    cluster = FakeCluster({"orders": [True]})
    cluster.shares = frozenset({"shared"})
    answer = ask(cluster, target(1, "orders", group="shared"), target(2, "orders", group="plain"))
    assert {t.target.target_id: (t.polled is None, t.problem.code) for t in answer.targets} == {
        1: (True, StateCode.SHARE_GROUP),
        2: (False, StateCode.OK),
    }


def test_a_round_has_bounds_of_the_time_at_which_its_ends_were_read() -> None:
    cluster = FakeCluster({"orders": [True]})
    moments: list[str] = []

    def clock() -> int:
        # Every request and every answer takes 10 ms.
        moments.append(cluster.asked[-1])
        return 1_000 + 10 * len(cluster.asked)

    (answer,) = poll(Slot((plan(target(1, "orders")),), 1.0), lambda _: cluster, clock, clock_error_ms=2)
    polled = answer.targets[0].polled
    assert polled is not None
    assert moments == ["topics", "committed", "ends"]
    # Its own error on both sides, and the part of a millisecond that the clock cut off at the end.
    assert (polled.at_ms, polled.ends_asked_ms, polled.ends_answered_ms) == (1_010, 20 - 2, 30 + 2 + 1)
