"""Islands: unbroken runs of breaches, what bridges a gap inside them, and whether their start is known.

Part of the reference of the verdict; partitions and totals go through the same rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lagscale.domain.lag.samples import Flag
from lagscale.domain.lag.time_lag import TimeLag
from lagscale.domain.verdict.contract import Island
from lagscale.domain.verdict.series import SamplePoint


@dataclass(frozen=True, slots=True)
class LagPoint:
    """One lag of a partition or of the total, in time order with its neighbors.

    Attributes:
        joined: no gap lies between this point and the previous one.
        begins: anything that starts here has a known start (first seen, or a reset).
        cuts: no earlier point belongs to the same island (a reset).
    """

    at_ms: int
    lag: int
    joined: bool
    begins: bool = False
    cuts: bool = False


@dataclass(frozen=True, slots=True)
class TrailingIsland:
    """The run of breaches that contains the newest point."""

    since_ms: int
    until_ms: int
    lag: int
    start_known: bool

    @property
    def span_ms(self) -> int:
        """Last time minus first time: k samples prove k - 1 intervals."""
        return self.until_ms - self.since_ms

    def locate(self, target_id: int | None = None, partition: int | None = None) -> Island:
        """The island of this partition; of the total without one."""
        return Island(target_id, partition, self.lag, self.since_ms, self.span_ms, self.start_known)

    def lasted(self, for_ms: int) -> bool:
        """Whether it has lasted that long."""
        return self.span_ms >= for_ms

    def may_have_lasted(self, for_ms: int) -> bool:
        """Whether it is shorter, but started at an unknown time before."""
        return not self.start_known and not self.lasted(for_ms)


def find_trailing_island(lag_points: Sequence[LagPoint], level: int) -> TrailingIsland | None:
    """The trailing island above a level; None when the newest point is not a breach.

    1. A breach is strictly above the level.
    2. The island goes back over neighboring breaches as long as no gap lies between two of them.
    3. A reset begins a new island.
    4. Its start is known when it begins with a reset or a partition first seen, or when the point before it, without
       a gap, is not a breach; otherwise it is unknown.
    """
    if not lag_points or lag_points[-1].lag <= level:
        return None
    first = len(lag_points) - 1
    while first > 0 and lag_points[first].joined and not lag_points[first].cuts and lag_points[first - 1].lag > level:
        first -= 1
    start = lag_points[first]
    # A point before the start, without a gap or a reset in between, is not a breach.
    start_known = start.begins or start.cuts or (first > 0 and start.joined)
    return TrailingIsland(start.at_ms, lag_points[-1].at_ms, lag_points[-1].lag, start_known)


def can_bound_lag(older: SamplePoint, newer: SamplePoint) -> bool:
    """Whether two neighboring samples can prove anything of the time between them.

    Neither end nor position fell, both are committed or both are not, and no reset, rewind or new topic id lies
    between.
    """
    return (
        older.incarnation == newer.incarnation
        and older.has(Flag.UNCOMMITTED) == newer.has(Flag.UNCOMMITTED)
        and not newer.has(Flag.RESET | Flag.REWIND)
        and newer.sample.end >= older.sample.end
        and newer.sample.position >= older.sample.position
    )


def compute_lower_bound(older: SamplePoint, newer: SamplePoint, newer_lag: int) -> int:
    """The lower bound of the lag between two samples: commits only grow."""
    return newer_lag - (newer.sample.end - older.sample.end)


def build_lag_points(
    points: Sequence[SamplePoint], lag: Callable[[SamplePoint], int], level: int, max_gap_ms: int
) -> list[LagPoint]:
    """A partition's samples as points; two samples further apart than the greatest gap are joined by the bound."""
    lags = [lag(point) for point in points]
    return _join_points(
        points, lags, max_gap_ms, lambda older, newer, lag: compute_lower_bound(older, newer, lag) > level
    )


def build_time_lag_points(
    points: Sequence[SamplePoint], time_lags: Sequence[TimeLag], level_ms: int, max_gap_ms: int
) -> list[LagPoint]:
    """A partition's time lags as points, by their lower bounds.

    1. What is unread at the newer of two samples was unread at the older one, and had waited for less by the time
       between; this joins them over a gap.
    2. "At least" with less than the level proves nothing, so what starts after it has an unknown start.
    """
    lag_points = _join_points(
        points,
        [time_lag.lower_ms for time_lag in time_lags],
        max_gap_ms,
        lambda older, newer, lower: lower - (newer.at_ms - older.at_ms) > level_ms,
    )
    return [
        replace(
            lag_point, joined=lag_point.joined and not (number and is_undetermined(time_lags[number - 1], level_ms))
        )
        for number, lag_point in enumerate(lag_points)
    ]


def is_undetermined(time_lag: TimeLag, level_ms: int) -> bool:
    """Whether a time lag may be above a level though its lower bound is not."""
    return time_lag.upper_ms is None and time_lag.lower_ms <= level_ms


def _join_points(
    points: Sequence[SamplePoint],
    lags: Sequence[int],
    max_gap_ms: int,
    stayed_above: Callable[[SamplePoint, SamplePoint, int], bool],
) -> list[LagPoint]:
    lag_points: list[LagPoint] = []
    for index, (point, lag) in enumerate(zip(points, lags, strict=True)):
        joined = False
        if index:
            before = points[index - 1]
            joined = point.at_ms - before.at_ms <= max_gap_ms or (
                can_bound_lag(before, point) and stayed_above(before, point, lag)
            )
        begins = point.has(Flag.FIRST_SEEN)
        lag_points.append(LagPoint(point.at_ms, lag, joined, begins, point.has(Flag.RESET_BEGINS)))
    return lag_points
