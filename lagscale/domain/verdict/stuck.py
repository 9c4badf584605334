"""Stuck partitions: lag that nobody reads although the group has members.

Part of the reference of the verdict.
"""

from __future__ import annotations

from collections.abc import Mapping

from lagscale.domain.lag.samples import Flag
from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.islands import readings_of
from lagscale.domain.verdict.series import Point, Series, lag_of


def is_stuck(series: Series, running: Mapping[int, bool], policy: Policy) -> bool:
    """Whether the partition's commit has stood still for `stuckAfterSeconds` up to its newest sample.

    1. Every sample of the stretch has lag, and was taken while the group was known to have a member.
    2. Between two neighbours the commit did not move, and no gap lies in which the lag may have been 0.

    Args:
        series: of the partition.
        running: time of each round of its target -> whether a member was known then.
        policy: gives `stuckAfterSeconds`; off means never.
    """
    if not policy.stuck_after_ms or not series.points:
        return False

    def lag(point: Point) -> int:
        return lag_of(point.sample, policy)

    points = series.points
    readings = readings_of(points, lag, 0, policy.max_gap_ms)
    since_ms: int | None = None
    for index in range(len(points) - 1, -1, -1):
        if lag(points[index]) <= 0 or not running[points[index].at_ms]:
            break
        since_ms = points[index].at_ms
        if index and not (readings[index].joined and unmoved(points[index - 1], points[index])):
            break
    return since_ms is not None and points[-1].at_ms - since_ms >= policy.stuck_after_ms


def unmoved(older: Point, newer: Point) -> bool:
    """Whether the commit stood still between two neighbours. Positions of two topic ids cannot be compared."""
    if older.epoch != newer.epoch:
        return False
    if newer.has(Flag.LOST) or (older.has(Flag.UNCOMMITTED) and newer.has(Flag.UNCOMMITTED)):
        return True
    return older.sample.position == newer.sample.position and not older.has(Flag.LOST)
