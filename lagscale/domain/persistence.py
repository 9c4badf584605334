"""The reference of the verdict: from raw rounds and a policy to one of three verdicts, a value and an activity.

Clarity before speed. The SQL of the store computes the same; the contract tests hold both against each other, and the
in-memory twin of the store answers by this module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lagscale.domain.activity import Activity, activity
from lagscale.domain.islands import Reading, Trailing, readings_of, trailing
from lagscale.domain.markers import TargetRound
from lagscale.domain.measured import Measured, Point, Series, activity_lag_of, lag_of, measured
from lagscale.domain.policy import HPA_WINDOW_MS, PersistenceScope, Policy
from lagscale.domain.signal import Island, Judgement, Reason, Told, Verdict, capped_value, floor_value, held
from lagscale.domain.totals import counted_totals

Targets = Mapping[int, Sequence[TargetRound]]


@dataclass(frozen=True, slots=True)
class _Trail:
    """The trailing island of one fresh partition."""

    series: Series
    run: Trailing


@dataclass(frozen=True, slots=True)
class _Picture:
    """What the rules of the verdict look at.

    Attributes:
        fresh: the newest samples of the partitions that are fresh.
        missing: partitions in scope that are not.
        unmeasured: targets without any round; they count as not fresh.
        trails: trailing islands of fresh partitions.
        total_told: the newest counted total exists and is fresh.
        total_run: the trailing run of totals, if that total is a breach.
    """

    measured: Measured
    members: int | None
    fresh: tuple[Point, ...]
    missing: int
    unmeasured: bool
    trails: tuple[_Trail, ...]
    total_told: bool
    total_run: Trailing | None
    activity: Activity

    @property
    def whole(self) -> bool:
        """Whether everything that is listed is known and fresh."""
        return not self.missing and not self.unmeasured


def judge(targets: Targets, policy: Policy, *, now_ms: int, upto_ms: int | None = None) -> Judgement:
    """Judge a monitor from the raw rounds of its targets.

    1. *Now* decides freshness and nothing else; everything else is computed at T, the time of the newest round.
    2. *Sustained*: a fresh partition's trailing island (scope total: the total's) has a span of `sustainSeconds`.
       With a partition that is not fresh the value must not fall below what the members stand for; not knowing them,
       the verdict is unknown.
    3. *Calm*: every partition is fresh, none has an island that lasted or may have lasted, and activity can be told.
    4. *Unknown* is everything else, with its first reason.

    Args:
        targets: target id -> its rounds, in any order, doubled or not.
        policy: with every default resolved.
        now_ms: the instant judged, milliseconds since 1970.
        upto_ms: rounds after this do not exist.
    """
    if not targets:
        return Judgement(Verdict.UNKNOWN, Reason.NOTHING_TO_MEASURE, None, None, None, now_ms)
    seen = measured(targets, policy, upto_ms)
    if seen is None:
        return Judgement(Verdict.UNKNOWN, Reason.NO_DATA, None, None, None, now_ms)
    picture = _picture(seen, now_ms, policy)
    verdict, reason = _verdict(picture, now_ms, policy)
    total = sum(lag_of(point.sample, policy) for point in picture.fresh)
    value, active = _answer(verdict, picture, total, policy)
    return Judgement(
        verdict=verdict,
        reason=reason,
        value=value,
        active=active,
        at_ms=seen.at_ms,
        now_ms=now_ms,
        total=total,
        partitions=len(seen.series),
        missing=picture.missing,
        members=picture.members,
        wakes=verdict is Verdict.UNKNOWN and _wakes(picture, policy),
        island=_island(picture, policy),
        absent=seen.without_topic(),
    )


def hold(targets: Targets, policy: Policy, *, now_ms: int, upto_ms: int | None = None) -> Told | None:
    """The held answer, from what would have been judged at every sample time, each with only the samples until then.

    Looks back `holdSeconds` for the last known instant K and 300 s further for the greatest answer before it.
    """
    seen = measured(targets, policy, upto_ms)
    if seen is None or policy.hold_ms == 0:
        return None
    from_ms = now_ms - policy.hold_ms - HPA_WINDOW_MS
    instants = sorted({r.at_ms for rounds in seen.rounds.values() for r in rounds if from_ms <= r.at_ms <= now_ms})
    past = [judge(targets, policy, now_ms=at, upto_ms=at) for at in instants]
    return held((j for j in past if j.verdict is not Verdict.UNKNOWN), seen.members(), now_ms, policy)


def _picture(seen: Measured, now_ms: int, policy: Policy) -> _Picture:
    fresh, trails = [], []
    for series in seen.in_lookback():
        newest = series.newest()
        if newest is None or now_ms - newest.at_ms > policy.stale_after_ms:
            continue
        fresh.append(newest)
        run = trailing(_readings(series, policy), policy.lag_threshold)
        if run is not None:
            trails.append(_Trail(series, run))
    totals = counted_totals(seen, lambda point: lag_of(point.sample, policy), policy.lag_threshold, policy)
    told = bool(totals) and now_ms - totals[-1].at_ms <= policy.stale_after_ms
    members = seen.members()
    return _Picture(
        measured=seen,
        members=members,
        fresh=tuple(fresh),
        missing=len(seen.series) - len(fresh),
        unmeasured=any(not rounds for rounds in seen.rounds.values()),
        trails=tuple(trails),
        total_told=told,
        total_run=trailing(totals, policy.lag_threshold) if told else None,
        activity=activity(seen, members, now_ms, policy),
    )


def _readings(series: Series, policy: Policy) -> list[Reading]:
    def lag(point: Point) -> int:
        return lag_of(point.sample, policy)

    return readings_of(series.points, lag, policy.lag_threshold, policy.max_gap_ms)


def _runs(picture: _Picture, policy: Policy) -> list[Trailing]:
    """The islands that decide: of the partitions, or of the total."""
    if policy.persistence_scope is PersistenceScope.TOTAL:
        return [picture.total_run] if picture.total_run is not None else []
    return [trail.run for trail in picture.trails]


def _verdict(picture: _Picture, now_ms: int, policy: Policy) -> tuple[Verdict, Reason]:
    runs = _runs(picture, policy)
    if any(run.lasted(policy.sustain_ms) for run in runs):
        if picture.whole or picture.members is not None:
            return Verdict.SUSTAINED, Reason.LASTED
        return Verdict.UNKNOWN, Reason.MEMBERS_UNKNOWN
    reason = _nothing_measured(picture, now_ms, policy) or _not_told(picture, runs, policy)
    if reason is not None:
        return Verdict.UNKNOWN, reason
    return Verdict.CALM, Reason.NOT_YET if runs else Reason.NO_BREACH


def _not_told(picture: _Picture, runs: list[Trailing], policy: Policy) -> Reason | None:
    """Why calm cannot be claimed although every partition is fresh."""
    untold = policy.persistence_scope is PersistenceScope.TOTAL and not picture.total_told
    if untold or any(run.may_have_lasted(policy.sustain_ms) for run in runs):
        return Reason.OPEN_ISLAND
    told = picture.activity.backlog or picture.activity.work or picture.activity.idle
    return None if told else Reason.ACTIVITY_UNTOLD


def _nothing_measured(picture: _Picture, now_ms: int, policy: Policy) -> Reason | None:
    """Why calm cannot be claimed for want of samples, by the first reason that applies."""
    rounds = picture.measured.rounds
    if picture.unmeasured:
        return Reason.NO_DATA
    if len(picture.measured.without_topic()) == len(rounds):
        return Reason.NO_TOPIC
    if not picture.measured.series:
        return Reason.NOTHING_TO_MEASURE
    if now_ms - picture.measured.at_ms > policy.stale_after_ms:
        return Reason.STALE
    return Reason.MISSING if picture.missing else None


def _answer(verdict: Verdict, picture: _Picture, total: int, policy: Policy) -> tuple[float | None, bool | None]:
    """Value and activity, from one place: within one judgement they cannot contradict."""
    if verdict is Verdict.UNKNOWN:
        return None, None
    if verdict is Verdict.CALM:
        return 0.0, picture.activity.backlog or picture.activity.work
    value = capped_value(total, len(picture.measured.series), policy)
    if not picture.whole and picture.members is not None:
        value = max(value, floor_value(picture.members, policy))
    return value, True


def _wakes(picture: _Picture, policy: Policy) -> bool:
    """Whether the fresh partitions prove a backlog, and nobody is there to read it."""
    waiting = sum(activity_lag_of(point.sample, policy) for point in picture.fresh)
    return picture.members == 0 and picture.activity.backlog and waiting > policy.activation_lag_threshold


def _island(picture: _Picture, policy: Policy) -> Island | None:
    """The island that matters most: the total's, or the longest, then highest, of the fresh partitions."""
    if policy.persistence_scope is PersistenceScope.TOTAL:
        run = picture.total_run
        return None if run is None else Island(None, None, run.lag, run.since_ms, run.span_ms, run.bounded)
    if not picture.trails:
        return None
    first = min(
        picture.trails,
        key=lambda trail: (-trail.run.span_ms, -trail.run.lag, trail.series.target_id, trail.series.partition),
    )
    run = first.run
    return Island(first.series.target_id, first.series.partition, run.lag, run.since_ms, run.span_ms, run.bounded)
