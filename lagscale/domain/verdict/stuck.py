"""Stuck partitions: lag without progress although the group has members.

Part of the reference of the verdict; alone because verdict and group status both use it.
"""

from __future__ import annotations

from collections.abc import Mapping

from lagscale.domain.lag.samples import Flag
from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.islands import build_lag_points
from lagscale.domain.verdict.series import PartitionSeries, SamplePoint, compute_lag


def is_stuck(series: PartitionSeries, members_by_time: Mapping[int, bool], policy: Policy) -> bool:
    """Whether the partition's commit did not move for `stuckAfterSeconds` up to its newest sample.

    1. Every sample of that time has lag, and was taken while the group was known to have a member.
    2. Between two neighbors the commit did not move, and there is no gap in which the lag may have been 0.

    Args:
        series: of the partition.
        members_by_time: time of each round of its target -> whether a member was known then.
        policy: gives `stuckAfterSeconds`; off means never.
    """
    if not policy.stuck_after_ms or not series.points:
        return False

    def lag(point: SamplePoint) -> int:
        return compute_lag(point.sample, policy)

    points = series.points
    lag_points = build_lag_points(points, lag, 0, policy.max_gap_ms)
    since_ms: int | None = None
    for index in range(len(points) - 1, -1, -1):
        if lag(points[index]) <= 0 or not members_by_time[points[index].at_ms]:
            break
        since_ms = points[index].at_ms
        if index and not (lag_points[index].joined and is_commit_unchanged(points[index - 1], points[index])):
            break
    return since_ms is not None and points[-1].at_ms - since_ms >= policy.stuck_after_ms


def is_commit_unchanged(older: SamplePoint, newer: SamplePoint) -> bool:
    """Whether the commit did not move between two neighbors; positions of two incarnations cannot be compared."""
    if older.incarnation != newer.incarnation:
        return False
    if newer.has(Flag.LOST) or (older.has(Flag.UNCOMMITTED) and newer.has(Flag.UNCOMMITTED)):
        return True
    return older.sample.position == newer.sample.position and not older.has(Flag.LOST)
