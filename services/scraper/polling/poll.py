"""Polls the clusters of one slot against one shared deadline: metadata, commits, then end offsets, in slices of groups.

Called in a worker for the slots of a tick, and by the background poller. Clients come through protocols, so tests need
no broker.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import ceil
from typing import Any, Protocol, TypeVar

from lagscale.domain.group_status.transactions import build_unstable
from lagscale.domain.lag.offsets import OffsetInvalid, build_offsets
from lagscale.domain.lag.samples import Offsets
from lagscale.domain.state_codes import StateCode
from lagscale.store.connection import ScraperDatabase
from lagscale.store.scraping.targets import ClusterEntry, TargetEntry
from services.scraper import deadlines
from services.scraper.planning.plan import ClusterPlan, GroupPlan, Slot
from services.scraper.planning.quotas import filter_by_quota
from services.scraper.polling.round import (
    Committed,
    Ends,
    GroupDescription,
    Partition,
    PolledRound,
    PollProblem,
    TopicDescription,
)

ClientT_co = TypeVar("ClientT_co", covariant=True)


class GroupClient(Protocol):
    """Requests about the groups of one cluster; times are `time.monotonic()` seconds."""

    def request_commits(
        self, groups: Mapping[str, Sequence[Partition]], until: float
    ) -> Callable[[], Mapping[str, Committed | PollProblem]]:
        """Committed offsets, of all topics where no partition is named; call the result to collect."""

    def request_groups(
        self, names: Sequence[str], until: float
    ) -> Callable[[], Mapping[str, GroupDescription | PollProblem]]:
        """States and member counts; call the result to collect."""


class ClientOpener(Protocol[ClientT_co]):
    """Opens the clients of clusters."""

    def open(self, cluster: ClusterEntry, *, responsive: bool) -> ClientT_co | PollProblem | None:
        """The client until `release`, or why there is none; None while none is free."""

    def release(self, client: object) -> None:
        """End one use of a client."""


class PollClient(GroupClient, Protocol):
    """All requests of a poll."""

    @property
    def describes_groups(self) -> bool:
        """Whether the cluster answers requests for states and members, as far as is known."""

    def describe_topics(self, names: Sequence[str], until: float) -> Mapping[str, TopicDescription | PollProblem]:
        """Ids and partitions of topics."""

    def request_ends(
        self, partitions: Iterable[Partition], committed_only: Iterable[Partition], until: float
    ) -> Callable[[], Ends]:
        """Log starts and end offsets; call the result to collect."""

    def find_share_groups(self, names: Sequence[str], until: float) -> frozenset[str]:
        """Which of the groups are share groups."""


@dataclass(frozen=True, slots=True)
class TargetPollResult:
    """Result for one target: a round or none, its state, and where they were read, its topic's partitions.

    `unstable` is what `build_unstable` returns; None where last stable offsets were not read.
    """

    target: TargetEntry
    polled: PolledRound | None
    problem: PollProblem
    partitions: int | None = None
    unstable: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ClusterPollResult:
    """Result for one cluster: its state, and its targets."""

    cluster_id: int
    tenant_id: int
    problem: PollProblem
    targets: tuple[TargetPollResult, ...]


@dataclass(frozen=True, slots=True)
class DatabaseClock:
    """The database's clock in whole milliseconds, and its maximum error.

    With it, durations are bounded that must not be reported too short or too long.
    """

    now_ms: Callable[[], int]
    error_ms: int

    @classmethod
    def learn(cls, database: ScraperDatabase) -> DatabaseClock:
        """The monotonic clock plus an offset; the database may have read its clock at any time of the round trip.

        Raises:
            StoreUnavailable: it did not answer.
        """
        before = time.monotonic()
        at_ms, _ = database.now_ms()
        after = time.monotonic()
        offset_ms = at_ms - (before + after) * 500
        return cls(lambda: int(time.monotonic() * 1000 + offset_ms), ceil((after - before) * 500))

    def measure_min_ms(self, since_ms: int) -> int:
        """Lower bound of the milliseconds since a time of that clock; below 0 where it is unknown."""
        return self.now_ms() - self.error_ms - since_ms

    def measure_max_ms(self, since_ms: int) -> int:
        """Upper bound of the milliseconds since a time of that clock."""
        # The clock truncates parts of a millisecond.
        return self.now_ms() + 1 + self.error_ms - since_ms


def poll_slot(
    slot: Slot, opener: ClientOpener[PollClient], clock: DatabaseClock, threads: int = deadlines.POLL_THREADS
) -> list[ClusterPollResult]:
    """Poll all clusters of the slot, `threads` at once; it ends soon after the slot's time limit.

    A cluster that had no turn in that time, or for which no client was free, has no result: nothing is known about it,
    and it must not look like one that does not answer.
    """
    until = time.monotonic() + slot.seconds

    def poll_one(plan: ClusterPlan) -> ClusterPollResult | None:
        if time.monotonic() >= until:
            return None
        client = opener.open(plan.cluster, responsive=plan.responsive)
        if client is None or isinstance(client, PollProblem):
            return None if client is None else _build_failure(plan, client)
        try:
            return _poll_cluster(plan, client, clock, until)
        finally:
            opener.release(client)

    if len(slot.clusters) == 1:
        answers = [poll_one(slot.clusters[0])]
    else:
        with ThreadPoolExecutor(min(len(slot.clusters), threads) or 1, "poll") as pool:
            answers = list(pool.map(poll_one, slot.clusters))
    return [answer for answer in answers if answer is not None]


def _poll_cluster(plan: ClusterPlan, client: PollClient, clock: DatabaseClock, until: float) -> ClusterPollResult:
    topics = client.describe_topics(sorted({t.topic for group in plan.groups for t in group.targets}), until)
    common = _find_common_problem(topics)
    if common is not None:
        return _build_failure(plan, common)
    shares = client.find_share_groups([group.name for group in plan.groups], until)
    refused = PollProblem(StateCode.SHARE_GROUP)
    answers = [
        TargetPollResult(t, None, refused) for group in plan.groups if group.name in shares for t in group.targets
    ]
    measured, rejected = filter_by_quota([group for group in plan.groups if group.name not in shares], topics)
    answers += [TargetPollResult(one, None, problem, _count_partitions(one, topics)) for one, problem in rejected]
    pending: Callable[[], list[TargetPollResult]] = list
    for begin in range(0, len(measured), deadlines.SLICE_GROUPS):
        groups = measured[begin : begin + deadlines.SLICE_GROUPS]
        # The end offsets of the previous slice are under way while the commits of this one are requested.
        following = _GroupSlice(client, groups, topics, clock, until)
        answers += pending()
        pending = following.request_ends()
    answers += pending()
    return ClusterPollResult(plan.cluster.cluster_id, plan.cluster.tenant_id, PollProblem(StateCode.OK), tuple(answers))


def _find_common_problem(topics: Mapping[str, TopicDescription | PollProblem]) -> PollProblem | None:
    """The problem of the cluster, if no topic could be described for a reason that is not the topic's own."""
    own = {StateCode.NO_TOPIC, StateCode.AUTHORIZATION_FAILED, StateCode.FAILED}
    problems = [described for described in topics.values() if isinstance(described, PollProblem)]
    if topics and len(problems) == len(topics):
        return next((problem for problem in problems if problem.code not in own), None)
    return None


