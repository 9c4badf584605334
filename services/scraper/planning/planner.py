"""Which groups are polled at a tick, and in which slots. Pure; the leader calls it with the registered targets."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from lagscale.store.scraping.targets import PollInventory, TargetEntry
from services.scraper import deadlines
from services.scraper.planning.plan import ClusterPlan, GroupPlan, Slot
from services.scraper.planning.quotas import apply_quotas, interleave

_GroupKey = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class _GroupSchedule:
    name: str
    targets: tuple[TargetEntry, ...]
    ticks: int
    phase: int

    @property
    def key(self) -> _GroupKey:
        """Identifies the group within its cluster across versions of the registrations."""
        return self.name, self.targets[0].fits

    @property
    def partitions(self) -> int:
        """Those that were counted, and one for each topic that was never counted."""
        return sum(1 if target.partitions is None else target.partitions for target in self.targets)

    @property
    def is_large(self) -> bool:
        """Whether it is polled out of band."""
        return self.partitions > deadlines.LARGE_PARTITIONS and self.targets[0].fits


class ClusterBackoff:
    """Which of the clusters that do not answer, or never did, are polled at a tick.

    Polling a dead cluster costs a client, threads and time, so few are polled at once, each less and less often, and the
    tenants take turns: a tenant with hundreds of dead clusters does not delay another tenant's cluster. No library fits:
    the pauses are counted in ticks, and the tenants share the probes of a tick.
    """

    def __init__(self, tick_ms: int, probes: int = deadlines.MAX_PROBES) -> None:
        self._max_pause = max(1, deadlines.MAX_BACKOFF_SECONDS * 1000 // tick_ms)
        self._probes = probes
        self._failures: dict[int, tuple[int, int]] = {}
        self._probed: set[int] = set()
        self._served: dict[int, int] = {}

    def select_clusters(self, waiting: Mapping[int, int], unresponsive: Collection[int], tick: int) -> list[int]:
        """The clusters to poll at this tick, among those with due groups, which are given with their tenants.

        `unresponsive` are all clusters whose last poll failed, or that were never polled.
        """
        answered = len(self._probed.difference(unresponsive))
        self._failures = {cluster: of for cluster, of in self._failures.items() if cluster in unresponsive}
        due = [cluster for cluster in waiting if self._next_tick(cluster) <= tick]
        # The cluster of a tenant that waited longest, and the tenant that was served longest ago.
        due.sort(key=lambda one: (self._served.get(waiting[one], -1), self._next_tick(one), one))
        probed = interleave(due, waiting.__getitem__)[: max(self._probes, 2 * answered)]
        for cluster in probed:
            self._served[waiting[cluster]] = tick
            polls = self._failures.get(cluster, (0, 0))[0]
            self._failures[cluster] = (min(polls + 1, 30), tick + self._compute_pause(cluster, polls))
        self._served = {tenant: at for tenant, at in self._served.items() if tick - at <= self._max_pause}
        self._probed = set(probed)
        return probed

    def _next_tick(self, cluster: int) -> int:
        return self._failures.get(cluster, (0, -1))[1]

    def _compute_pause(self, cluster: int, polls: int) -> int:
        pause: int = min(2 ** max(0, polls - deadlines.IMMEDIATE_POLLS), self._max_pause)
        chance = zlib.crc32(f"{cluster}/{polls}/{self._failures.get(cluster, (0, 0))[1]}".encode()) / 2**32
        return max(1, int(pause * (1 - deadlines.BACKOFF_JITTER * chance) + 0.5))


class PollPlanner:
    """Plans each tick. It remembers the tick before, so that a late tick leaves no group out.

    `slots` is the number of tasks for responsive clusters; `tenant_partitions` are polled of one tenant at one tick.
    """

    def __init__(self, tick_ms: int, slots: int, tenant_partitions: int, probes: int = deadlines.MAX_PROBES) -> None:
        self._tick_ms = tick_ms
        self._slots = slots
        self._tick: int | None = None
        self._at_ms = 0.0
        self._version = -1
        self._groups: dict[int, list[_GroupSchedule]] = {}
        self._tenant_partitions = tenant_partitions
        self._cluster_backoff = ClusterBackoff(tick_ms, probes)
        #: Groups that are due and were not polled yet, with the tick at which they became due.
        self._overdue: dict[tuple[int, _GroupKey], int] = {}
        self._large_groups: dict[int, list[_GroupSchedule]] = {}
        #: Oversized groups of responsive clusters, due or not.
        self.large: tuple[ClusterPlan, ...] = ()

    def plan(self, polling: PollInventory, unresponsive: Collection[int], at_ms: float) -> list[Slot]:
        """The slots of one tick, whose time is in milliseconds by the database's clock.

        `unresponsive` are the clusters whose last poll failed, or that were never polled.
        """
        first, last = self._advance_to(at_ms)
        if polling.version != self._version:
            self._groups = _group_targets(polling, self._tick_ms)
            self._version = polling.version
            large = {one: [group for group in groups if group.is_large] for one, groups in self._groups.items()}
            self._large_groups = {one: groups for one, groups in large.items() if groups}
        due: dict[int, list[_GroupSchedule]] = {}
        for cluster, groups in self._groups.items():
            if selected := self._find_due(cluster, groups, first, last, is_responsive=cluster not in unresponsive):
                due[cluster] = selected
        tenants = {cluster: polling.clusters[cluster].tenant_id for cluster in self._groups}
        waiting = {cluster: tenants[cluster] for cluster in due if cluster in unresponsive}
        chosen = self._cluster_backoff.select_clusters(waiting, unresponsive, last)
        probed = {one: due[one][: deadlines.PROBED_GROUPS] for one in chosen}
        responsive = self._limit_tenants({one: groups for one, groups in due.items() if one not in waiting}, tenants)
        taken = {id(group) for groups in (*probed.values(), *responsive.values()) for group in groups}
        self._overdue = {
            (cluster, group.key): self._overdue.get((cluster, group.key), last)
            for cluster, groups in due.items()
            for group in groups
            if id(group) not in taken
        }
        always = len(taken) <= deadlines.DESCRIBE_GROUPS

        def build_plans(groups_of: Mapping[int, Sequence[_GroupSchedule]], *, responsive: bool) -> list[ClusterPlan]:
            plans = {
                one: [self._plan_group(group, last, always) for group in groups] for one, groups in groups_of.items()
            }
            return [ClusterPlan(polling.clusters[one], tuple(groups), responsive) for one, groups in plans.items()]

        self.large = tuple(self._plan_large(polling, unresponsive, last))
        tick_seconds = self._tick_ms / 1000
        seconds = deadlines.compute_slot_seconds(tick_seconds)
        packed = _pack_slots(build_plans(responsive, responsive=True), self._slots)
        # Round robin over the tenants, so that one tenant's many clusters do not take all the time.
        slots = [Slot(tuple(interleave(part, lambda plan: plan.cluster.tenant_id)), seconds) for part in packed]
        unresponsive_plans = build_plans(probed, responsive=False)
        if unresponsive_plans:
            seconds = deadlines.compute_slot_seconds(tick_seconds, responsive=False)
            slots.append(Slot(tuple(unresponsive_plans), seconds))
        return slots

    def _plan_large(self, polling: PollInventory, unresponsive: Collection[int], tick: int) -> Iterator[ClusterPlan]:
        for cluster, large in self._large_groups.items():
            if cluster not in unresponsive:
                plans = [replace(self._plan_group(group, tick, True), large=True) for group in large]
                yield ClusterPlan(polling.clusters[cluster], tuple(plans))

    def _find_due(
        self, cluster: int, groups: Sequence[_GroupSchedule], first: int, last: int, *, is_responsive: bool
    ) -> list[_GroupSchedule]:
        """Overdue groups, then those that become due in these ticks.

        Oversized groups are due by the background poller's own count; those of an unresponsive cluster are polled here,
        because they show as well as others whether the cluster answers.
        """
        selected = [
            group
            for group in groups
            if (_is_due(group, first, last) or (cluster, group.key) in self._overdue)
            and not (is_responsive and group.is_large)
        ]
        if self._overdue:
            selected.sort(key=lambda group: self._overdue.get((cluster, group.key), last))
        return selected

    def _limit_tenants(
        self, due: Mapping[int, list[_GroupSchedule]], tenants: Mapping[int, int]
    ) -> dict[int, list[_GroupSchedule]]:
        """The groups of each tenant up to its partitions per tick: clusters round robin, overdue groups first."""
        by_tenant: dict[int, list[tuple[int, _GroupSchedule]]] = defaultdict(list)
        for cluster, groups in due.items():
            by_tenant[tenants[cluster]] += [(cluster, group) for group in groups]
        selected: dict[int, list[_GroupSchedule]] = defaultdict(list)
        for ours in by_tenant.values():
            room = self._tenant_partitions
            fits = sum(group.partitions for _, group in ours) <= room
            for cluster, group in ours if fits else interleave(ours, itemgetter(0)):
                if room <= 0:
                    break
                selected[cluster].append(group)
                room -= group.partitions
        return dict(selected)

    def _advance_to(self, at_ms: float) -> tuple[int, int]:
        """First and last tick since the previous call, in whole ticks, so that jitter skips none."""
        if self._tick is None or abs(at_ms - self._at_ms) > deadlines.MAX_TICK_GAP * self._tick_ms:
            first = last = int(at_ms // self._tick_ms)
        else:
            first = self._tick + 1
            last = self._tick + max(1, round((at_ms - self._at_ms) / self._tick_ms))
        self._tick, self._at_ms = last, at_ms
        return first, last

    def _plan_group(self, group: _GroupSchedule, tick: int, always: bool) -> GroupPlan:
        describe_every = max(1, deadlines.DESCRIBE_SECONDS * 1000 // (group.ticks * self._tick_ms))
        describe = always or (tick // group.ticks + group.phase) % describe_every == 0
        return GroupPlan(group.name, group.targets, group.ticks * self._tick_ms, describe)


def _group_targets(polling: PollInventory, tick_ms: int) -> dict[int, list[_GroupSchedule]]:
    selected: dict[tuple[int, str, bool], list[TargetEntry]] = defaultdict(list)
    for target in apply_quotas(polling.targets, polling.quotas):
        if target.cluster_id in polling.clusters:
            selected[(target.cluster_id, target.consumer_group, target.fits)].append(target)
    grouped: dict[int, list[_GroupSchedule]] = defaultdict(list)
    for (cluster_id, name, fits), targets in selected.items():
        interval = min(target.sampling_ms for target in targets)
        ticks = max(1, (interval if fits else max(interval, deadlines.OVER_QUOTA_SECONDS * 1000)) // tick_ms)
        phase = zlib.crc32(f"{cluster_id}/{name}".encode())
        grouped[cluster_id].append(_GroupSchedule(name, tuple(targets), ticks, phase))
    return dict(grouped)


def _is_due(group: _GroupSchedule, first: int, last: int) -> bool:
    """Whether the group becomes due in these ticks."""
    return (last - group.phase) // group.ticks > (first - 1 - group.phase) // group.ticks


def _pack_slots(clusters: list[ClusterPlan], slots: int) -> list[list[ClusterPlan]]:
    """At most `slots` slots with about the same number of groups; large clusters are split."""
    total = sum(len(plan.groups) for plan in clusters)
    if total <= deadlines.MIN_SPLIT_GROUPS or slots == 1:
        return [clusters] if clusters else []
    share = -(-total // slots)
    packed: list[list[ClusterPlan]] = [[]]
    room = share
    for plan in sorted(clusters, key=lambda one: one.cluster.cluster_id):
        # Groups that share a topic stay together, so that its end offsets are requested once.
        groups = sorted(plan.groups, key=lambda group: (group.targets[0].topic, group.name))
        while groups:
            if room == 0:
                packed.append([])
                room = share
            taken, groups = groups[:room], groups[room:]
            packed[-1].append(ClusterPlan(plan.cluster, tuple(taken), plan.responsive))
            room -= len(taken)
    return packed
