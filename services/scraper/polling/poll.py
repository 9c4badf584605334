"""Polls the clusters of one slot against one shared deadline: metadata, commits, then ends, in slices of groups.

Called in the worker by the source; the clusters' clients come through a seam, so tests need no broker.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from lagscale.domain.lag.samples import Offsets
from lagscale.store.scraping.targets import TargetEntry
from services.scraper.kafka.status import Code, Problem
from services.scraper.planning.fitting import fitting
from services.scraper.planning.planner import ClusterPlan, GroupPlan, Slot
from services.scraper.polling.round import Committed, Ends, GroupSeen, Partition, Polled, TopicSeen

#: Groups whose commits are asked for together; their ends follow when all have answered.
_SLICE = 500
#: Ends answered later than this after the commits began to come make no round; seconds.
_SPREAD_SECONDS = 2.0
#: Clusters that one task asks at once.
THREADS = 64


class Cluster(Protocol):
    """Requests to one cluster; times are `time.monotonic()` seconds."""

    def topics(self, names: Sequence[str], until: float) -> Mapping[str, TopicSeen | Problem]:
        """Ids and partitions of topics."""
        ...

    def commits(
        self, groups: Mapping[str, Sequence[Partition]], until: float
    ) -> Callable[[], Mapping[str, Committed | Problem]]:
        """Committed offsets, collected by calling the result."""
        ...

    def ends(
        self, partitions: Iterable[Partition], committed_only: Iterable[Partition], until: float
    ) -> Callable[[], Ends]:
        """Log starts and ends, collected by calling the result."""
        ...

    def groups(self, names: Sequence[str], until: float) -> Callable[[], Mapping[str, GroupSeen | Problem]]:
        """States and members, collected by calling the result."""
        ...

    def share_groups(self, names: Sequence[str], until: float) -> frozenset[str]:
        """Which of the groups are share groups."""
        ...


@dataclass(frozen=True, slots=True)
class TargetAnswer:
    """What became of one target: a round or none, its state, and how many partitions its topic has, where that is told."""

    target: TargetEntry
    polled: Polled | None
    problem: Problem
    partitions: int | None = None


@dataclass(frozen=True, slots=True)
class ClusterAnswer:
    """What became of one cluster: its state, and its targets."""

    cluster_id: int
    tenant_id: int
    problem: Problem
    targets: tuple[TargetAnswer, ...]


Open = Callable[[ClusterPlan], Cluster | Problem | None]
Close = Callable[[Cluster], None]
Clock = Callable[[], int]


@dataclass(frozen=True, slots=True)
class Watch:
    """The database's clock and its greatest error: how long something took that must not be told too short or long."""

    clock: Clock
    error_ms: int

    def at_least_ms(self, since_ms: int) -> int:
        """Milliseconds since an instant of that clock, or fewer; below 0 where it cannot be told."""
        return self.clock() - self.error_ms - since_ms

    def at_most_ms(self, since_ms: int) -> int:
        """Milliseconds since an instant of that clock, or more."""
        # The clock cuts off parts of a millisecond.
        return self.clock() + 1 + self.error_ms - since_ms


def poll(
    slot: Slot,
    open_cluster: Open,
    clock: Clock,
    clock_error_ms: int = 0,
    *,
    close_cluster: Close = lambda client: None,
    threads: int = THREADS,
) -> list[ClusterAnswer]:
    """Poll every cluster of the slot at once; it ends within the slot's seconds and a little.

    A cluster whose turn did not come in that time, or for which no client was free, has no answer: nothing is known of
    it, and it must not look like one that does not answer.

    Args:
        slot: what to poll.
        open_cluster: a cluster's client, or why there is none; None while none is free.
        clock: the database's clock, whole milliseconds.
        clock_error_ms: how wrong that clock can be at most.
        close_cluster: hears when a cluster's client is used no more.
        threads: clusters asked at once.
    """
    until = time.monotonic() + slot.seconds
    watch = Watch(clock, clock_error_ms)

    def one(plan: ClusterPlan) -> ClusterAnswer | None:
        if time.monotonic() >= until:
            return None
        client = open_cluster(plan)
        if client is None or isinstance(client, Problem):
            return None if client is None else _failed(plan, client)
        try:
            return _poll_cluster(plan, client, watch, until)
        finally:
            close_cluster(client)

    if len(slot.clusters) == 1:
        answers = [one(slot.clusters[0])]
    else:
        with ThreadPoolExecutor(min(len(slot.clusters), threads) or 1, "poll") as pool:
            answers = list(pool.map(one, slot.clusters))
    return [answer for answer in answers if answer is not None]


def _poll_cluster(plan: ClusterPlan, client: Cluster, watch: Watch, until: float) -> ClusterAnswer:
    topics = client.topics(sorted({t.topic for group in plan.groups for t in group.targets}), until)
    common = _common_problem(topics)
    if common is not None:
        return _failed(plan, common)
    shares = client.share_groups([group.name for group in plan.groups], until)
    refused = Problem(Code.SHARE_GROUP)
    answers = [TargetAnswer(t, None, refused) for group in plan.groups if group.name in shares for t in group.targets]
    measured, unfit = fitting([group for group in plan.groups if group.name not in shares], topics)
    answers += [TargetAnswer(target, None, problem, _size(target, topics)) for target, problem in unfit]
    pending: Callable[[], list[TargetAnswer]] | None = None
    for begin in range(0, len(measured), _SLICE):
        groups = measured[begin : begin + _SLICE]
        # The ends of the slice before travel while this one's commits are asked for.
        following = _Slice(client, groups, topics, watch, until)
        if pending is not None:
            answers += pending()
        pending = following.ask_ends()
    if pending is not None:
        answers += pending()
    return ClusterAnswer(plan.cluster.cluster_id, plan.cluster.tenant_id, Problem(Code.OK), tuple(answers))


