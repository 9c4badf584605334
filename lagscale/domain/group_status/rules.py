"""Status of groups and partitions: ok, warn, stop, stall, rewind; and hot partitions.

Based on the evaluation rules of Burrow's wiki, applied to stored samples. They only report, and change no verdict.
Stored samples have offsets but no times of commits, so each rule says what it uses instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import Final

from lagscale.domain.lag.rounds import TargetRound
from lagscale.domain.lag.samples import Flag
from lagscale.domain.policy.policy import Metric, Policy
from lagscale.domain.verdict.islands import build_lag_points
from lagscale.domain.verdict.series import MonitorSeries, PartitionSeries, SamplePoint, build_series, compute_lag
from lagscale.domain.verdict.stuck import is_commit_unchanged, is_stuck


class Status(StrEnum):
    """The status of a partition or a group, ordered by `SEVERITY_ORDER`."""

    OK = "ok"
    UNKNOWN = "unknown"
    WARN = "warn"
    STOP = "stop"
    STALL = "stall"
    REWIND = "rewind"


class StatusRule(StrEnum):
    """The rule that determined the status of a partition."""

    NO_SAMPLE = "no_sample"
    STALE = "stale"
    NO_LAG = "no_lag"
    NO_COMMIT = "no_commit"
    REWOUND = "rewound"
    CAUGHT_UP = "caught_up"
    JUST_BEGUN = "just_begun"
    TOO_SHORT = "too_short"
    NO_PROGRESS = "no_progress"
    LAG_NEVER_FELL = "lag_never_fell"
    LAG_FALLS = "lag_falls"


#: The window spans so many sampling intervals, as Burrow's spans ten commits, and at least this time.
WINDOW_INTERVALS: Final = 10
MIN_WINDOW_MS: Final = 120_000
#: A hot partition has at least so many times the average lag of the topic's other partitions.
HOT_FACTOR: Final = 5
#: The level where the threshold counts seconds: the default of `lagThreshold`.
DEFAULT_LAG_THRESHOLD: Final = 500
#: From best to worst. Unknown may hide something worse than ok, but never overrides what is proven.
SEVERITY_ORDER: Final = (
    Status.OK,
    Status.UNKNOWN,
    Status.WARN,
    Status.STOP,
    Status.STALL,
    Status.REWIND,
)


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """The status of one partition, with its numbers.

    Attributes:
        at_ms, lag, position: of the newest sample, None without one; messages and offset.
        start_ms, start_lag: of the first sample of the window.
        commit_delta: messages by which the commit advanced since then; negative where it moved backwards.
        advance_count: between how many neighboring samples it advanced.
        stalled_since_ms: the first sample since which the commit has not moved; None where it moved last.
        may_have_stalled_before: whether it may not have moved before either, which the window does not show.
        lost: messages lost to retention at the newest sample.
        stuck: whether its commit did not move for `stuckAfterSeconds`, or for the window where that is off, while the
            group had members.
        hot: whether it has far more lag than the topic's other partitions.
    """

    target_id: int
    partition: int
    status: Status
    rule: StatusRule
    at_ms: int | None = None
    lag: int | None = None
    position: int | None = None
    start_ms: int | None = None
    start_lag: int | None = None
    commit_delta: int | None = None
    advance_count: int = 0
    stalled_since_ms: int | None = None
    may_have_stalled_before: bool = False
    uncommitted: bool = False
    lost: int = 0
    stuck: bool = False
    hot: bool = False


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """The status of a monitor's group and of each partition in scope.

    Attributes:
        unmeasured: targets without a fresh round.
        members: at the newest round, None when unknown.
        at_ms: the time of the newest round, None without one.
    """

    status: Status
    partitions: tuple[PartitionStatus, ...]
    unmeasured: tuple[int, ...]
    members: int | None
    at_ms: int | None


def compute_stuck_ms(policy: Policy) -> int:
    """After how long a partition is reported as stuck: `stuckAfterSeconds`, or the window where that is off."""
    return policy.stuck_after_ms or compute_window_ms(policy)


def compute_lookback_ms(policy: Policy) -> int:
    """How far before a target's newest round samples are needed, in addition to the last round before."""
    return max(compute_window_ms(policy), compute_stuck_ms(policy)) + policy.max_gap_ms + policy.stale_after_ms


