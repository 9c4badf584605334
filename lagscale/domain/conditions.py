"""States of a group and of its partitions in the field's words: ok, warn, stop, stall, rewind; and hot partitions.

After the evaluation rules of Burrow's wiki, over stored samples. They report only; of what is here nothing changes a
verdict. Stored samples have offsets but no times of commits, so each rule says what it reads in their place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final

from lagscale.domain.islands import readings_of
from lagscale.domain.lag import Flag
from lagscale.domain.measured import Measured, Point, Series, lag_of
from lagscale.domain.policy import Metric, Policy
from lagscale.domain.stuck import unmoved

#: A state is told over so many sampling intervals, as Burrow's over ten commits, and over at least this time.
WINDOW_INTERVALS: Final = 10
LEAST_WINDOW_MS: Final = 120_000
#: A hot partition has at least so many times the lag of the topic's other partitions.
HOT_TIMES: Final = 5
#: The level of a hot partition where the threshold counts seconds: the default of `lagThreshold`.
_HOT_LEVEL: Final = 500


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
    hot: bool = False


@dataclass(frozen=True, slots=True)
class _Stretch:
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


def reach_ms(policy: Policy) -> int:
    """How far behind the newest round samples can change a state; further the sample before that is needed."""
    return window_ms(policy) + policy.max_gap_ms


def partition_conditions(measured: Measured, policy: Policy, now_ms: int) -> tuple[PartitionCondition, ...]:
    """The state of every partition in scope, by target and partition.

    Args:
        measured: the rounds of at least `reach_ms` and one before.
        policy: gives the window, freshness, and what an uncommitted partition's lag is.
        now_ms: the instant at which samples are fresh or not.
    """
    running = {target: measured.running(target) for target in measured.rounds}
    hot = _hot(measured, policy, now_ms)
    return tuple(
        _told(series, running[series.target_id], policy, now_ms, (series.target_id, series.partition) in hot)
        for series in measured.series
    )


def group_condition(partitions: Sequence[PartitionCondition]) -> Condition:
    """The worst state of the partitions; unknown where there is none."""
    return max((one.condition for one in partitions), key=SEVERITY.index, default=Condition.UNKNOWN)


def _told(series: Series, running: Mapping[int, bool], policy: Policy, now_ms: int, hot: bool) -> PartitionCondition:
    newest = series.newest()
    if newest is None or newest.epoch != series.epoch:
        return PartitionCondition(series.target_id, series.partition, Condition.UNKNOWN, Why.NO_SAMPLE)
    stretch = _stretch(series, policy)
    points = stretch.points
    condition, why = (
        (Condition.UNKNOWN, Why.STALE) if now_ms - newest.at_ms > policy.stale_after_ms else _judged(stretch, running)
    )
    still = _still_from(points)
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
        hot=hot,
    )


def _judged(stretch: _Stretch, running: Mapping[int, bool]) -> tuple[Condition, Why]:
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
    if _went_back(stretch) and lags[-1]:
        return Condition.REWIND, Why.WENT_BACK
    harmless = _harmless(stretch)
    if harmless is not None:
        return Condition.OK, harmless
    if not stretch.covered:
        return Condition.UNKNOWN, Why.TOO_SHORT
    if _still_from(points) > 0:
        return Condition.WARN, Why.LAG_NEVER_FELL
    attended = all(running[point.at_ms] for point in points)
    return Condition.STALL if attended else Condition.STOP, Why.NO_PROGRESS


def _harmless(stretch: _Stretch) -> Why | None:
    """By which of rules 1, 3, 4 and 7 all is well."""
    points, lags = stretch.points, stretch.lags
    rules = (
        (Why.NO_COMMIT, lags[-1] == 0 and points[-1].has(Flag.UNCOMMITTED) and points[-1].sample.lag > 0),
        (Why.NOTHING_WAITS, lags[-1] == 0),
        (Why.CAUGHT_UP, 0 in lags),
        (Why.JUST_BEGUN, stretch.begun and not stretch.covered),
        (Why.LAG_FALLS, _still_from(points) > 0 and any(newer < older for older, newer in pairwise(lags))),
    )
    return next((why for why, holds in rules if holds), None)


def _stretch(series: Series, policy: Policy) -> _Stretch:
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
    return _Stretch(
        points=points[first:],
        before=before,
        lags=lags[first:],
        covered=points[first].at_ms <= begin,
        begun=readings[first].begins or (before is not None and _parted(before, points[first])),
    )


def _parted(older: Point, newer: Point) -> bool:
    """Whether another log begins with the newer sample: a new topic id, or one that was reset."""
    return older.epoch != newer.epoch or newer.has(Flag.RESET_BEGINS)


def _still_from(points: Sequence[Point]) -> int:
    """The place of the first sample from which on the commit did not move."""
    first = len(points) - 1
    while first and unmoved(points[first - 1], points[first]):
        first -= 1
    return first


def _went_back(stretch: _Stretch) -> bool:
    points = stretch.points
    for number, point in enumerate(points):
        if not point.has(Flag.REWIND):
            continue
        older = points[number - 1] if number else stretch.before
        if older is None or all(later.sample.position < older.sample.position for later in points[number:]):
            return True
    return False


def _hot(measured: Measured, policy: Policy, now_ms: int) -> frozenset[tuple[int, int]]:
    """Partitions with far more lag than the others of their topic: skewed keys, or one slow reader.

    1. Only fresh partitions of the present topic id are compared, by their average lag over the window.
    2. Hot is who has more than `lagThreshold` now and on average (500 where the threshold counts seconds), and at
       least 5 times the average of the topic's other partitions.
    """
    level = policy.lag_threshold if policy.metric is Metric.LAG else _HOT_LEVEL
    averages: dict[int, dict[int, float]] = {}
    above: set[tuple[int, int]] = set()
    for series in measured.series:
        newest = series.newest()
        if newest is None or newest.epoch != series.epoch or now_ms - newest.at_ms > policy.stale_after_ms:
            continue
        begin = newest.at_ms - window_ms(policy)
        lags = [lag_of(p.sample, policy) for p in series.points if p.at_ms >= begin and p.epoch == series.epoch]
        averages.setdefault(series.target_id, {})[series.partition] = sum(lags) / len(lags)
        if lags[-1] > level:
            above.add((series.target_id, series.partition))
    return frozenset(
        (target, partition)
        for target, found in averages.items()
        for partition, average in found.items()
        if len(found) > 1
        and (target, partition) in above
        and average > level
        and average >= HOT_TIMES * (sum(found.values()) - average) / (len(found) - 1)
    )
