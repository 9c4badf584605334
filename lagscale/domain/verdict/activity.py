"""Activity of a monitor: backlog, progress, or idle. Part of the reference of the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from lagscale.domain.lag.samples import WITHOUT_PROGRESS, Flag
from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.islands import find_trailing_island
from lagscale.domain.verdict.series import MonitorSeries, PartitionSeries, compute_activity_lag
from lagscale.domain.verdict.totals import build_totals


@dataclass(frozen=True, slots=True)
class Activity:
    """Activity apart from sustained lag.

    Attributes:
        backlog: unread messages while the group has members, or for `activationSustainSeconds`.
        progress: a position advanced within `workSeconds`.
        idle: measured absence of both.
    """

    backlog: bool
    progress: bool
    idle: bool


def judge_activity(series_set: MonitorSeries, members: int | None, now_ms: int, policy: Policy) -> Activity:
    """Judge activity at T.

    1. *Backlog* needs a fresh newest total above `activationLagThreshold`, and members (unknown counts as members)
       or an unbroken run of `activationSustainSeconds`.
    2. *Progress* is a position that advanced within one topic incarnation within `workSeconds`, even if the topic has
       been absent since.
    3. *Idle* requires: neither backlog nor progress, no run with an unknown start that may have lasted, a fresh newest
       total, and for each partition in scope a sample of the current incarnation at or before T - `workSeconds`, or
       that it was first seen in it.
    """
    level = policy.activation_lag_threshold
    totals = build_totals(series_set, lambda _, point: compute_activity_lag(point.sample, policy), level, policy)
    is_fresh = bool(totals) and now_ms - totals[-1].at_ms <= policy.stale_after_ms
    island = find_trailing_island(totals, level) if is_fresh else None
    backlog = island is not None and (members is None or members >= 1 or island.lasted(policy.activation_sustain_ms))
    from_ms = series_set.at_ms - policy.work_ms
    progress = any(_has_progressed(series, from_ms) for series in series_set.series + series_set.removed)
    is_covered = is_fresh and all(_is_covered(series, from_ms) for series in series_set.series)
    start_unknown = island is not None and island.may_have_lasted(policy.activation_sustain_ms)
    return Activity(backlog, progress, not backlog and not progress and is_covered and not start_unknown)


def _has_progressed(series: PartitionSeries, after_ms: int) -> bool:
    """Whether the position advanced between neighboring samples of the current incarnation, the later after an instant."""
    return any(
        newer.at_ms > after_ms
        and older.incarnation == newer.incarnation == series.incarnation
        and not older.has(WITHOUT_PROGRESS)
        and not newer.has(WITHOUT_PROGRESS)
        and newer.sample.position > older.sample.position
        for older, newer in pairwise(series.points)
    )


def _is_covered(series: PartitionSeries, at_ms: int) -> bool:
    """Whether a sample of the current incarnation is at or before an instant, or the partition was first seen since."""
    return any(
        point.incarnation == series.incarnation and (point.at_ms <= at_ms or point.has(Flag.FIRST_SEEN))
        for point in series.points
    )
