"""Laws of the verdict: how an answer follows when a history or a policy changes in a known way.

A law needs no second engine, so it also finds what the reference and the SQL have wrong in common. Each names a break
that it catches: a law that cannot fail says nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from random import Random

from lagscale.domain.lag.rounds import SampleRow, TargetRound
from lagscale.domain.lag.samples import Flag, Sample
from lagscale.domain.policy.policy import Metric, PersistenceScope, Policy
from lagscale.domain.verdict.contract import Judgment, Reason, Verdict
from tests.contract.random_broker import INTERVAL_MS
from tests.contract.random_histories import Instant, RandomHistory, marked

#: Before and after; None where the law says nothing of the history.
Pair = tuple[RandomHistory, RandomHistory] | None

_HOURS_MS = 7 * 3_600_000 + 12_345
_TIMES = 7
_SECOND_HALF = frozenset(range(2, 64))
_FIRST_HALF = frozenset(range(2))


@dataclass(frozen=True)
class Law:
    """One law.

    Attributes:
        says: a sentence.
        pair: the same history before and after a change.
        holds: whether the judgment before allows the one after.
        breaks: breaks the database's answers in such a way that the law fails.
        stabilized: whether it speaks of the answer after stabilization.
    """

    says: str
    pair: Callable[[RandomHistory, Random], Pair]
    holds: Callable[[Judgment, Judgment, Policy], bool]
    breaks: Callable[[], AbstractContextManager[object]]
    stabilized: bool = False


def plain(judged: Judgment) -> Judgment:
    """Without names of targets, and without what only evidence tells."""
    return replace(judged, island=None, absent=(), stuck=(), stuck_lag=0, lagging=0, time_lag=None)


def same(before: Judgment, after: Judgment, _: Policy) -> bool:
    """Nothing changes; where both tell of an island, neither does that."""
    spans = [(one.island.span_ms, one.island.start_known, one.island.lag) for one in (before, after) if one.island]
    return plain(before) == plain(after) and len(set(spans)) <= 1


def rewritten(history: RandomHistory, change: Callable[[TargetRound], TargetRound]) -> dict[int, list[SampleRow]]:
    """The history's rows with each round changed, marked anew."""
    return {target: marked(change(row.round) for row in rows) for target, rows in history.rows.items()}


def with_policy(history: RandomHistory, policy: Policy) -> RandomHistory:
    """The same history under another policy."""
    return RandomHistory(policy, history.rows, history.instants)


def _samples(this: TargetRound, change: Callable[[Sample], Sample]) -> TargetRound:
    return replace(this, samples=tuple(None if one is None else change(one) for one in this.samples))


def _times(history: RandomHistory) -> list[int]:
    return sorted({row.round.at_ms for rows in history.rows.values() for row in rows})


def _moved(instant: Instant, move: Callable[[int], int]) -> Instant:
    return Instant(move(instant.now_ms), None if instant.upto_ms is None else move(instant.upto_ms))


def shifted(history: RandomHistory, _: Random) -> Pair:
    rows = rewritten(history, lambda this: replace(this, at_ms=this.at_ms + _HOURS_MS))
    instants = [_moved(one, lambda at: at + _HOURS_MS) for one in history.instants]
    return history, RandomHistory(history.policy, rows, instants)


def only_times_shift(before: Judgment, after: Judgment, policy: Policy) -> bool:
    at_ms = None if after.at_ms is None else after.at_ms - _HOURS_MS
    return same(before, replace(after, at_ms=at_ms, now_ms=after.now_ms - _HOURS_MS), policy)


def slower(history: RandomHistory, _: Random) -> Pair:
    """Everything takes seven times as long. How long a reading of members is known does not scale: none is read."""
    begin = (_times(history) or [0])[0]

    def later(at_ms: int) -> int:
        return begin + (at_ms - begin) * _TIMES

    def unread(this: TargetRound) -> TargetRound:
        return replace(this, members=None, members_age_ms=None)

    def stretched(this: TargetRound) -> TargetRound:
        ends = [None if ms is None else ms * _TIMES for ms in (this.ends_asked_ms, this.ends_answered_ms)]
        return replace(unread(this), at_ms=later(this.at_ms), ends_asked_ms=ends[0], ends_answered_ms=ends[1])

    policy = history.policy
    by_time = policy.metric is Metric.TIME_LAG
    long = {name: getattr(policy, name) * _TIMES for name in policy.__dataclass_fields__ if name.endswith("_ms")}
    slow = replace(policy, **long, lag_threshold=policy.lag_threshold * (_TIMES if by_time else 1))
    instants = [_moved(one, later) for one in history.instants]
    return (
        RandomHistory(policy, rewritten(history, unread), history.instants),
        RandomHistory(slow, rewritten(history, stretched), instants),
    )