def _common_problem(topics: Mapping[str, TopicSeen | Problem]) -> Problem | None:
    """The problem of the cluster, when no topic could be described for a reason that is not the topic's own."""
    own = {Code.NO_TOPIC, Code.AUTHORIZATION_FAILED, Code.FAILED}
    problems = [seen for seen in topics.values() if isinstance(seen, Problem)]
    if topics and len(problems) == len(topics):
        return next((problem for problem in problems if problem.code not in own), None)
    return None


def _failed(plan: ClusterPlan, problem: Problem) -> ClusterAnswer:
    targets = tuple(
        TargetAnswer(target, None, Problem(Code.CLUSTER)) for group in plan.groups for target in group.targets
    )
    return ClusterAnswer(plan.cluster.cluster_id, plan.cluster.tenant_id, problem, targets)


class _Slice:
    """Groups that are polled together: one time stamp, one request for all their ends."""

    def __init__(
        self,
        client: Cluster,
        groups: Sequence[GroupPlan],
        topics: Mapping[str, TopicSeen | Problem],
        watch: Watch,
        until: float,
    ) -> None:
        self._client, self._groups, self._topics, self._until = client, groups, topics, until
        wanted = {group.name: sorted({p for t in group.targets for p in self._readable(t)}) for group in groups}
        self._watch, self._at_ms = watch, watch.clock()
        self._read_ms: tuple[int | None, int | None] = (None, None)
        self._commits = client.commits({name: parts for name, parts in wanted.items() if parts}, until)
        self._seen = client.groups([group.name for group in groups if group.describe], until)
        self._wanted = wanted

    def ask_ends(self) -> Callable[[], list[TargetAnswer]]:
        """Collect the commits, ask for the ends; their answers come by calling the result."""
        commits = self._commits()
        answered = time.monotonic()
        asked_ms = self._watch.at_least_ms(self._at_ms)
        partitions = {partition for parts in self._wanted.values() for partition in parts}
        stable = {p for group in self._groups for t in group.targets if t.read_committed for p in self._readable(t)}
        asked = self._client.ends(partitions, stable, min(self._until, answered + _SPREAD_SECONDS))

        def collect() -> list[TargetAnswer]:
            ends = asked()
            self._read_ms = asked_ms, self._watch.at_most_ms(self._at_ms)
            seen = self._seen()
            return [
                self._answer(group, target, commits.get(group.name, {}), ends, seen.get(group.name))
                for group in self._groups
                for target in group.targets
            ]

        return collect

    def _readable(self, target: TargetEntry) -> list[Partition]:
        # A partition without a leader would hold up the whole request until its deadline.
        topic = self._topics.get(target.topic)
        if not isinstance(topic, TopicSeen):
            return []
        return [(target.topic, number) for number, has_leader in topic.partitions.items() if has_leader]

    def _answer(
        self,
        group: GroupPlan,
        target: TargetEntry,
        commits: Committed | Problem,
        ends: Ends,
        seen: GroupSeen | Problem | None,
    ) -> TargetAnswer:
        topic = self._topics.get(target.topic, Problem(Code.TIMEOUT))
        members = seen if isinstance(seen, GroupSeen) else None
        if isinstance(topic, Problem) and topic.code is not Code.NO_TOPIC:
            return TargetAnswer(target, None, topic)
        if isinstance(topic, Problem):
            offsets: tuple[Offsets | None, ...] = ()
            topic_id, problem = None, topic
        else:
            count = max(topic.partitions, default=-1) + 1
            known: Committed = {} if isinstance(commits, Problem) else commits
            offsets = tuple([_offsets((target.topic, n), target.read_committed, known, ends) for n in range(count)])
            topic_id = topic.topic_id
            complete = None not in offsets
            problem = Problem(Code.OK) if complete else Problem(Code.INCOMPLETE)
            if isinstance(commits, Problem):
                problem = commits
        polled = Polled(
            self._at_ms,
            topic_id,
            offsets,
            group.interval_ms,
            target.stale_after_ms,
            target.limitation,
            None if members is None else members.members,
            None if members is None else members.state,
            *self._read_ms,
        )
        return TargetAnswer(target, polled, problem, _size(target, self._topics))


def _size(target: TargetEntry, topics: Mapping[str, TopicSeen | Problem]) -> int | None:
    topic = topics.get(target.topic)
    return len(topic.partitions) if isinstance(topic, TopicSeen) else None


def _offsets(partition: Partition, read_committed: bool, commits: Committed, ends: Ends) -> Offsets | None:
    if partition not in commits:
        return None
    start, high = ends.starts.get(partition), ends.highs.get(partition)
    end = ends.stables.get(partition) if read_committed else high
    if start is None or high is None or end is None:
        return None
    return Offsets(start, end, commits[partition], high)
