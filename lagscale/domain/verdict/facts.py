"""What the rules of the verdict look at: fresh and missing partitions, stuck ones, trailing islands, and totals.

Part of the reference of the verdict (`persistence`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lagscale.domain.lag.time_lag import TimeLag, ends_of, time_lags
from lagscale.domain.policy.policy import Metric, Policy
from lagscale.domain.verdict.activity import Activity, activity
from lagscale.domain.verdict.islands import Reading, Trailing, readings_of, time_readings_of, trailing
from lagscale.domain.verdict.series import Measured, Point, Series, lag_of
from lagscale.domain.verdict.stuck import is_stuck
from lagscale.domain.verdict.totals import counted_totals

#: Target id and partition.
Name = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Trail:
    """The trailing island of one fresh partition."""

    series: Series
    run: Trailing


@dataclass(frozen=True, slots=True)
class Picture:
    """What the rules of the verdict look at.

    Attributes:
        fresh: the partitions that are fresh, with their newest samples.
        waiting: of each of these, for how long its oldest unread message has waited.
        stuck: those whose commit stands still under a running group.
        missing: partitions in scope that are not.
        unmeasured: targets without any round; they count as not fresh.
        trails: trailing islands of fresh partitions.
        totals: those that count for the verdict.
        total_told: the newest counted total exists and is fresh.
        total_run: the trailing run of totals, if that total is a breach.
    """

    measured: Measured
    members: int | None
    fresh: tuple[tuple[Series, Point], ...]
    waiting: Mapping[Name, TimeLag]
    stuck: frozenset[Name]
    missing: int
    unmeasured: bool
    trails: tuple[Trail, ...]
    totals: tuple[Reading, ...]
    total_told: bool
    total_run: Trailing | None
    activity: Activity

    @property
    def whole(self) -> bool:
        """Whether everything that is listed is known and fresh."""
        return not self.missing and not self.unmeasured


def picture_of(seen: Measured, now_ms: int, policy: Policy) -> Picture:
    """Lay out what was measured as of T, for an instant that decides freshness."""
    fresh, trails, waiting = [], [], {}
    stuck = _stuck(seen, policy)
    for whole, series in zip(seen.series, seen.in_lookback(), strict=True):
        newest = series.newest()
        if newest is None or now_ms - newest.at_ms > policy.stale_after_ms:
            continue
        fresh.append((series, newest))
        waits = _waits(seen, whole, policy)
        waiting[name_of(series)] = waits[-1]
        run = _run(series, waits[-len(series.points) :], policy)
        if run is not None and name_of(series) not in stuck:
            trails.append(Trail(series, run))

    def lag(series: Series, point: Point) -> int:
        return 0 if name_of(series) in stuck else lag_of(point.sample, policy)

    totals = counted_totals(seen, lag, policy.lag_threshold, policy)
    told = bool(totals) and now_ms - totals[-1].at_ms <= policy.stale_after_ms
    members = seen.members()
    return Picture(
        measured=seen,
        members=members,
        fresh=tuple(fresh),
        waiting=waiting,
        stuck=stuck,
        missing=len(seen.series) - len(fresh),
        unmeasured=any(not rounds for rounds in seen.rounds.values()),
        trails=tuple(trails),
        totals=tuple(totals),
        total_told=told,
        total_run=trailing(totals, policy.lag_threshold) if told else None,
        activity=activity(seen, members, now_ms, policy),
    )


def _stuck(seen: Measured, policy: Policy) -> frozenset[Name]:
    return frozenset(
        name_of(series) for series in seen.in_lookback() if is_stuck(series, seen.running(series.target_id), policy)
    )


def name_of(series: Series) -> Name:
    """By which a partition is called in a judgement."""
    return series.target_id, series.partition


def _waits(seen: Measured, series: Series, policy: Policy) -> list[TimeLag]:
    """The time lag at each sample of a partition."""
    first_ms = series.points[0].at_ms
    ends = ends_of((this for this in seen.rounds[series.target_id] if this.at_ms >= first_ms), series.partition)
    lagging = (lag_of(point.sample, policy) > 0 for point in series.points)
    return time_lags(
        ends, [point.sample.position if lags else None for point, lags in zip(series.points, lagging, strict=True)]
    )


def _run(series: Series, waits: Sequence[TimeLag], policy: Policy) -> Trailing | None:
    """The partition's trailing island, of messages or of milliseconds."""
    if policy.metric is Metric.TIME_LAG:
        level_ms = policy.lag_threshold * 1000
        return trailing(time_readings_of(series.points, waits, level_ms, policy.max_gap_ms), level_ms)

    def lag(point: Point) -> int:
        return lag_of(point.sample, policy)

    return trailing(readings_of(series.points, lag, policy.lag_threshold, policy.max_gap_ms), policy.lag_threshold)
