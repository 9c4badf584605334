"""Whether a monitor's workload has anything to do: backlog, work, and the claim that there is neither.

Part of the reference of the verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from lagscale.domain.lag.samples import Flag
from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.islands import trailing
from lagscale.domain.verdict.series import Measured, Series, activity_lag_of
from lagscale.domain.verdict.totals import counted_totals

_UNMOVING = Flag.UNCOMMITTED | Flag.LOST | Flag.RESET


@dataclass(frozen=True, slots=True)
class Activity:
    """What the samples say of activity apart from a sustained lag.

    Attributes:
        backlog: messages wait while the group has members, or have for `activationSustainSeconds`.
        work: a position advanced within `workSeconds`.
        idle: that there is neither was measured.
    """

    backlog: bool
    work: bool
    idle: bool


def activity(measured: Measured, members: int | None, now_ms: int, policy: Policy) -> Activity:
    """Judge activity at T.

    1. *Backlog* needs a fresh newest total above `activationLagThreshold`, and members (not known counts as members)
       or an unbroken run of `activationSustainSeconds`.
    2. *Work* is a position that advanced under the topic's present id within `workSeconds`, of a topic that is absent
       since as well.
    3. *Idle* is a claim: neither backlog nor work, no open run that may have lasted, a fresh newest total, and each
       partition in scope sampled under the topic's present id at or before T - `workSeconds`, or born under it.
    """
    level = policy.activation_lag_threshold
    totals = counted_totals(measured, lambda _, point: activity_lag_of(point.sample, policy), level, policy)
    told = bool(totals) and now_ms - totals[-1].at_ms <= policy.stale_after_ms
    run = trailing(totals, level) if told else None
    backlog = run is not None and (members is None or members >= 1 or run.lasted(policy.activation_sustain_ms))
    from_ms = measured.at_ms - policy.work_ms
    work = any(_worked(series, from_ms) for series in measured.series + measured.gone)
    claimed = told and all(_known_at(series, from_ms) for series in measured.series)
    open_run = run is not None and run.may_have_lasted(policy.activation_sustain_ms)
    return Activity(backlog, work, not backlog and not work and claimed and not open_run)


def _worked(series: Series, after_ms: int) -> bool:
    """Whether the position advanced between two neighbouring samples of the present id, the later after an instant."""
    return any(
        newer.at_ms > after_ms
        and older.epoch == newer.epoch == series.epoch
        and not older.has(_UNMOVING)
        and not newer.has(_UNMOVING)
        and newer.sample.position > older.sample.position
        for older, newer in pairwise(series.points)
    )


def _known_at(series: Series, at_ms: int) -> bool:
    """Whether a sample of the present id lies at or before an instant, or the partition was born since."""
    return any(
        point.epoch == series.epoch and (point.at_ms <= at_ms or point.has(Flag.BORN)) for point in series.points
    )
