"""States of a group and of its partitions in the field's words: ok, warn, stop, stall, rewind.

After the evaluation rules of Burrow's wiki, over stored samples. They report only; of what is here nothing changes a
verdict. Stored samples have offsets but no times of commits, so each rule says what it reads in their place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import Final

from lagscale.domain.group_status.hot_partitions import hot_partitions
from lagscale.domain.group_status.window import Stretch, still_from, stretch_of, went_back, window_ms
from lagscale.domain.lag.rounds import TargetRound
from lagscale.domain.lag.samples import Flag
from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.series import Measured, Series, measured
from lagscale.domain.verdict.stuck import is_stuck, unmoved


class Condition(StrEnum):
    """How a partition or a group fares; the greater, the worse, in the order of `SEVERITY`."""

    OK = "ok"
    UNKNOWN = "unknown"
    WARN = "warn"
    STOP = "stop"
    STALL = "stall"
    REWIND = "rewind"


class Why(StrEnum):
    """Which rule gave a partition its state."""

    NO_SAMPLE = "no_sample"
    STALE = "stale"
    NOTHING_WAITS = "nothing_waits"
    NO_COMMIT = "no_commit"
    WENT_BACK = "went_back"
    CAUGHT_UP = "caught_up"
    JUST_BEGUN = "just_begun"
    TOO_SHORT = "too_short"
    NO_PROGRESS = "no_progress"
    LAG_NEVER_FELL = "lag_never_fell"
    LAG_FALLS = "lag_falls"


#: From good to bad. Unknown hides something worse than ok, and nothing that is proven.
SEVERITY: Final = (
    Condition.OK,
    Condition.UNKNOWN,
    Condition.WARN,
    Condition.STOP,
    Condition.STALL,
    Condition.REWIND,
)


@dataclass(frozen=True, slots=True)
class PartitionCondition:
    """The state of one partition, with the numbers behind it.

    Attributes:
        at_ms, lag, position: of the newest sample, None without one; messages and offset.
        then_ms, lag_then: of the first sample that the state was told from.
        advanced: messages by which the commit advanced since then; negative where it went back.
        moves: between how many neighbouring samples it advanced.
        still_since_ms: the first sample from which on the commit has not moved; None where it moved last.
        since_earlier: whether it may have stood still before that too: what lies before was not looked at.
        lost: messages lost to retention at the newest sample.
        stuck: whether its commit has stood still for `stuckAfterSeconds` while the group had members; where that is
            off, for the window.
        hot: whether it carries far more lag than the topic's other partitions.
    """

    target_id: int
    partition: int
    condition: Condition
    why: Why
    at_ms: int | None = None
    lag: int | None = None
    position: int | None = None
    then_ms: int | None = None
    lag_then: int | None = None
    advanced: int | None = None
    moves: int = 0
    still_since_ms: int | None = None
    since_earlier: bool = False
    uncommitted: bool = False
    lost: int = 0
    stuck: bool = False
    hot: bool = False


@dataclass(frozen=True, slots=True)
class GroupConditions:
    """The state of a monitor's group and of each partition in scope.

    Attributes:
        unmeasured: targets without a fresh round.
        members: as the newest round knows, None when not known.
        at_ms: the time of the newest round, None without one.
    """

    condition: Condition
    partitions: tuple[PartitionCondition, ...]
    unmeasured: tuple[int, ...]
    members: int | None
    at_ms: int | None


def stuck_ms(policy: Policy) -> int:
    """After how long a partition is reported as stuck: `stuckAfterSeconds`, or the window where that is off."""
    return policy.stuck_after_ms or window_ms(policy)


def reach_ms(policy: Policy) -> int:
    """How far behind a target's newest round samples are needed; beside these the last one before."""
    return max(window_ms(policy), stuck_ms(policy)) + policy.max_gap_ms + policy.stale_after_ms


def group_conditions(targets: Mapping[int, Sequence[TargetRound]], policy: Policy, now_ms: int) -> GroupConditions:
    """The states of a monitor's group.

    1. The group's state is the worst of its partitions'.
    2. Without a partition, or with a target that was not measured lately, it is at best unknown.

    Args:
        targets: target id -> its rounds of at least `reach_ms`, and the one before; none where there is none.
        policy: gives the window, freshness, and what an uncommitted partition's lag is.
        now_ms: the instant at which samples are fresh or not.
    """
    found = measured(targets, policy, None)
    if found is None:
        return GroupConditions(Condition.UNKNOWN, (), tuple(sorted(targets)), None, None)
    unmeasured = tuple(
        target
        for target, rounds in sorted(found.rounds.items())
        if not rounds or now_ms - rounds[-1].at_ms > policy.stale_after_ms
    )
    partitions = _partitions(found, policy, now_ms)
    states = [one.condition for one in partitions] + [Condition.UNKNOWN] * bool(unmeasured)
    return GroupConditions(worst(states), partitions, unmeasured, found.members(), found.at_ms)