def _build_failure(plan: ClusterPlan, problem: PollProblem) -> ClusterPollResult:
    unread = PollProblem(StateCode.CLUSTER)
    targets = tuple(TargetPollResult(target, None, unread) for group in plan.groups for target in group.targets)
    return ClusterPollResult(plan.cluster.cluster_id, plan.cluster.tenant_id, problem, targets)


class _GroupSlice:
    """Groups that are polled together: one timestamp, one request for all end offsets."""

    def __init__(
        self,
        client: PollClient,
        groups: Sequence[GroupPlan],
        topics: Mapping[str, TopicDescription | PollProblem],
        clock: DatabaseClock,
        until: float,
    ) -> None:
        self._client, self._groups, self._topics, self._until = client, groups, topics, until
        requested = {group.name: sorted({p for t in group.targets for p in self._list_readable(t)}) for group in groups}
        self._clock, self._at_ms = clock, clock.now_ms()
        self._read_ms: tuple[int | None, int | None] = (None, None)
        self._commits = client.request_commits({name: parts for name, parts in requested.items() if parts}, until)
        self._collect_groups = client.request_groups([group.name for group in groups if group.describe], until)
        self._requested = requested

    def request_ends(self) -> Callable[[], list[TargetPollResult]]:
        """Collect the commits, then request the end offsets; call the result to collect."""
        commits = self._commits()
        answered_at = time.monotonic()
        asked_ms = self._clock.measure_min_ms(self._at_ms)
        partitions = {partition for parts in self._requested.values() for partition in parts}
        stable = {
            partition
            for group in self._groups
            for target in group.targets
            # Open transactions are looked for as seldom as members.
            if target.read_committed or group.describe
            for partition in self._list_readable(target)
        }
        asked = self._client.request_ends(
            partitions, stable, min(self._until, answered_at + deadlines.MAX_SPREAD_SECONDS)
        )

        def collect() -> list[TargetPollResult]:
            ends = asked()
            self._read_ms = asked_ms, self._clock.measure_max_ms(self._at_ms)
            described = self._collect_groups()
            return [
                self._build_result(group, target, commits.get(group.name, {}), ends, described.get(group.name))
                for group in self._groups
                for target in group.targets
            ]

        return collect

    def _list_readable(self, target: TargetEntry) -> list[Partition]:
        # A partition without a leader would delay the whole request until its deadline.
        topic = self._topics.get(target.topic)
        if not isinstance(topic, TopicDescription):
            return []
        return [(target.topic, number) for number, has_leader in topic.partitions.items() if has_leader]

    def _build_result(
        self,
        group: GroupPlan,
        target: TargetEntry,
        commits: Committed | PollProblem,
        ends: Ends,
        described: GroupDescription | PollProblem | None,
    ) -> TargetPollResult:
        topic = self._topics.get(target.topic, PollProblem(StateCode.TIMEOUT))
        members, state = None, None
        if isinstance(described, GroupDescription):
            members, state = described.members, described.state
        if isinstance(topic, PollProblem):
            if topic.code is not StateCode.NO_TOPIC:
                return TargetPollResult(target, None, topic)
            offsets: tuple[Offsets | None, ...] = ()
            topic_id, problem, unstable = None, topic, None
        else:
            count = max(topic.partitions, default=-1) + 1
            group_commits: Committed = {} if isinstance(commits, PollProblem) else commits
            try:
                offsets = tuple(
                    [_read_offsets((target.topic, n), target.read_committed, group_commits, ends) for n in range(count)]
                )
            except OffsetInvalid as refused:
                return TargetPollResult(target, None, PollProblem(StateCode.OFFSETS_INVALID, str(refused)), count)
            topic_id = topic.topic_id
            code = StateCode.OK if self._client.describes_groups else StateCode.MEMBERS_UNKNOWN
            problem = PollProblem(StateCode.INCOMPLETE if None in offsets else code)
            if isinstance(commits, PollProblem):
                problem = commits
            highs, stables = (
                {n: offset for n in range(count) if (offset := read.get((target.topic, n))) is not None}
                for read in (ends.highs, ends.stables)
            )
            unstable = build_unstable(highs, stables, self._at_ms) if stables else None
        limits = group.interval_ms, target.stale_after_ms, target.limitation
        polled = PolledRound(self._at_ms, topic_id, offsets, *limits, members, state, *self._read_ms)
        return TargetPollResult(target, polled, problem, _count_partitions(target, self._topics), unstable)


def _count_partitions(target: TargetEntry, topics: Mapping[str, TopicDescription | PollProblem]) -> int | None:
    topic = topics.get(target.topic)
    return len(topic.partitions) if isinstance(topic, TopicDescription) else None


def _read_offsets(partition: Partition, read_committed: bool, commits: Committed, ends: Ends) -> Offsets | None:
    if partition not in commits:
        return None
    start, high = ends.starts.get(partition), ends.highs.get(partition)
    end = ends.stables.get(partition) if read_committed else high
    if start is None or high is None or end is None:
        return None
    return build_offsets(partition[1], start, end, commits[partition], high)
