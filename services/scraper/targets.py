"""Which groups are polled at a tick, and in which slots. Pure planning: called by the source with the store's targets."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from lagscale.store.targets import ClusterEntry, Polling, TargetEntry

#: Groups of a tick whose state and members are read at every poll; above, they take turns.
_DESCRIBE_ALWAYS = 200
_DESCRIBE_SECONDS = 30
#: Groups of one cluster that stay in one slot.
_GROUPS_TOGETHER = 250
#: A cluster that failed is polled at once again so many times, then less and less often.
_PATIENT_POLLS = 3
_LONGEST_BACKOFF_SECONDS = 15


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """One group: its targets, the real interval, and whether its state is read in this round."""

    name: str
    targets: tuple[TargetEntry, ...]
    interval_ms: int
    describe: bool


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """The groups of a cluster that one slot polls."""

    cluster: ClusterEntry
    groups: tuple[GroupPlan, ...]


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


class Planner:
    """Plans tick after tick. It remembers when it last planned, so that a late tick leaves no group out.

    Args:
        tick_ms: the system's tick.
        slots: tasks for clusters in good health.
    """

    def __init__(self, tick_ms: int, slots: int) -> None:
        self._tick_ms = tick_ms
        self._slots = slots
        self._tick: int | None = None
        self._at_ms = 0.0
        self._version = -1
        self._groups: dict[int, list[_Group]] = {}
        self._failures: dict[int, tuple[int, int]] = {}

    def plan(self, polling: Polling, failed: Collection[int], at_ms: float) -> list[Slot]:
        """The slots of the tick at `at_ms` of the database's clock.

        Args:
            polling: what is registered.
            failed: clusters whose last poll failed.
            at_ms: now.
        """
        first, last = self._pass_to(at_ms)
        if polling.version != self._version:
            self._groups = _grouped(polling, self._tick_ms)
            self._version = polling.version
        good: list[ClusterPlan] = []
        bad: list[ClusterPlan] = []
        due = {cluster: [g for g in groups if _is_due(g, first, last)] for cluster, groups in self._groups.items()}
        always = sum(len(groups) for groups in due.values()) <= _DESCRIBE_ALWAYS
        for cluster_id, groups in due.items():
            if not groups or not self._may_poll(cluster_id, cluster_id in failed, last):
                continue
            plans = tuple(self._plan_group(group, last, always) for group in groups)
            (bad if cluster_id in failed else good).append(ClusterPlan(polling.clusters[cluster_id], plans))
        seconds = min(self._tick_ms / 2000, 5.0)
        slots = [Slot(tuple(part), seconds) for part in _packed(good, self._slots)]
        return [*slots, *([Slot(tuple(bad), min(seconds, 1.0))] if bad else [])]

    def _pass_to(self, at_ms: float) -> tuple[int, int]:
        """First and last tick since the last call, counted in whole ticks, so that jitter skips none."""
        if self._tick is None or abs(at_ms - self._at_ms) > 100 * self._tick_ms:
            first = last = int(at_ms // self._tick_ms)
        else:
            first = self._tick + 1
            last = self._tick + max(1, round((at_ms - self._at_ms) / self._tick_ms))
        self._tick, self._at_ms = last, at_ms
        return first, last

    def _may_poll(self, cluster_id: int, failed: bool, tick: int) -> bool:
        if not failed:
            self._failures.pop(cluster_id, None)
            return True
        polls, next_tick = self._failures.get(cluster_id, (0, tick))
        if tick < next_tick:
            return False
        longest = max(1, _LONGEST_BACKOFF_SECONDS * 1000 // self._tick_ms)
        pause = min(2 ** max(0, polls - _PATIENT_POLLS), longest)
        self._failures[cluster_id] = (min(polls + 1, 30), tick + pause)
        return True

    def _plan_group(self, group: _Group, tick: int, always: bool) -> GroupPlan:
        turns = max(1, _DESCRIBE_SECONDS * 1000 // (group.ticks * self._tick_ms))
        describe = always or (tick // group.ticks + group.phase) % turns == 0
        return GroupPlan(group.name, group.targets, group.ticks * self._tick_ms, describe)


def _grouped(polling: Polling, tick_ms: int) -> dict[int, list[_Group]]:
    found: dict[tuple[int, str], list[TargetEntry]] = defaultdict(list)
    for target in polling.targets:
        if target.cluster_id in polling.clusters:
            found[(target.cluster_id, target.consumer_group)].append(target)
    grouped: dict[int, list[_Group]] = defaultdict(list)
    for (cluster_id, name), targets in found.items():
        ticks = max(1, min(target.sampling_ms for target in targets) // tick_ms)
        phase = zlib.crc32(f"{cluster_id}/{name}".encode())
        grouped[cluster_id].append(_Group(name, tuple(targets), ticks, phase))
    return dict(grouped)


def _is_due(group: _Group, first: int, last: int) -> bool:
    """Whether the group's turn lies in these ticks."""
    return (last - group.phase) // group.ticks > (first - 1 - group.phase) // group.ticks


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
            packed[-1].append(ClusterPlan(plan.cluster, tuple(taken)))
            room -= len(taken)
    return packed
