"""The total of a monitor's partitions over time, with holes: sums, lower bounds, and what bridges a gap.

Part of the reference of the verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from lagscale.domain.lag.samples import Flag
from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.islands import Reading, bound, undisturbed
from lagscale.domain.verdict.series import Measured, Point, Series

Lag = Callable[[Series, Point], int]


def counted_totals(measured: Measured, lag: Lag, level: int, policy: Policy) -> list[Reading]:
    """The totals that count against a level, oldest first.

    1. At the time of every round the newest sample of each partition in scope counts, if no older than the greatest
       gap.
    2. A partition born later counts 0.
    3. Any other without such a sample makes the sum a lower bound: it counts above the level, else the time is passed
       over.
    4. Two neighbouring totals further apart than the greatest gap are joined when the bounds of all partitions,
       each at least 0, add up to more than the level.
    5. A run begins where every partition that is counted is born.
    """
    totals: list[Reading] = []
    partitions = measured.in_lookback()
    for at_ms in measured.times:
        counted, whole = _counted(partitions, at_ms, policy.max_gap_ms)
        total = sum(lag(series, point) for series, point in counted)
        if not whole and total <= level:
            continue
        joined = False
        if totals:
            before = totals[-1].at_ms
            joined = (
                at_ms - before <= policy.max_gap_ms
                or sum(_bound(series, before, at_ms, lag, policy.max_gap_ms) for series in partitions) > level
            )
        begins = all(point.at_ms == at_ms and point.has(Flag.BORN) for _, point in counted)
        totals.append(Reading(at_ms, total, joined, begins))
    return totals


def _counted(partitions: Sequence[Series], at_ms: int, max_gap_ms: int) -> tuple[list[tuple[Series, Point]], bool]:
    """The samples that count at an instant, and whether they are the whole sum."""
    counted, whole = [], True
    for series in partitions:
        point = series.newest(at_ms)
        if point is not None and at_ms - point.at_ms <= max_gap_ms:
            counted.append((series, point))
        elif not series.born_after(at_ms):
            whole = False
    return counted, whole


def _bound(series: Series, from_ms: int, to_ms: int, lag: Lag, max_gap_ms: int) -> int:
    """What the partition's lag was never below between two instants; 0 where its samples prove nothing.

    A partition that is not counted at the end was not seen for longer than the greatest gap: it proves nothing.
    """
    first, last = series.newest(from_ms), series.newest(to_ms)
    if first is None or last is None or to_ms - last.at_ms > max_gap_ms:
        return 0
    between = [point for point in series.points if first.at_ms <= point.at_ms <= last.at_ms]
    if not all(undisturbed(older, newer) for older, newer in pairwise(between)):
        return 0
    return max(0, bound(first, last, lag(series, last)))