def worst(conditions: Iterable[Condition]) -> Condition:
    """The worst of some states; unknown where there is none."""
    return max(conditions, key=SEVERITY.index, default=Condition.UNKNOWN)


def _partitions(found: Measured, policy: Policy, now_ms: int) -> tuple[PartitionCondition, ...]:
    running = {target: found.running(target) for target in found.rounds}
    hot = hot_partitions(found, policy, window_ms(policy), now_ms)
    asked = replace(policy, stuck_after_ms=stuck_ms(policy))
    told = []
    for series in found.series:
        one = _told(series, running[series.target_id], policy, now_ms)
        is_hot = (series.target_id, series.partition) in hot
        # Where the commit moved last, or nothing waits, there is nothing to look at.
        may_be = bool(one.lag) and one.still_since_ms is not None
        stuck = may_be and is_stuck(series, running[series.target_id], asked)
        told.append(replace(one, hot=is_hot, stuck=stuck))
    return tuple(told)


def _told(series: Series, running: Mapping[int, bool], policy: Policy, now_ms: int) -> PartitionCondition:
    newest = series.newest()
    if newest is None or newest.epoch != series.epoch:
        return PartitionCondition(series.target_id, series.partition, Condition.UNKNOWN, Why.NO_SAMPLE)
    stretch = stretch_of(series, policy)
    points = stretch.points
    condition, why = (
        (Condition.UNKNOWN, Why.STALE) if now_ms - newest.at_ms > policy.stale_after_ms else _judged(stretch, running)
    )
    still = still_from(points)
    # Where messages are lost, the position follows the log start and nobody committed.
    steps = [
        newer.sample.position - older.sample.position for older, newer in pairwise(points) if not unmoved(older, newer)
    ]
    return PartitionCondition(
        target_id=series.target_id,
        partition=series.partition,
        condition=condition,
        why=why,
        at_ms=newest.at_ms,
        lag=stretch.lags[-1],
        position=newest.sample.position,
        then_ms=points[0].at_ms,
        lag_then=stretch.lags[0],
        advanced=sum(steps),
        moves=sum(step > 0 for step in steps),
        still_since_ms=points[still].at_ms if still < len(points) - 1 else None,
        since_earlier=still == 0 and not stretch.begun,
        uncommitted=newest.has(Flag.UNCOMMITTED),
        lost=newest.sample.lost,
    )


def _judged(stretch: Stretch, running: Mapping[int, bool]) -> tuple[Condition, Why]:
    """The state of a fresh partition; the first rule that holds.

    1. OK: nothing waits at the newest sample, or `latest` counts nothing because there is no commit.
    2. REWIND: the commit went back and has not reached again where it was.
    3. OK: nothing waited at some sample of the stretch.
    4. OK: the stretch is short because the partition, or the log after a reset, began there.
    5. STALL: the stretch covers the window, the commit did not move, and a member was known at every sample. Burrow
       sees the same offset committed again; here somebody is there who could have committed.
    6. STOP: as 5, but at some sample no member was known. Burrow sees no commits any more.
    7. OK: lag fell between two samples, and the commit advanced.
    8. WARN: the stretch covers the window, the commit advanced, and lag never fell between two samples.
    9. Unknown: the history is too short, or a gap lies in it.
    """
    points, lags = stretch.points, stretch.lags
    if went_back(stretch) and lags[-1]:
        return Condition.REWIND, Why.WENT_BACK
    harmless = _harmless(stretch)
    if harmless is not None:
        return Condition.OK, harmless
    if not stretch.covered:
        return Condition.UNKNOWN, Why.TOO_SHORT
    if still_from(points) > 0:
        return Condition.WARN, Why.LAG_NEVER_FELL
    attended = all(running[point.at_ms] for point in points)
    return Condition.STALL if attended else Condition.STOP, Why.NO_PROGRESS


def _harmless(stretch: Stretch) -> Why | None:
    """By which of rules 1, 3, 4 and 7 all is well."""
    points, lags = stretch.points, stretch.lags
    rules = (
        (Why.NO_COMMIT, lags[-1] == 0 and points[-1].has(Flag.UNCOMMITTED) and points[-1].sample.lag > 0),
        (Why.NOTHING_WAITS, lags[-1] == 0),
        (Why.CAUGHT_UP, 0 in lags),
        (Why.JUST_BEGUN, stretch.begun and not stretch.covered),
        (Why.LAG_FALLS, still_from(points) > 0 and any(newer < older for older, newer in pairwise(lags))),
    )
    return next((why for why, holds in rules if holds), None)