def evaluate_group_status(targets: Mapping[int, Sequence[TargetRound]], policy: Policy, now_ms: int) -> GroupStatus:
    """The status of a monitor's group.

    1. The status of the group is the worst of its partitions.
    2. Without a partition, or with a target without a fresh round, it is at best unknown.

    Args:
        targets: target id -> its rounds of at least `compute_lookback_ms`, and the one before.
        policy: gives the window, freshness, and the lag of uncommitted partitions.
        now_ms: the instant at which samples are fresh or not.
    """
    series_set = build_series(targets, policy, None)
    if series_set is None:
        return GroupStatus(Status.UNKNOWN, (), tuple(sorted(targets)), None, None)
    unmeasured = tuple(
        target
        for target, rounds in sorted(series_set.rounds.items())
        if not rounds or now_ms - rounds[-1].at_ms > policy.stale_after_ms
    )
    partitions = _evaluate_partitions(series_set, policy, now_ms)
    statuses = [one.status for one in partitions] + [Status.UNKNOWN] * bool(unmeasured)
    return GroupStatus(find_worst_status(statuses), partitions, unmeasured, series_set.members(), series_set.at_ms)


def find_worst_status(statuses: Iterable[Status]) -> Status:
    """The worst status; unknown for none."""
    return max(statuses, key=SEVERITY_ORDER.index, default=Status.UNKNOWN)


def _evaluate_partitions(series_set: MonitorSeries, policy: Policy, now_ms: int) -> tuple[PartitionStatus, ...]:
    members_by_time = {target: series_set.members_by_time(target) for target in series_set.rounds}
    hot = find_hot_partitions(series_set, policy, compute_window_ms(policy), now_ms)
    stuck_policy = replace(policy, stuck_after_ms=compute_stuck_ms(policy))
    statuses = []
    for series in series_set.series:
        one = _evaluate_partition(series, members_by_time[series.target_id], policy, now_ms)
        is_hot = (series.target_id, series.partition) in hot
        # A partition whose commit moved last, or without lag, cannot be stuck.
        may_be = bool(one.lag) and one.stalled_since_ms is not None
        stuck = may_be and is_stuck(series, members_by_time[series.target_id], stuck_policy)
        statuses.append(replace(one, hot=is_hot, stuck=stuck))
    return tuple(statuses)


def _evaluate_partition(
    series: PartitionSeries, members_by_time: Mapping[int, bool], policy: Policy, now_ms: int
) -> PartitionStatus:
    newest = series.newest()
    if newest is None or newest.incarnation != series.incarnation:
        return PartitionStatus(series.target_id, series.partition, Status.UNKNOWN, StatusRule.NO_SAMPLE)
    window = build_window(series, policy)
    points = window.points
    status, rule = (
        (Status.UNKNOWN, StatusRule.STALE)
        if now_ms - newest.at_ms > policy.stale_after_ms
        else _apply_rules(window, members_by_time)
    )
    stall_start = find_stall_start(points)
    # Where messages are lost, the position follows the log start without a commit.
    steps = [
        newer.sample.position - older.sample.position
        for older, newer in pairwise(points)
        if not is_commit_unchanged(older, newer)
    ]
    return PartitionStatus(
        target_id=series.target_id,
        partition=series.partition,
        status=status,
        rule=rule,
        at_ms=newest.at_ms,
        lag=window.lags[-1],
        position=newest.sample.position,
        start_ms=points[0].at_ms,
        start_lag=window.lags[0],
        commit_delta=sum(steps),
        advance_count=sum(step > 0 for step in steps),
        stalled_since_ms=points[stall_start].at_ms if stall_start < len(points) - 1 else None,
        may_have_stalled_before=stall_start == 0 and not window.start_known,
        uncommitted=newest.has(Flag.UNCOMMITTED),
        lost=newest.sample.lost,
    )


def _apply_rules(window: StatusWindow, members_by_time: Mapping[int, bool]) -> tuple[Status, StatusRule]:
    """The status of a fresh partition, by the first rule that applies.

    1. OK: no lag at the newest sample, or `latest` counts none because there is no commit.
    2. REWIND: the commit moved backwards and has not caught up.
    3. OK: no lag at some sample of the window.
    4. OK: the samples are short because the partition, or the log after a reset, began there.
    5. STALL: the samples cover the window, the commit did not move, and a member was known at every sample. Burrow
       requires repeated commits of one offset instead.
    6. STOP: as 5, but at some sample no member was known. Burrow requires the absence of commits instead.
    7. OK: lag fell between two samples, and the commit advanced.
    8. WARN: the samples cover the window, the commit advanced, and lag never fell between two samples.
    9. Unknown: the history is too short, or has a gap.
    """
    points, lags = window.points, window.lags
    if has_rewound(window) and lags[-1]:
        return Status.REWIND, StatusRule.REWOUND
    ok_rule = _find_ok_rule(window)
    if ok_rule is not None:
        return Status.OK, ok_rule
    if not window.covered:
        return Status.UNKNOWN, StatusRule.TOO_SHORT
    if find_stall_start(points) > 0:
        return Status.WARN, StatusRule.LAG_NEVER_FELL
    had_members = all(members_by_time[point.at_ms] for point in points)
    return Status.STALL if had_members else Status.STOP, StatusRule.NO_PROGRESS


