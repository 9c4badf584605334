"""The facts that the rules of the verdict use: fresh, missing and stuck partitions, trailing islands, and totals.

Part of the reference of the verdict (`evaluate`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lagscale.domain.lag.time_lag import TimeLag, collect_ends, compute_time_lags
from lagscale.domain.policy.policy import Metric, Policy
from lagscale.domain.verdict.activity import Activity, judge_activity
from lagscale.domain.verdict.contract import Island
from lagscale.domain.verdict.islands import (
    LagPoint,
    TrailingIsland,
    build_lag_points,
    build_time_lag_points,
    find_trailing_island,
)
from lagscale.domain.verdict.series import MonitorSeries, PartitionSeries, SamplePoint, compute_lag
from lagscale.domain.verdict.stuck import is_stuck
from lagscale.domain.verdict.totals import build_totals

#: Target id and partition.
PartitionId = tuple[int, int]


@dataclass(frozen=True, slots=True)
class PartitionIsland:
    """The trailing island of one fresh partition."""

    series: PartitionSeries
    island: TrailingIsland


@dataclass(frozen=True, slots=True)
class VerdictFacts:
    """The facts that the rules of the verdict use.

    Attributes:
        fresh: the partitions that are fresh, with their newest samples.
        time_lags: the time lag of each of these.
        stuck: partitions without progress although the group has members.
        missing: number of partitions in scope that are not fresh.
        unmeasured: targets without any round; they count as not fresh.
        partition_islands: trailing islands of fresh partitions.
        totals: those that count for the verdict.
        total_is_fresh: the newest counted total exists and is fresh.
        total_island: the trailing run of totals, if that total is a breach.
    """

    series_set: MonitorSeries
    members: int | None
    fresh: tuple[tuple[PartitionSeries, SamplePoint], ...]
    time_lags: Mapping[PartitionId, TimeLag]
    stuck: frozenset[PartitionId]
    missing: int
    unmeasured: bool
    partition_islands: tuple[PartitionIsland, ...]
    totals: tuple[LagPoint, ...]
    total_is_fresh: bool
    total_island: TrailingIsland | None
    activity: Activity

    @property
    def whole(self) -> bool:
        """Whether all listed topics are measured and all partitions fresh."""
        return not self.missing and not self.unmeasured

    def rank_islands(self) -> list[Island]:
        """The islands of the partitions, the longest first, then the highest."""
        ranked = sorted(
            self.partition_islands,
            key=lambda one: (-one.island.span_ms, -one.island.lag, one.series.target_id, one.series.partition),
        )
        return [one.island.locate(one.series.target_id, one.series.partition) for one in ranked]


def collect_facts(series_set: MonitorSeries, now_ms: int, policy: Policy) -> VerdictFacts:
    """Collect the facts as of T; `now_ms` decides freshness."""
    fresh, partition_islands, time_lags = [], [], {}
    stuck = _find_stuck(series_set, policy)
    for whole, series in zip(series_set.series, series_set.select_lookback(), strict=True):
        newest = series.newest()
        if newest is None or now_ms - newest.at_ms > policy.stale_after_ms:
            continue
        fresh.append((series, newest))
        sample_time_lags = _compute_time_lags(series_set, whole, policy)
        time_lags[identify_partition(series)] = sample_time_lags[-1]
        island = _find_island(series, sample_time_lags[-len(series.points) :], policy)
        if island is not None and identify_partition(series) not in stuck:
            partition_islands.append(PartitionIsland(series, island))

    def lag(series: PartitionSeries, point: SamplePoint) -> int:
        return 0 if identify_partition(series) in stuck else compute_lag(point.sample, policy)

    totals = build_totals(series_set, lag, policy.lag_threshold, policy)
    total_is_fresh = bool(totals) and now_ms - totals[-1].at_ms <= policy.stale_after_ms
    members = series_set.members()
    return VerdictFacts(
        series_set=series_set,
        members=members,
        fresh=tuple(fresh),
        time_lags=time_lags,
        stuck=stuck,
        missing=len(series_set.series) - len(fresh),
        unmeasured=any(not rounds for rounds in series_set.rounds.values()),
        partition_islands=tuple(partition_islands),
        totals=tuple(totals),
        total_is_fresh=total_is_fresh,
        total_island=find_trailing_island(totals, policy.lag_threshold) if total_is_fresh else None,
        activity=judge_activity(series_set, members, now_ms, policy),
    )


def _find_stuck(series_set: MonitorSeries, policy: Policy) -> frozenset[PartitionId]:
    return frozenset(
        identify_partition(series)
        for series in series_set.select_lookback()
        if is_stuck(series, series_set.members_by_time(series.target_id), policy)
    )


def identify_partition(series: PartitionSeries) -> PartitionId:
    """The identifier of a partition in a judgment."""
    return series.target_id, series.partition


def _compute_time_lags(series_set: MonitorSeries, series: PartitionSeries, policy: Policy) -> list[TimeLag]:
    """The time lag at each sample of a partition."""
    first_ms = series.points[0].at_ms
    ends = collect_ends(
        (this for this in series_set.rounds[series.target_id] if this.at_ms >= first_ms), series.partition
    )
    lagging = (compute_lag(point.sample, policy) > 0 for point in series.points)
    return compute_time_lags(
        ends, [point.sample.position if lags else None for point, lags in zip(series.points, lagging, strict=True)]
    )


def _find_island(series: PartitionSeries, sample_time_lags: Sequence[TimeLag], policy: Policy) -> TrailingIsland | None:
    """The partition's trailing island, of messages or of milliseconds."""
    if policy.metric is Metric.TIME_LAG:
        level_ms = policy.lag_threshold * 1000
        return find_trailing_island(
            build_time_lag_points(series.points, sample_time_lags, level_ms, policy.max_gap_ms), level_ms
        )

    def lag(point: SamplePoint) -> int:
        return compute_lag(point.sample, policy)

    return find_trailing_island(
        build_lag_points(series.points, lag, policy.lag_threshold, policy.max_gap_ms), policy.lag_threshold
    )
