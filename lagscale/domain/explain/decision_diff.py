"""What an explanation is made of: how the value came about, and why what was told differs from what the samples say.

Pure; the API puts explanations together from these, `sentences` puts them into words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from lagscale.domain.policy.policy import Metric, Policy
from lagscale.domain.verdict.contract import Judgement, Told, Verdict
from lagscale.domain.verdict.value import Load, Rule, replicas_of, steps

#: Not of the value's own rules: what becomes of an answer while the verdict is unknown.
HELD = "held"
WAKING = "waking"
#: Of `metric: timeLag`: from messages to the seconds that the value begins with.
TIME_LAG = "time_lag"
#: A scaler writes down what it told on change, and again after this long.
TOLD_AGAIN_MS = 300_000
#: Between two questions of KEDA; a decision older than both together says nothing of the moment.
ASKED_WITHIN_MS = 60_000
#: A snapshot serves for about a second, and writing it down takes a moment.
SNAPSHOT_MS = 3_000
#: The reason of a decision that a freeze made.
FROZEN = "frozen"
#: The reasons of a decision that was made without the store.
_WITHOUT_STORE = frozenset({"store_silent", "StoreUnavailable", "StoreTimeout"})


@dataclass(frozen=True, slots=True)
class Change:
    """One rule that changed the value. `before` is None where there was none: the verdict is unknown.

    `rule` is one of `Rule`, or `TIME_LAG`, `HELD` or `WAKING`.
    """

    rule: str
    before: float | None
    after: float


@dataclass(frozen=True, slots=True)
class Said:
    """What the samples say of one instant by one policy, and the answer for KEDA that follows from it."""

    judgement: Judgement
    told: Told | None


@dataclass(frozen=True, slots=True)
class Record:
    """What a replica told KEDA, as it wrote it down; it never changes.

    Attributes:
        snapshot_ms: the newest round that it saw; None without one, and where the store was silent.
        code: of gRPC; other than `OK` an error was told.
        version: of the registration; None in rows of the version before.
        overrides: policy keys that the ScaledObject gave beside it.
    """

    replica: str
    told_ms: int
    snapshot_ms: int | None
    verdict: str
    value: float | None
    active: bool | None
    held: bool
    reason: str
    code: str
    version: int | None = None
    overrides: Mapping[str, str] | None = None


class Why(StrEnum):
    """Why what was told is not what the samples say."""

    FROZEN = "frozen"  # the monitor was frozen, so nothing was judged
    STORE_AWAY = "store_away"  # the store did not answer the replica
    OVERRIDES = "overrides"  # the ScaledObject gave policy keys of its own
    OTHER_POLICY = "other_policy"  # the replica answered by another version of the registration
    NEWER_ROUNDS = "newer_rounds"  # rounds came between the answer and the moment
    TIME_PASSED = "time_passed"  # the same rounds, but they went stale, or the hold ran out
    SNAPSHOT = "snapshot"  # the newest round came while a snapshot still served
    LATE_ROUNDS = "late_rounds"  # newer rounds of that time reached the store after the answer
    FILLED_LATER = "filled_later"  # the newest round is the same, and what lies before it is not
    DROPPED = "dropped"  # the samples of the answer's time are no longer kept
    NOT_KNOWN = "not_known"  # none of these


def changes(judgement: Judgement, policy: Policy, told: Told | None = None) -> list[Change]:
    """Every rule that changed the value, in order; the first one changed the total.

    Args:
        judgement: with its evidence.
        policy: by which it was judged.
        told: what KEDA is told; only a held or a waking answer adds to it.
    """
    if judgement.value is None:
        if told is None:
            return []
        return [Change(WAKING if told.held_since_ms is None else HELD, None, told.value)]
    raw = judgement.value if judgement.raw is None else judgement.raw
    risen = raw if judgement.risen is None else judgement.risen
    made: list[Change] = []
    last = Rule.SCALE_DOWN
    if judgement.verdict is Verdict.SUSTAINED:
        made = _of_value(judgement, policy)
        if made and judgement.incomplete and made[-1].after > raw:
            # Only a part of the topics was judged: then the floor comes last, after the windows.
            made, last = _of_value(replace(judgement, incomplete=False), policy), Rule.FLOOR
    for rule, before, after in ((Rule.SCALE_UP, raw, risen), (last, risen, judgement.value)):
        if after != before:
            made.append(Change(rule.value, before, after))
    return made


def _of_value(judgement: Judgement, policy: Policy) -> list[Change]:
    """Up to the value before stabilisation."""
    made: list[Change] = []
    value = float(judgement.total)
    amount = value - judgement.stuck_lag
    if amount != value:
        made.append(Change(Rule.STUCK.value, value, amount))
    if policy.metric is Metric.TIME_LAG and judgement.time_lag is not None:
        seconds = judgement.time_lag.estimate_ms / 1000 * max(1, replicas_of(judgement.members or 0, policy))
        made.append(Change(TIME_LAG, amount, seconds))
        amount = seconds
    load = Load(
        amount=amount,
        partitions=judgement.partitions,
        lagging=judgement.lagging,
        draining=judgement.draining,
        members=judgement.members,
        incomplete=judgement.incomplete,
    )
    value = amount
    for step in steps(load, policy):
        made.append(Change(step.rule.value, value, float(step.value)))
        value = float(step.value)
    return made


def agrees(record: Record, told: Told | None) -> bool:
    """Whether a replica told what the samples say."""
    if told is None or record.code != "OK":
        return told is None and record.code != "OK"
    same = record.value is not None and math.isclose(record.value, told.value, rel_tol=1e-9, abs_tol=1e-9)
    return same and record.active == told.active and record.held == (told.held_since_ms is not None)


def reasons(record: Record, at: Said, then: Said | None, *, same_policy: bool) -> list[Why]:
    """Why a replica's answer is not what the samples say of the moment; empty when it is.

    Args:
        record: the newest of the replica at that moment.
        at: what the samples say of the moment, by the policy of that time.
        then: what they say today of the instant of the answer, by the policy that the replica had; None where its
            samples are no longer kept.
        same_policy: whether the replica had the policy of the moment.
    """
    if agrees(record, at.told):
        return []
    if record.reason == FROZEN:
        return [Why.FROZEN]
    if record.reason in _WITHOUT_STORE:
        return [Why.STORE_AWAY]
    found = [Why.OVERRIDES] if record.overrides else []
    if not same_policy:
        found.append(Why.OTHER_POLICY)
    if then is None:
        return found or [Why.DROPPED]
    if agrees(record, then.told):
        if (at.judgement.at_ms or 0) > (then.judgement.at_ms or 0):
            found.append(Why.NEWER_ROUNDS)
        return found or [Why.TIME_PASSED]
    found.append(_since_told(record, then))
    return found


def _since_told(record: Record, then: Said) -> Why:
    """What changed of the answer's own instant since it was told: only samples that came later can."""
    newest, seen = then.judgement.at_ms, record.snapshot_ms
    if newest is None or (seen is not None and newest < seen):
        return Why.NOT_KNOWN
    if newest == seen:
        return Why.FILLED_LATER
    return Why.SNAPSHOT if seen is not None and record.told_ms - newest <= SNAPSHOT_MS else Why.LATE_ROUNDS


def current(records: Sequence[Record], at_ms: int) -> list[Record]:
    """Of each replica's newest records those that say something of the moment."""
    return [one for one in records if at_ms - one.told_ms <= TOLD_AGAIN_MS + ASKED_WITHIN_MS]
