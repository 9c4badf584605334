"""The total of a monitor's partitions over time, with gaps: sums, lower bounds, and bridged gaps.

Part of the reference of the verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from lagscale.domain.lag.samples import Flag
from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.islands import LagPoint, can_bound_lag, compute_lower_bound
from lagscale.domain.verdict.series import MonitorSeries, PartitionSeries, SamplePoint

LagFunction = Callable[[PartitionSeries, SamplePoint], int]


def build_totals(series_set: MonitorSeries, lag: LagFunction, level: int, policy: Policy) -> list[LagPoint]:
    """The totals that count against a level, oldest first.

    1. At the time of every round the newest sample of each partition in scope counts, if no older than the greatest
       gap.
    2. A partition first seen later counts 0.
    3. Any other without such a sample makes the sum a lower bound: it counts above the level, else the time is
       skipped.
    4. Two neighboring totals further apart than the greatest gap are joined when the bounds of all partitions,
       each at least 0, add up to more than the level.
    5. The start of a run is known where every partition in scope is first seen, or not before it: one that is missing may
       have had lag before.
    """
    totals: list[LagPoint] = []
    partitions = series_set.select_lookback()
    for at_ms in series_set.times:
        counted, is_complete = _select_counted(partitions, at_ms, policy.max_gap_ms)
        total = sum(lag(series, point) for series, point in counted)
        if not is_complete and total <= level:
            continue
        joined = False
        if totals:
            before = totals[-1].at_ms
            joined = (
                at_ms - before <= policy.max_gap_ms
                or sum(_bound_series(series, before, at_ms, lag, policy.max_gap_ms) for series in partitions) > level
            )
        begins = is_complete and all(point.at_ms == at_ms and point.has(Flag.FIRST_SEEN) for _, point in counted)
        totals.append(LagPoint(at_ms, total, joined, begins))
    return totals


def _select_counted(
    partitions: Sequence[PartitionSeries], at_ms: int, max_gap_ms: int
) -> tuple[list[tuple[PartitionSeries, SamplePoint]], bool]:
    """The samples that count at an instant, and whether they are the whole sum."""
    counted, is_complete = [], True
    for series in partitions:
        point = series.newest(at_ms)
        if point is not None and at_ms - point.at_ms <= max_gap_ms:
            counted.append((series, point))
        elif not series.first_seen_after(at_ms):
            is_complete = False
    return counted, is_complete


def _bound_series(series: PartitionSeries, from_ms: int, to_ms: int, lag: LagFunction, max_gap_ms: int) -> int:
    """The lower bound of a partition's lag between two instants; 0 where its samples prove nothing.

    A partition that is not counted at the end has no sample within the greatest gap: it proves nothing.
    """
    first, last = series.newest(from_ms), series.newest(to_ms)
    if first is None or last is None or to_ms - last.at_ms > max_gap_ms:
        return 0
    between = [point for point in series.points if first.at_ms <= point.at_ms <= last.at_ms]
    if not all(can_bound_lag(older, newer) for older, newer in pairwise(between)):
        return 0
    return max(0, compute_lower_bound(first, last, lag(series, last)))
