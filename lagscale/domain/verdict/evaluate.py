"""The reference of the verdict: from raw rounds and a policy to one of three verdicts, a value and an activity.

Clarity before speed: this is the definition, which contract tests compare with the SQL of the store. Services use only
its parts (series, facts) for explanations and group status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lagscale.domain.lag.rounds import TargetRound
from lagscale.domain.lag.time_lag import TimeLag
from lagscale.domain.policy.policy import Metric, PersistenceScope, Policy
from lagscale.domain.verdict.contract import Answer, Island, Judgment, Reason, Verdict
from lagscale.domain.verdict.facts import VerdictFacts, collect_facts, identify_partition
from lagscale.domain.verdict.hold import pick_last_known
from lagscale.domain.verdict.islands import TrailingIsland, is_undetermined
from lagscale.domain.verdict.series import build_series, compute_activity_lag, compute_lag
from lagscale.domain.verdict.value import Load, compute_value, count_replicas, get_calm_value, will_recover

Targets = Mapping[int, Sequence[TargetRound]]


def judge(targets: Targets, policy: Policy, *, now_ms: int, upto_ms: int | None = None) -> Judgment:
    """Judge a monitor from the raw rounds of its targets, and stabilize the answer from the same samples.

    Args:
        targets: target id -> its rounds, in any order, doubled or not.
        policy: with every default resolved.
        now_ms: the instant judged, milliseconds since 1970.
        upto_ms: rounds after this do not exist.
    """
    present = judge_at(targets, policy, now_ms, upto_ms)
    if present.value is None or present.at_ms is None or not policy.stabilization_ms:
        return present
    past = _judge_history(targets, policy, present.at_ms - policy.stabilization_ms, present.at_ms - 1)
    return _stabilize_last([*past, present], policy)


def find_last_known(targets: Targets, policy: Policy, *, now_ms: int, upto_ms: int | None = None) -> Answer | None:
    """The last-known answer, from the answers at every sample time, each with only the samples until then.

    Looks back `holdSeconds` for the last known instant K, and `Policy.hold_window_ms` further for the greatest answer
    before it.
    """
    series_set = build_series(targets, policy, upto_ms)
    if series_set is None or policy.hold_ms == 0:
        return None
    # The group is empty for certain, and not because a coordinator was lost: it is activated from zero.
    if judge_at(targets, policy, now_ms, upto_ms).activates_from_zero and not series_set.had_members_since(
        series_set.at_ms - policy.hold_window_ms
    ):
        return None
    from_ms = now_ms - policy.hold_ms - policy.hold_window_ms
    until_ms = now_ms if upto_ms is None else min(now_ms, upto_ms)
    judgments = _judge_history(targets, policy, from_ms - policy.stabilization_ms, until_ms)
    answers = [
        _stabilize_last(judgments[: number + 1], policy) if policy.stabilization_ms else judgment
        for number, judgment in enumerate(judgments)
        if (judgment.at_ms or 0) >= from_ms
    ]
    return pick_last_known(answers, series_set.members(), now_ms, policy)


def _judge_history(targets: Targets, policy: Policy, from_ms: int, until_ms: int) -> list[Judgment]:
    """The known judgments at each sample time of a span, with the samples until then; before stabilization."""
    times = sorted({r.at_ms for rounds in targets.values() for r in rounds if from_ms <= r.at_ms <= until_ms})
    judged = [judge_at(targets, policy, at, at) for at in times]
    return [judgment for judgment in judged if judgment.value is not None]


def _stabilize_last(judgments: Sequence[Judgment], policy: Policy) -> Judgment:
    """The last of these judgments with the stabilized answer, by the definition of the two windows.

    Deliberately not `stabilization.stabilize`, whose fast form tests compare with this one.

    1. up(t) is the least value of the known instants of [t - scaleUpStabilization, t] in the run of sustained ones; a calm
       one ends the run, and has its own value.
    2. The answer is the greatest up(t) of the known instants of [T - scaleDownStabilization, T], active if any is.
    """
    last = judgments[-1]
    times = [judgment.at_ms or 0 for judgment in judgments]

    def compute_scale_up(number: int) -> float:
        least = judgments[number].value or 0.0
        for before in range(number, -1, -1):
            is_calm = judgments[before].verdict is Verdict.CALM
            if is_calm or times[before] < times[number] - policy.scale_up_ms:
                break
            least = min(least, judgments[before].value or 0.0)
        return least

    window = [number for number, at in enumerate(times) if at >= times[-1] - policy.scale_down_ms]
    value, active = max(map(compute_scale_up, window)), any(judgments[number].active for number in window)
    return replace(last, value=value, active=active, scale_up_value=compute_scale_up(len(times) - 1))


def judge_at(targets: Targets, policy: Policy, now_ms: int, upto_ms: int | None) -> Judgment:
    """Judge one instant, before stabilization.

    1. *Now* decides freshness and nothing else; everything else is computed at T, the time of the newest round.
    2. *Sustained*: a fresh partition's trailing island (scope total: the total's) has a span of `sustainSeconds`.
       With a partition that is not fresh the value must not fall below the current replicas; with unknown members
       the verdict is unknown.
    3. *Calm*: every partition is fresh, none has an island that lasted or may have lasted, and activity is determined.
    4. *Unknown* is everything else, with its first reason.
    5. A stuck partition has no island and no value; it counts for activity, and as a partition.
    """
    if not targets:
        return Judgment(Verdict.UNKNOWN, Reason.NOTHING_TO_MEASURE, None, None, None, now_ms)
    series_set = build_series(targets, policy, upto_ms)
    if series_set is None:
        return Judgment(Verdict.UNKNOWN, Reason.NO_DATA, None, None, None, now_ms, incomplete=True)
    facts = collect_facts(series_set, now_ms, policy)
    verdict, reason = _decide_verdict(facts, now_ms, policy)
    load = _build_load(facts, verdict, policy)
    value, active = _compute_answer(verdict, facts, load, policy)
    total = sum(compute_lag(point.sample, policy) for _, point in facts.fresh)
    return Judgment(
        verdict=verdict,
        reason=reason,
        value=value,
        active=active,
        at_ms=series_set.at_ms,
        now_ms=now_ms,
        raw=value,
        scale_up_value=value,
        total=total,
        partitions=len(series_set.series),
        missing=facts.missing,
        incomplete=load.incomplete,
        lagging=load.lagging,
        stuck=tuple(sorted(facts.stuck)),
        stuck_lag=sum(
            compute_lag(p.sample, policy) for series, p in facts.fresh if identify_partition(series) in facts.stuck
        ),
        time_lag=_find_longest_time_lag(facts) if policy.metric is Metric.TIME_LAG else None,
        recovering=load.recovering,
        members=facts.members,
        activates_from_zero=verdict is Verdict.UNKNOWN and _activates_from_zero(facts, policy),
        island=_find_main_island(facts, policy),
        absent=series_set.find_absent_topics(),
    )


def _build_load(facts: VerdictFacts, verdict: Verdict, policy: Policy) -> Load:
    """The load of a sustained monitor: the fresh partitions, without stuck ones."""
    lags = [
        compute_lag(point.sample, policy)
        for series, point in facts.fresh
        if identify_partition(series) not in facts.stuck
    ]
    amount_milli = sum(lags) * 1000
    if policy.metric is Metric.TIME_LAG:
        longest = _find_longest_time_lag(facts)
        replicas = max(1, count_replicas(facts.members or 0, policy))
        amount_milli = longest.estimate_ms * replicas if longest is not None else 0
    return Load(
        amount_milli=amount_milli,
        partitions=len(facts.series_set.series),
        lagging=sum(lag > 0 for lag in lags),
        recovering=verdict is Verdict.SUSTAINED and _is_recovering(facts, policy),
        members=facts.members,
        incomplete=not facts.whole,
    )


def _find_longest_time_lag(facts: VerdictFacts) -> TimeLag | None:
    """The greatest time lag, by its estimate, of a fresh partition that is not stuck."""
    time_lags = [time_lag for name, time_lag in facts.time_lags.items() if name not in facts.stuck]
    return max(
        time_lags,
        key=lambda time_lag: (
            time_lag.estimate_ms,
            time_lag.lower_ms,
            time_lag.upper_ms is None,
            time_lag.upper_ms or 0,
        ),
        default=None,
    )


def _is_recovering(facts: VerdictFacts, policy: Policy) -> bool:
    """Whether the line through each sustained backlog of the last `sustainSeconds` reaches the threshold in time."""
    if not policy.drain_ms or not facts.whole or facts.members is None:
        return False
    at_ms = facts.series_set.at_ms
    if policy.persistence_scope is PersistenceScope.TOTAL:
        backlogs = [[(lag_point.at_ms, lag_point.lag) for lag_point in facts.totals]]
    else:
        backlogs = [
            [(point.at_ms, compute_lag(point.sample, policy)) for point in partition_island.series.points]
            for partition_island in facts.partition_islands
            if partition_island.island.lasted(policy.sustain_ms)
        ]
    return all(
        will_recover(
            [(at, lag) for at, lag in samples if at >= at_ms - policy.sustain_ms],
            at_ms,
            policy.lag_threshold,
            sustain_ms=policy.sustain_ms,
            within_ms=policy.drain_ms,
        )
        for samples in backlogs
    )


def _select_islands(facts: VerdictFacts, policy: Policy) -> list[TrailingIsland]:
    """The islands that decide: of the partitions, or of the total."""
    if policy.persistence_scope is PersistenceScope.TOTAL:
        return [facts.total_island] if facts.total_island is not None else []
    return [partition_island.island for partition_island in facts.partition_islands]


def _decide_verdict(facts: VerdictFacts, now_ms: int, policy: Policy) -> tuple[Verdict, Reason]:
    islands = _select_islands(facts, policy)
    # The partitions that made a total sustained may no longer be fresh; then 0 is not a measured value of the rest.
    has_value = facts.whole or any(
        compute_lag(p.sample, policy) for s, p in facts.fresh if identify_partition(s) not in facts.stuck
    )
    if has_value and any(island.lasted(policy.sustain_ms) for island in islands):
        # Both seconds and the floor for missing partitions are multiples of the current replicas.
        needs_members = policy.metric is Metric.TIME_LAG or not facts.whole
        if not needs_members or facts.members is not None:
            return Verdict.SUSTAINED, Reason.LASTED
        return Verdict.UNKNOWN, Reason.MEMBERS_UNKNOWN
    reason = _find_missing_data(facts, now_ms, policy) or _find_undetermined(facts, islands, policy)
    if reason is not None:
        return Verdict.UNKNOWN, reason
    return Verdict.CALM, Reason.NOT_YET if islands else Reason.NO_BREACH


def _find_undetermined(facts: VerdictFacts, islands: list[TrailingIsland], policy: Policy) -> Reason | None:
    """Why calm cannot be claimed although every partition is fresh."""
    undetermined = policy.persistence_scope is PersistenceScope.TOTAL and not facts.total_is_fresh
    if policy.metric is Metric.TIME_LAG:
        time_lags = [time_lag for name, time_lag in facts.time_lags.items() if name not in facts.stuck]
        undetermined = any(is_undetermined(time_lag, policy.lag_threshold * 1000) for time_lag in time_lags)
    if undetermined or any(island.may_have_lasted(policy.sustain_ms) for island in islands):
        return Reason.START_UNKNOWN
    is_determined = facts.activity.backlog or facts.activity.progress or facts.activity.idle
    return None if is_determined else Reason.ACTIVITY_UNDETERMINED


def _find_missing_data(facts: VerdictFacts, now_ms: int, policy: Policy) -> Reason | None:
    """Why calm cannot be claimed without more samples, by the first reason that applies."""
    rounds = facts.series_set.rounds
    if facts.unmeasured:
        return Reason.NO_DATA
    if len(facts.series_set.find_absent_topics()) == len(rounds):
        return Reason.NO_TOPIC
    if not facts.series_set.series:
        return Reason.NOTHING_TO_MEASURE
    if now_ms - facts.series_set.at_ms > policy.stale_after_ms:
        return Reason.STALE
    return Reason.MISSING if facts.missing else None


def _compute_answer(
    verdict: Verdict, facts: VerdictFacts, load: Load, policy: Policy
) -> tuple[float | None, bool | None]:
    """Value and activity from one place, so that they cannot contradict within one judgment."""
    if verdict is Verdict.UNKNOWN:
        return None, None
    if verdict is Verdict.CALM:
        active = facts.activity.backlog or facts.activity.progress
        return get_calm_value(policy, active=active), active
    return compute_value(load, policy), True


def _activates_from_zero(facts: VerdictFacts, policy: Policy) -> bool:
    """Whether the fresh partitions prove a backlog while the group has no members."""
    backlog = sum(compute_activity_lag(point.sample, policy) for _, point in facts.fresh)
    return facts.members == 0 and facts.activity.backlog and backlog > policy.activation_lag_threshold


def _find_main_island(facts: VerdictFacts, policy: Policy) -> Island | None:
    """The island that matters most: the total's, or the longest, then highest, of the fresh partitions."""
    if policy.persistence_scope is PersistenceScope.TOTAL:
        return None if facts.total_island is None else facts.total_island.locate()
    return next(iter(facts.rank_islands()), None)
