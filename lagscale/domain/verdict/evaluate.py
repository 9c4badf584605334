"""The reference of the verdict: from raw rounds and a policy to one of three verdicts, a value and an activity.

Clarity before speed. The SQL of the store computes the same; the contract tests hold both against each other, and the
in-memory twin of the store answers by this module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lagscale.domain.lag.rounds import TargetRound
from lagscale.domain.lag.time_lag import TimeLag
from lagscale.domain.policy.policy import Metric, PersistenceScope, Policy
from lagscale.domain.verdict.contract import Island, Judgement, Reason, Told, Verdict, held
from lagscale.domain.verdict.facts import Picture, name_of, picture_of
from lagscale.domain.verdict.islands import Trailing, is_untold
from lagscale.domain.verdict.recovering import drains
from lagscale.domain.verdict.series import activity_lag_of, lag_of, measured
from lagscale.domain.verdict.value import Load, replicas_of, value_of

Targets = Mapping[int, Sequence[TargetRound]]


def judge(targets: Targets, policy: Policy, *, now_ms: int, upto_ms: int | None = None) -> Judgement:
    """Judge a monitor from the raw rounds of its targets, and stabilise the answer from the same samples.

    Args:
        targets: target id -> its rounds, in any order, doubled or not.
        policy: with every default resolved.
        now_ms: the instant judged, milliseconds since 1970.
        upto_ms: rounds after this do not exist.
    """
    present = judge_once(targets, policy, now_ms, upto_ms)
    if present.value is None or present.at_ms is None or not policy.stabilisation_ms:
        return present
    past = _past(targets, policy, present.at_ms - policy.stabilisation_ms, present.at_ms - 1)
    return _stabilised([*past, present], policy)


def hold(targets: Targets, policy: Policy, *, now_ms: int, upto_ms: int | None = None) -> Told | None:
    """The held answer, from what would have been told at every sample time, each with only the samples until then.

    Looks back `holdSeconds` for the last known instant K and 300 s, or `scaleDownStabilization`, further for the
    greatest answer before it.
    """
    seen = measured(targets, policy, upto_ms)
    if seen is None or policy.hold_ms == 0:
        return None
    from_ms = now_ms - policy.hold_ms - policy.hold_window_ms
    until_ms = now_ms if upto_ms is None else min(now_ms, upto_ms)
    known = _past(targets, policy, from_ms - policy.stabilisation_ms, until_ms)
    answers = [
        _stabilised(known[: number + 1], policy) if policy.stabilisation_ms else judgement
        for number, judgement in enumerate(known)
        if (judgement.at_ms or 0) >= from_ms
    ]
    return held(answers, seen.members(), now_ms, policy)


def _past(targets: Targets, policy: Policy, from_ms: int, until_ms: int) -> list[Judgement]:
    """What was known at each sample time of a span, with the samples until then; before stabilisation."""
    instants = sorted({r.at_ms for rounds in targets.values() for r in rounds if from_ms <= r.at_ms <= until_ms})
    judged = [judge_once(targets, policy, at, at) for at in instants]
    return [judgement for judgement in judged if judgement.value is not None]


def _stabilised(known: Sequence[Judgement], policy: Policy) -> Judgement:
    """The last of these judgements with the stabilised answer: two windows, read off their definition.

    1. up(t) is the least value of the known instants of [t - scaleUpStabilization, t] since the last value of 0.
    2. The answer is the greatest up(t) of the known instants of [T - scaleDownStabilization, T], active if any is.
    """
    last = known[-1]
    values = [(judgement.at_ms or 0, judgement.value or 0.0, bool(judgement.active)) for judgement in known]

    def up(number: int) -> float:
        at, least, _ = values[number]
        for before, value, _ in reversed(values[: number + 1]):
            if value == 0 or before < at - policy.scale_up_ms:
                break
            least = min(least, value)
        return least

    window = [n for n, (at, _, _) in enumerate(values) if at >= values[-1][0] - policy.scale_down_ms]
    value, active = max(map(up, window)), any(values[number][2] for number in window)
    return replace(last, value=value, active=active, risen=up(len(values) - 1))


def judge_once(targets: Targets, policy: Policy, now_ms: int, upto_ms: int | None) -> Judgement:
    """One instant by itself, before stabilisation.

    1. *Now* decides freshness and nothing else; everything else is computed at T, the time of the newest round.
    2. *Sustained*: a fresh partition's trailing island (scope total: the total's) has a span of `sustainSeconds`.
       With a partition that is not fresh the value must not fall below what the members stand for; not knowing them,
       the verdict is unknown.
    3. *Calm*: every partition is fresh, none has an island that lasted or may have lasted, and activity can be told.
    4. *Unknown* is everything else, with its first reason.
    5. A stuck partition has no island and no value; it counts for activity, and as a partition.
    """
    if not targets:
        return Judgement(Verdict.UNKNOWN, Reason.NOTHING_TO_MEASURE, None, None, None, now_ms)
    seen = measured(targets, policy, upto_ms)
    if seen is None:
        return Judgement(Verdict.UNKNOWN, Reason.NO_DATA, None, None, None, now_ms, incomplete=True)
    picture = picture_of(seen, now_ms, policy)
    verdict, reason = _verdict(picture, now_ms, policy)
    load = _load(picture, verdict, policy)
    value, active = _answer(verdict, picture, load, policy)
    total = sum(lag_of(point.sample, policy) for _, point in picture.fresh)
    return Judgement(
        verdict=verdict,
        reason=reason,
        value=value,
        active=active,
        at_ms=seen.at_ms,
        now_ms=now_ms,
        raw=value,
        risen=value,
        total=total,
        partitions=len(seen.series),
        missing=picture.missing,
        incomplete=load.incomplete,
        lagging=load.lagging,
        stuck=tuple(sorted(picture.stuck)),
        stuck_lag=sum(lag_of(p.sample, policy) for series, p in picture.fresh if name_of(series) in picture.stuck),
        time_lag=_longest(picture) if policy.metric is Metric.TIME_LAG else None,
        draining=load.draining,
        members=picture.members,
        wakes=verdict is Verdict.UNKNOWN and _wakes(picture, policy),
        island=_island(picture, policy),
        absent=seen.without_topic(),
    )


def _load(picture: Picture, verdict: Verdict, policy: Policy) -> Load:
    """What the value of a sustained monitor is made of: the fresh partitions, without those that are stuck."""
    lags = [lag_of(point.sample, policy) for series, point in picture.fresh if name_of(series) not in picture.stuck]
    amount = float(sum(lags))
    if policy.metric is Metric.TIME_LAG:
        longest = _longest(picture)
        replicas = max(1, replicas_of(picture.members or 0, policy))
        amount = longest.estimate_ms / 1000 * replicas if longest is not None else 0.0
    return Load(
        amount=amount,
        partitions=len(picture.measured.series),
        lagging=sum(lag > 0 for lag in lags),
        draining=verdict is Verdict.SUSTAINED and _draining(picture, policy),
        members=picture.members,
        incomplete=not picture.whole,
    )


def _longest(picture: Picture) -> TimeLag | None:
    """The greatest time lag, by its estimate, of a fresh partition that is not stuck."""
    waits = [wait for name, wait in picture.waiting.items() if name not in picture.stuck]
    return max(
        waits,
        key=lambda wait: (wait.estimate_ms, wait.lower_ms, wait.upper_ms is None, wait.upper_ms or 0),
        default=None,
    )


def _draining(picture: Picture, policy: Policy) -> bool:
    """Whether the line through each lasting backlog of the last `sustainSeconds` reaches the threshold in time."""
    if not policy.drain_ms or not picture.whole or picture.members is None:
        return False
    at_ms = picture.measured.at_ms
    if policy.persistence_scope is PersistenceScope.TOTAL:
        backlogs = [[(reading.at_ms, reading.lag) for reading in picture.totals]]
    else:
        backlogs = [
            [(point.at_ms, lag_of(point.sample, policy)) for point in trail.series.points]
            for trail in picture.trails
            if trail.run.lasted(policy.sustain_ms)
        ]
    return all(
        drains(
            [(at, lag) for at, lag in samples if at >= at_ms - policy.sustain_ms],
            at_ms,
            policy.lag_threshold,
            policy.drain_ms,
        )
        for samples in backlogs
    )


def _runs(picture: Picture, policy: Policy) -> list[Trailing]:
    """The islands that decide: of the partitions, or of the total."""
    if policy.persistence_scope is PersistenceScope.TOTAL:
        return [picture.total_run] if picture.total_run is not None else []
    return [trail.run for trail in picture.trails]


def _verdict(picture: Picture, now_ms: int, policy: Policy) -> tuple[Verdict, Reason]:
    runs = _runs(picture, policy)
    # Of a total, what lasted may no longer be fresh; then 0 is no measured value of the rest.
    worth = picture.whole or any(lag_of(p.sample, policy) for s, p in picture.fresh if name_of(s) not in picture.stuck)
    if worth and any(run.lasted(policy.sustain_ms) for run in runs):
        # Seconds are worth replicas, and so is the floor for missing partitions.
        by_members = policy.metric is Metric.TIME_LAG or not picture.whole
        if not by_members or picture.members is not None:
            return Verdict.SUSTAINED, Reason.LASTED
        return Verdict.UNKNOWN, Reason.MEMBERS_UNKNOWN
    reason = _nothing_measured(picture, now_ms, policy) or _not_told(picture, runs, policy)
    if reason is not None:
        return Verdict.UNKNOWN, reason
    return Verdict.CALM, Reason.NOT_YET if runs else Reason.NO_BREACH


def _not_told(picture: Picture, runs: list[Trailing], policy: Policy) -> Reason | None:
    """Why calm cannot be claimed although every partition is fresh."""
    untold = policy.persistence_scope is PersistenceScope.TOTAL and not picture.total_told
    if policy.metric is Metric.TIME_LAG:
        counting = [wait for name, wait in picture.waiting.items() if name not in picture.stuck]
        untold = any(is_untold(wait, policy.lag_threshold * 1000) for wait in counting)
    if untold or any(run.may_have_lasted(policy.sustain_ms) for run in runs):
        return Reason.OPEN_ISLAND
    told = picture.activity.backlog or picture.activity.work or picture.activity.idle
    return None if told else Reason.ACTIVITY_UNTOLD


def _nothing_measured(picture: Picture, now_ms: int, policy: Policy) -> Reason | None:
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


def _answer(verdict: Verdict, picture: Picture, load: Load, policy: Policy) -> tuple[float | None, bool | None]:
    """Value and activity, from one place: within one judgement they cannot contradict."""
    if verdict is Verdict.UNKNOWN:
        return None, None
    if verdict is Verdict.CALM:
        return 0.0, picture.activity.backlog or picture.activity.work
    return float(value_of(load, policy)), True


def _wakes(picture: Picture, policy: Policy) -> bool:
    """Whether the fresh partitions prove a backlog, and nobody is there to read it."""
    waiting = sum(activity_lag_of(point.sample, policy) for _, point in picture.fresh)
    return picture.members == 0 and picture.activity.backlog and waiting > policy.activation_lag_threshold


def _island(picture: Picture, policy: Policy) -> Island | None:
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