def only_times_stretch(before: Judgment, after: Judgment, policy: Policy) -> bool:
    return same(replace(before, at_ms=None, now_ms=0), _unspanned(replace(after, at_ms=None, now_ms=0), before), policy)


def _unspanned(after: Judgment, before: Judgment) -> Judgment:
    """The island as it was before it was stretched, if it was stretched as everything."""
    if after.island is None or before.island is None or after.island.span_ms != before.island.span_ms * _TIMES:
        return after
    lag = after.island.lag if after.time_lag is None else after.island.lag // _TIMES
    return replace(after, island=replace(after.island, span_ms=before.island.span_ms, lag=lag))


def heavier(history: RandomHistory, _: Random) -> Pair:
    """Each message counts as seven, and so do the thresholds."""
    policy = history.policy
    if policy.metric is Metric.TIME_LAG:
        return None
    # A partition without a commit counts 1, whatever a message weighs.
    light = replace(policy, scale_to_zero_on_invalid_offset=True)
    heavy = replace(
        light,
        lag_threshold=policy.lag_threshold * _TIMES,
        target_lag=round(policy.target_lag * _TIMES, 3),
        activation_lag_threshold=policy.activation_lag_threshold * _TIMES,
        active_value=policy.active_value * _TIMES,
    )
    rows = rewritten(
        history,
        lambda this: _samples(this, lambda one: replace(one, lag=one.lag * _TIMES, end=one.end * _TIMES)),
    )
    return with_policy(history, light), RandomHistory(heavy, rows, history.instants)


def only_weights_change(before: Judgment, after: Judgment, policy: Policy) -> bool:
    def weighed(value: float | None) -> float | None:
        return None if value is None else round(value * _TIMES, 3)

    wanted = replace(
        before,
        value=weighed(before.value),
        raw=weighed(before.raw),
        scale_up_value=weighed(before.scale_up_value),
        total=before.total * _TIMES,
        island=before.island and replace(before.island, lag=before.island.lag * _TIMES),
    )
    return same(wanted, after, policy)


def split(history: RandomHistory, _: Random) -> Pair:
    """Each topic's first two partitions and the others as two targets."""
    rows: dict[int, list[SampleRow]] = {}
    for target, given in history.rows.items():
        for half, excluded in ((0, _SECOND_HALF), (1, _FIRST_HALF)):
            rows[2 * target + half] = marked(_without(row.round, excluded) for row in given)
    return history, RandomHistory(history.policy, rows, history.instants)


def _without(this: TargetRound, excluded: frozenset[int]) -> TargetRound:
    left_out = this.excluded | excluded
    samples = tuple(None if number in left_out else one for number, one in enumerate(this.samples))
    return replace(this, samples=samples, excluded=left_out)


def _is_born(history: RandomHistory) -> bool:
    rounds = [row.round for rows in history.rows.values() for row in rows]
    return any(sample is not None and sample.flags & Flag.FIRST_SEEN for this in rounds for sample in this.samples)


def joined_by_calm(history: RandomHistory, _: Random) -> Pair:
    """Beside it lies a topic that has been empty of lag for long, polled with the others."""
    times = _times(history)
    if not times or history.policy.even_split:
        return None
    if history.policy.persistence_scope is PersistenceScope.TOTAL and _is_born(history):
        # A total that begins with a birth is known to begin there only where nothing else is counted.
        return None
    long_ago = [times[0] - back * INTERVAL_MS for back in range(60, 0, -1)]
    calm = [TargetRound(at_ms, 1, (Sample(0, 10),)) for at_ms in [*long_ago, *times]]
    rows = {**history.rows, max(history.rows) + 1: marked(calm)}
    return history, RandomHistory(history.policy, rows, history.instants)


def keeps_verdict_beside_calm(before: Judgment, after: Judgment, policy: Policy) -> bool:
    if before.reason in {Reason.NO_TOPIC, Reason.NOTHING_TO_MEASURE, Reason.NO_DATA}:
        return after.verdict is not Verdict.SUSTAINED
    if (before.verdict, before.reason, before.active, before.activates_from_zero) != (
        after.verdict,
        after.reason,
        after.active,
        after.activates_from_zero,
    ):
        return False
    if policy.allow_idle_consumers or before.value is None or after.value is None:
        return before.value == after.value
    # One partition more may have a replica more.
    return before.value <= after.value


def lower_threshold(history: RandomHistory, random: Random) -> Pair:
    policy = history.policy
    lower = random.randrange(1, policy.lag_threshold) if policy.lag_threshold > 1 else None
    return None if lower is None else (history, with_policy(history, replace(policy, lag_threshold=lower)))