def _find_ok_rule(window: StatusWindow) -> StatusRule | None:
    """The rule of 1, 3, 4 and 7 that applies."""
    points, lags = window.points, window.lags
    rules = (
        (StatusRule.NO_COMMIT, lags[-1] == 0 and points[-1].has(Flag.UNCOMMITTED) and points[-1].sample.lag > 0),
        (StatusRule.NO_LAG, lags[-1] == 0),
        (StatusRule.CAUGHT_UP, 0 in lags),
        (StatusRule.JUST_BEGUN, window.start_known and not window.covered),
        (StatusRule.LAG_FALLS, find_stall_start(points) > 0 and any(newer < older for older, newer in pairwise(lags))),
    )
    return next((rule for rule, holds in rules if holds), None)


def find_hot_partitions(
    series_set: MonitorSeries, policy: Policy, window_ms: int, now_ms: int
) -> frozenset[tuple[int, int]]:
    """(target id, partition) of the partitions that have far more lag than the others of their topic.

    1. Fresh partitions of one topic's current incarnation are compared, at least two, by their average lag over the window.
    2. Hot is one whose lag is above `lagThreshold` now and on average (500 where the threshold counts seconds), and
       whose average is at least 5 times the average of the topic's other partitions.
    """
    level = policy.lag_threshold if policy.metric is Metric.LAG else DEFAULT_LAG_THRESHOLD
    averages: dict[int, dict[int, float]] = {}
    above: set[tuple[int, int]] = set()
    for series in series_set.series:
        newest = series.newest()
        if newest is None or newest.incarnation != series.incarnation or now_ms - newest.at_ms > policy.stale_after_ms:
            continue
        begin = newest.at_ms - window_ms
        lags = [
            compute_lag(p.sample, policy)
            for p in series.points
            if p.at_ms >= begin and p.incarnation == series.incarnation
        ]
        average = sum(lags) / len(lags)
        averages.setdefault(series.target_id, {})[series.partition] = average
        if min(lags[-1], average) > level:
            above.add((series.target_id, series.partition))
    hot = set()
    for target, partition in above:
        by_partition = averages[target]
        others = sum(by_partition.values()) - by_partition[partition]
        if len(by_partition) > 1 and by_partition[partition] * (len(by_partition) - 1) >= HOT_FACTOR * others:
            hot.add((target, partition))
    return frozenset(hot)


@dataclass(frozen=True, slots=True)
class StatusWindow:
    """The samples of the window, back to the first gap or new log.

    `covered`: they span the window. `start_known`: the run is known to have started with the first of them.
    """

    points: Sequence[SamplePoint]
    before: SamplePoint | None
    lags: Sequence[int]
    covered: bool
    start_known: bool


def compute_window_ms(policy: Policy) -> int:
    """The length of the window: the longest of ten sampling intervals, two greatest gaps, and two minutes."""
    return max(WINDOW_INTERVALS * policy.sampling_ms, 2 * policy.max_gap_ms, MIN_WINDOW_MS)


def build_window(series: PartitionSeries, policy: Policy) -> StatusWindow:
    """The trailing samples up to the last one at or before the window's beginning, of one topic id, without a gap."""
    points = series.points
    lags = [compute_lag(point.sample, policy) for point in points]
    lag_points = build_lag_points(points, lambda point: compute_lag(point.sample, policy), 0, policy.max_gap_ms)
    begin = points[-1].at_ms - compute_window_ms(policy)
    first = len(points) - 1
    while first and points[first].at_ms > begin and not _is_new_log(points[first - 1], points[first]):
        if not lag_points[first].joined:
            break
        first -= 1
    before = points[first - 1] if first else None
    return StatusWindow(
        points=points[first:],
        before=before,
        lags=lags[first:],
        covered=points[first].at_ms <= begin,
        start_known=lag_points[first].begins or (before is not None and _is_new_log(before, points[first])),
    )


def _is_new_log(older: SamplePoint, newer: SamplePoint) -> bool:
    """Whether a new log begins with the newer sample: a new incarnation, or a reset."""
    return older.incarnation != newer.incarnation or newer.has(Flag.RESET_BEGINS)


def find_stall_start(points: Sequence[SamplePoint]) -> int:
    """The index of the first sample since which the commit did not move."""
    first = len(points) - 1
    while first and is_commit_unchanged(points[first - 1], points[first]):
        first -= 1
    return first


def has_rewound(window: StatusWindow) -> bool:
    points = window.points
    for number, point in enumerate(points):
        if not point.has(Flag.REWIND):
            continue
        older = points[number - 1] if number else window.before
        if older is None or all(later.sample.position < older.sample.position for later in points[number:]):
            return True
    return False
