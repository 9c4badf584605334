"""The window of trailing samples from which `rules` determines a status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lagscale.domain.lag.samples import Flag
from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.islands import build_lag_points
from lagscale.domain.verdict.series import PartitionSeries, SamplePoint, compute_lag
from lagscale.domain.verdict.stuck import is_commit_unchanged

#: The window spans so many sampling intervals, as Burrow's spans ten commits, and at least this time.
WINDOW_INTERVALS: Final = 10
MIN_WINDOW_MS: Final = 120_000


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