def stays_sustained(before: Judgment, after: Judgment, _: Policy) -> bool:
    if before.verdict is not Verdict.SUSTAINED:
        return True
    return after.verdict is Verdict.SUSTAINED and (after.value or 0) >= (before.value or 0)


def longer_sustain(history: RandomHistory, random: Random) -> Pair:
    longer = history.policy.sustain_ms + random.choice((1, 10_000, 60_000))
    return history, with_policy(history, replace(history.policy, sustain_ms=longer))


def never_sustains(before: Judgment, after: Judgment, _: Policy) -> bool:
    return before.verdict is Verdict.SUSTAINED or after.verdict is not Verdict.SUSTAINED


def staler(history: RandomHistory, random: Random) -> Pair:
    """Samples stay fresh for longer."""
    longer = history.policy.stale_after_ms + random.choice((1, 5_000, 30_000))
    return history, with_policy(history, replace(history.policy, stale_after_ms=longer))


def keeps_what_is_known(before: Judgment, after: Judgment, _: Policy) -> bool:
    if before.verdict is Verdict.UNKNOWN:
        return True
    return (before.verdict, before.active) == (after.verdict, after.active)


def later(history: RandomHistory, random: Random) -> Pair:
    """The same samples, asked later."""
    newest = (_times(history) or [0])[-1]
    after = random.choice((1, 5_000, 20_000, 60_000))
    # Without a limit a later question is the same one: what is stored is stored.
    fixed = [Instant(one.now_ms, newest if one.upto_ms is None else one.upto_ms) for one in history.instants]
    moved = [Instant(one.now_ms + after, one.upto_ms) for one in fixed]
    return RandomHistory(history.policy, history.rows, fixed), RandomHistory(history.policy, history.rows, moved)


def stays_or_becomes_unknown(before: Judgment, after: Judgment, _: Policy) -> bool:
    return after.verdict in {before.verdict, Verdict.UNKNOWN} and (after.active in {before.active, None})


def older_rounds(history: RandomHistory, random: Random) -> Pair:
    """Rounds before what a verdict may look at."""
    policy = replace(history.policy, scale_up_ms=0, scale_down_ms=0)
    times = _times(history)
    if policy.metric is Metric.TIME_LAG or not times or not all(history.rows.values()):
        return None
    upto = min(times[-1] if one.upto_ms is None else one.upto_ms for one in history.instants)
    judged_at = max((at for at in times if at <= upto), default=0)
    rows = {target: sorted(given, key=lambda row: row.round.at_ms) for target, given in history.rows.items()}
    if any(given[0].round.at_ms >= judged_at - policy.lookback_ms for given in rows.values()):
        return None
    more = {
        target: marked([*_before(given[0].round, random), *(row.round for row in given)])
        for target, given in rows.items()
    }
    return (
        RandomHistory(policy, history.rows, history.instants),
        RandomHistory(policy, more, history.instants),
    )


def _before(first: TargetRound, random: Random) -> list[TargetRound]:
    """Rounds of any lag before a target's first one."""
    made = []
    for back in range(random.choice((1, 3, 12)), 0, -1):
        samples = tuple(Sample(random.choice((0, 5, 40)), 50) for _ in first.samples)
        earlier = TargetRound(first.at_ms - back * INTERVAL_MS, first.incarnation, samples, first.excluded)
        made.append(_without(earlier, frozenset()))
    return made


def same_but_activity_may_be_told(before: Judgment, after: Judgment, policy: Policy) -> bool:
    """The claim of inactivity may rest on a sample however old."""
    return before.reason is Reason.ACTIVITY_UNDETERMINED or same(before, after, policy)


def more_up(history: RandomHistory, random: Random) -> Pair:
    if not history.policy.stabilization_ms:
        return None
    longer = history.policy.scale_up_ms + random.choice((5_000, 10_000, 60_000))
    return history, with_policy(history, replace(history.policy, scale_up_ms=longer))


def never_raises(before: Judgment, after: Judgment, _: Policy) -> bool:
    """A window neither reveals what is unknown nor hides what is known."""
    if before.value is None or after.value is None:
        return before.value == after.value
    return after.value <= before.value


def more_down(history: RandomHistory, random: Random) -> Pair:
    longer = history.policy.scale_down_ms + random.choice((5_000, 10_000, 60_000))
    return history, with_policy(history, replace(history.policy, scale_down_ms=longer))


def never_lowers(before: Judgment, after: Judgment, _: Policy) -> bool:
    """As above."""
    if before.value is None or after.value is None:
        return before.value == after.value
    return after.value >= before.value and bool(after.active or not before.active)
