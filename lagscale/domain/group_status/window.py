"""The trailing samples of a partition that its state is told from, and what moved in them. For `conditions`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lagscale.domain.lag.samples import Flag
from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.islands import readings_of
from lagscale.domain.verdict.series import Point, Series, lag_of
from lagscale.domain.verdict.stuck import unmoved

#: A state is told over so many sampling intervals, as Burrow's over ten commits, and over at least this time.
WINDOW_INTERVALS: Final = 10
LEAST_WINDOW_MS: Final = 120_000


@dataclass(frozen=True, slots=True)
class Stretch:
    """The samples that a state is told from: the window, as far back as nothing breaks it.

    `covered`: they span the window. `begun`: what is told is known to have begun with the first of them.
    """

    points: Sequence[Point]
    before: Point | None
    lags: Sequence[int]
    covered: bool
    begun: bool


def window_ms(policy: Policy) -> int:
    """Over how long a state is told: ten sampling intervals, two greatest gaps, or two minutes, the longest."""
    return max(WINDOW_INTERVALS * policy.sampling_ms, 2 * policy.max_gap_ms, LEAST_WINDOW_MS)


def stretch_of(series: Series, policy: Policy) -> Stretch:
    """The trailing samples up to the last one at or before the window's beginning, of one topic id, without a gap."""
    points = series.points
    lags = [lag_of(point.sample, policy) for point in points]
    readings = readings_of(points, lambda point: lag_of(point.sample, policy), 0, policy.max_gap_ms)
    begin = points[-1].at_ms - window_ms(policy)
    first = len(points) - 1
    while first and points[first].at_ms > begin and not _parted(points[first - 1], points[first]):
        if not readings[first].joined:
            break
        first -= 1
    before = points[first - 1] if first else None
    return Stretch(
        points=points[first:],
        before=before,
        lags=lags[first:],
        covered=points[first].at_ms <= begin,
        begun=readings[first].begins or (before is not None and _parted(before, points[first])),
    )


def _parted(older: Point, newer: Point) -> bool:
    """Whether another log begins with the newer sample: a new topic id, or one that was reset."""
    return older.epoch != newer.epoch or newer.has(Flag.RESET_BEGINS)


def still_from(points: Sequence[Point]) -> int:
    """The place of the first sample from which on the commit did not move."""
    first = len(points) - 1
    while first and unmoved(points[first - 1], points[first]):
        first -= 1
    return first


def went_back(stretch: Stretch) -> bool:
    points = stretch.points
    for number, point in enumerate(points):
        if not point.has(Flag.REWIND):
            continue
        older = points[number - 1] if number else stretch.before
        if older is None or all(later.sample.position < older.sample.position for later in points[number:]):
            return True
    return False
