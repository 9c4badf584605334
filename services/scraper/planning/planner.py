"""Which groups are polled at a tick, and in which slots. Pure planning: called by the source with the store's targets."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from lagscale.store.scraping.targets import ClusterEntry, Polling, TargetEntry
from services.scraper.planning.backoff import PROBES, Breaker
from services.scraper.planning.quotas import allowed
from services.scraper.planning.round_robin import in_turn

#: Groups of a tick whose state and members are read at every poll; above, they take turns.
_DESCRIBE_ALWAYS = 200
_DESCRIBE_SECONDS = 30
#: Groups of one cluster that stay in one slot.
_GROUPS_TOGETHER = 250
#: A group of more partitions is polled beside the ticks: one round of it may take longer than a tick.
LARGE_PARTITIONS = 20_000
#: Partitions of one tenant that are polled at one tick; the rest has its turn at the next ones.
TENANT_PARTITIONS = 60_000
#: What shows whether a cluster answers again; its other groups follow when it does.
_PROBED_GROUPS = 50
#: Targets that are over their quota are asked for their size so often.
_REFUSED_SECONDS = 60

_Key = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """One group: its targets, the real interval, and whether its state is read in this round.

    A `large` one may have any number of partitions, for it makes nobody wait.
    """

    name: str
    targets: tuple[TargetEntry, ...]
    interval_ms: int
    describe: bool
    large: bool = False


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """The groups of a cluster that one slot polls; a proven cluster answered when it was polled last."""

    cluster: ClusterEntry
    groups: tuple[GroupPlan, ...]
    proven: bool = True


@dataclass(frozen=True, slots=True)
class Slot:
    """What one task polls, within so many seconds."""

    clusters: tuple[ClusterPlan, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class _Group:
    name: str
    targets: tuple[TargetEntry, ...]
    ticks: int
    phase: int

    @property
    def key(self) -> _Key:
        """What it is called within its cluster, from one version of the registrations to the next."""
        return self.name, self.targets[0].fits

    @property
    def partitions(self) -> int:
        """As many as are known, and one of each topic that nobody has counted."""
        return sum(1 if target.partitions is None else target.partitions for target in self.targets)

    @property
    def is_large(self) -> bool:
        """Whether it is polled beside the ticks."""
        return self.partitions > LARGE_PARTITIONS and self.targets[0].fits


class Planner:
    """Plans tick after tick. It remembers when it last planned, so that a late tick leaves no group out.

    Args:
        tick_ms: the system's tick.
        slots: tasks for clusters in good health.
        tenant_partitions: of one tenant, at one tick.
        probes: see `Breaker`.
    """

    def __init__(
        self, tick_ms: int, slots: int, tenant_partitions: int = TENANT_PARTITIONS, probes: int = PROBES
    ) -> None:
        self._tick_ms = tick_ms
        self._slots = slots
        self._tick: int | None = None
        self._at_ms = 0.0
        self._version = -1
        self._groups: dict[int, list[_Group]] = {}
        self._tenant_partitions = tenant_partitions
        self._breaker = Breaker(tick_ms, probes)
        #: Groups whose turn has come, and that have not been polled since, with that tick.
        self._owed: dict[tuple[int, _Key], int] = {}
        self._large_groups: dict[int, list[_Group]] = {}
        #: Large groups of proven clusters, whether or not it is their turn.
        self.large: tuple[ClusterPlan, ...] = ()

    def plan(self, polling: Polling, unproven: Collection[int], at_ms: float) -> list[Slot]:
        """The slots of the tick at `at_ms` of the database's clock.

        Args:
            polling: what is registered.
            unproven: clusters whose last poll failed, or that were never polled.
            at_ms: now.
        """
        first, last = self._pass_to(at_ms)
        if polling.version != self._version:
            self._groups = _grouped(polling, self._tick_ms)
            self._version = polling.version
            large = {one: [group for group in groups if group.is_large] for one, groups in self._groups.items()}
            self._large_groups = {one: groups for one, groups in large.items() if groups}
        due: dict[int, list[_Group]] = {}
        for cluster, groups in self._groups.items():
            if found := self._due(cluster, groups, first, last, is_proven=cluster not in unproven):
                due[cluster] = found
        tenants = {cluster: polling.clusters[cluster].tenant_id for cluster in self._groups}
        waiting = {cluster: tenants[cluster] for cluster in due if cluster in unproven}
        probed = {one: due[one][:_PROBED_GROUPS] for one in self._breaker.chosen(waiting, unproven, last)}
        proven = self._shared({one: groups for one, groups in due.items() if one not in waiting}, tenants)
        taken = {id(group) for groups in (*probed.values(), *proven.values()) for group in groups}
        self._owed = {
            (cluster, group.key): self._owed.get((cluster, group.key), last)
            for cluster, groups in due.items()
            for group in groups
            if id(group) not in taken
        }
        always = len(taken) <= _DESCRIBE_ALWAYS

        def planned(groups_of: Mapping[int, Sequence[_Group]], *, proven: bool) -> list[ClusterPlan]:
            plans = {
                one: [self._plan_group(group, last, always) for group in groups] for one, groups in groups_of.items()
            }
            return [ClusterPlan(polling.clusters[one], tuple(groups), proven) for one, groups in plans.items()]

        self.large = tuple(self._large(polling, unproven, last))
        seconds = min(self._tick_ms / 2000, 5.0)
        slots = [Slot(tuple(_fair(part)), seconds) for part in _packed(planned(proven, proven=True), self._slots)]
        bad = planned(probed, proven=False)
        return [*slots, *([Slot(tuple(bad), min(seconds, 1.0))] if bad else [])]

    def _large(self, polling: Polling, unproven: Collection[int], tick: int) -> Iterator[ClusterPlan]:
        for cluster, large in self._large_groups.items():
            if cluster not in unproven:
                plans = [replace(self._plan_group(group, tick, True), large=True) for group in large]
                yield ClusterPlan(polling.clusters[cluster], tuple(plans))

    def _due(self, cluster: int, groups: Sequence[_Group], first: int, last: int, *, is_proven: bool) -> list[_Group]:
        """What is owed, then whose turn comes in these ticks.

        Large groups have turns of their own, but show as well as others whether a cluster answers.
        """
        found = [
            group
            for group in groups
            if (_is_due(group, first, last) or (cluster, group.key) in self._owed)
            and not (is_proven and group.is_large)
        ]
        if self._owed:
            found.sort(key=lambda group: self._owed.get((cluster, group.key), last))
        return found

    def _shared(self, due: Mapping[int, list[_Group]], tenants: Mapping[int, int]) -> dict[int, list[_Group]]:
        """As much of each tenant as one tick has for it: clusters by turns, what is owed first."""
        wanted: dict[int, list[tuple[int, _Group]]] = defaultdict(list)
        for cluster, groups in due.items():
            wanted[tenants[cluster]] += [(cluster, group) for group in groups]
        found: dict[int, list[_Group]] = defaultdict(list)
        for ours in wanted.values():
            room = self._tenant_partitions
            fits = sum(group.partitions for _, group in ours) <= room
            for cluster, group in ours if fits else in_turn(ours, itemgetter(0)):
                if room <= 0:
                    break
                found[cluster].append(group)
                room -= group.partitions
        return dict(found)

    def _pass_to(self, at_ms: float) -> tuple[int, int]:
        """First and last tick since the last call, counted in whole ticks, so that jitter skips none."""
        if self._tick is None or abs(at_ms - self._at_ms) > 100 * self._tick_ms:
            first = last = int(at_ms // self._tick_ms)
        else:
            first = self._tick + 1
            last = self._tick + max(1, round((at_ms - self._at_ms) / self._tick_ms))
        self._tick, self._at_ms = last, at_ms
        return first, last

    def _plan_group(self, group: _Group, tick: int, always: bool) -> GroupPlan:
        turns = max(1, _DESCRIBE_SECONDS * 1000 // (group.ticks * self._tick_ms))
        describe = always or (tick // group.ticks + group.phase) % turns == 0
        return GroupPlan(group.name, group.targets, group.ticks * self._tick_ms, describe)


def _grouped(polling: Polling, tick_ms: int) -> dict[int, list[_Group]]:
    found: dict[tuple[int, str, bool], list[TargetEntry]] = defaultdict(list)
    for target in allowed(polling.targets, polling.quotas):
        if target.cluster_id in polling.clusters:
            found[(target.cluster_id, target.consumer_group, target.fits)].append(target)
    grouped: dict[int, list[_Group]] = defaultdict(list)
    for (cluster_id, name, fits), targets in found.items():
        interval = min(target.sampling_ms for target in targets)
        ticks = max(1, (interval if fits else max(interval, _REFUSED_SECONDS * 1000)) // tick_ms)
        phase = zlib.crc32(f"{cluster_id}/{name}".encode())
        grouped[cluster_id].append(_Group(name, tuple(targets), ticks, phase))
    return dict(grouped)


def _is_due(group: _Group, first: int, last: int) -> bool:
    """Whether the group's turn lies in these ticks."""
    return (last - group.phase) // group.ticks > (first - 1 - group.phase) // group.ticks


def _fair(plans: list[ClusterPlan]) -> list[ClusterPlan]:
    """One cluster of each tenant after the other, so that nobody's many clusters take all the time."""
    return in_turn(plans, lambda plan: plan.cluster.tenant_id)


def _packed(clusters: list[ClusterPlan], slots: int) -> list[list[ClusterPlan]]:
    """Clusters in at most so many slots of about the same number of groups; great clusters are divided."""
    total = sum(len(plan.groups) for plan in clusters)
    if total <= _GROUPS_TOGETHER or slots == 1:
        return [clusters] if clusters else []
    share = -(-total // slots)
    packed: list[list[ClusterPlan]] = [[]]
    room = share
    for plan in sorted(clusters, key=lambda one: one.cluster.cluster_id):
        # Groups that share a topic stay together, so that its ends are asked for once.
        groups = sorted(plan.groups, key=lambda group: (group.targets[0].topic, group.name))
        while groups:
            if room == 0:
                packed.append([])
                room = share
            taken, groups = groups[:room], groups[room:]
            packed[-1].append(ClusterPlan(plan.cluster, tuple(taken), plan.proven))
            room -= len(taken)
    return packed
