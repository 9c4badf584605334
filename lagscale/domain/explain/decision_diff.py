"""Value changes by rule, and why recorded answers differ from the evaluation.

The API builds explanations from these; `wording` has the sentences.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from lagscale.domain.policy.policy import Metric, Policy
from lagscale.domain.verdict.contract import Answer, Judgment, Verdict
from lagscale.domain.verdict.value import Load, ValueRule, compute_steps, count_replicas
from lagscale.errors import StoreTimeout, StoreUnavailable

#: Not rules of the value: the source of an answer while the verdict is unknown.
LAST_KNOWN = "last_known"
ACTIVATION = "activation"
#: With `metric: timeLag`: the conversion from messages to seconds, with which the value starts.
TIME_LAG = "time_lag"
#: A scaler records an answer when it changes, and again after this interval.
REPEAT_INTERVAL_MS = 300_000
#: The longest interval between two calls of KEDA; a decision older than the sum of both no longer applies.
MAX_CALL_INTERVAL_MS = 60_000
#: A snapshot is reused for about a second, and recording takes some time.
SNAPSHOT_MS = 3_000
#: Stored reasons of decisions during a freeze, and of those without an answer of the store.
FROZEN = "frozen"
STORE_SILENT = "store_silent"
#: The reasons of decisions without the store.
_WITHOUT_STORE = frozenset({STORE_SILENT, StoreUnavailable.__name__, StoreTimeout.__name__})


@dataclass(frozen=True, slots=True)
class ValueChange:
    """One rule that changed the value. `before` is None while the verdict is unknown.

    `rule` is one of `ValueRule`, or `TIME_LAG`, `LAST_KNOWN` or `ACTIVATION`.
    """

    rule: str
    before: float | None
    after: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The judgment of one instant by one policy, and the answer for KEDA that follows from it."""

    judgment: Judgment
    answer: Answer | None


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """An answer to KEDA as the replica recorded it; it never changes.

    Attributes:
        snapshot_ms: the newest round of its snapshot; None without one, and without the store.
        code: of gRPC; any other than `OK` is an error.
        version: of the registration; None in rows of an earlier release.
        overrides: policy keys that the ScaledObject set.
    """

    replica: str
    decided_ms: int
    snapshot_ms: int | None
    verdict: str
    value: float | None
    active: bool | None
    last_known: bool
    reason: str
    code: str
    version: int | None = None
    overrides: Mapping[str, str] | None = None


class DiffReason(StrEnum):
    """Why a recorded answer differs from the evaluation."""

    FROZEN = "frozen"  # the monitor was frozen, so it was not judged
    STORE_UNAVAILABLE = "store_unavailable"  # the store was unavailable to the replica
    OVERRIDES = "overrides"  # the ScaledObject overrides policy keys
    OTHER_POLICY = "other_policy"  # the replica had another version of the registration
    NEWER_ROUNDS = "newer_rounds"  # rounds arrived between the answer and the point in time
    TIME_PASSED = "time_passed"  # the same rounds, but they became stale, or holdSeconds expired
    SNAPSHOT = "snapshot"  # the newest round arrived while a snapshot was reused
    LATE_ROUNDS = "late_rounds"  # newer rounds of that time reached the store after the answer
    FILLED_LATER = "filled_later"  # the newest round is the same, but earlier samples are not
    DROPPED = "dropped"  # the samples behind the answer are past retention
    UNEXPLAINED = "unexplained"  # none of these


def compute_value_changes(judgment: Judgment, policy: Policy, answer: Answer | None = None) -> list[ValueChange]:
    """All rules that changed the value, in order; the first one changed the total.

    Args:
        judgment: with its evidence.
        policy: applied to it.
        answer: for KEDA; only a last-known or activating answer adds a change.
    """
    if judgment.value is None:
        if answer is None:
            return []
        return [ValueChange(ACTIVATION if answer.last_known_ms is None else LAST_KNOWN, None, answer.value)]
    raw = judgment.value if judgment.raw is None else judgment.raw
    scale_up_value = raw if judgment.scale_up_value is None else judgment.scale_up_value
    made: list[ValueChange] = []
    last = ValueRule.SCALE_DOWN
    if judgment.verdict is Verdict.SUSTAINED:
        made = _compute_rule_changes(judgment, policy)
        if made and judgment.incomplete and made[-1].after > raw:
            # Only some of the topics were judged: then the floor applies last, after the windows.
            made, last = _compute_rule_changes(replace(judgment, incomplete=False), policy), ValueRule.FLOOR
    elif raw:
        made.append(ValueChange(ValueRule.ACTIVE_VALUE.value, 0.0, raw))
    for rule, before, after in ((ValueRule.SCALE_UP, raw, scale_up_value), (last, scale_up_value, judgment.value)):
        if after != before:
            made.append(ValueChange(rule.value, before, after))
    return made


def _compute_rule_changes(judgment: Judgment, policy: Policy) -> list[ValueChange]:
    """The changes up to the value before stabilization."""
    made: list[ValueChange] = []
    amount_milli = (judgment.total - judgment.stuck_lag) * 1000
    if judgment.stuck_lag:
        made.append(ValueChange(ValueRule.STUCK.value, float(judgment.total), amount_milli / 1000))
    if policy.metric is Metric.TIME_LAG and judgment.time_lag is not None:
        seconds_milli = judgment.time_lag.estimate_ms * max(1, count_replicas(judgment.members or 0, policy))
        made.append(ValueChange(TIME_LAG, amount_milli / 1000, seconds_milli / 1000))
        amount_milli = seconds_milli
    load = Load(
        amount_milli=amount_milli,
        partitions=judgment.partitions,
        lagging=judgment.lagging,
        recovering=judgment.recovering,
        members=judgment.members,
        incomplete=judgment.incomplete,
    )
    value = amount_milli / 1000
    for step in compute_steps(load, policy):
        made.append(ValueChange(step.rule.value, value, step.value))
        value = step.value
    return made


def is_same_answer(decision: RecordedDecision, answer: Answer | None) -> bool:
    """Whether a recorded answer equals that of the evaluation."""
    if answer is None or decision.code != "OK":
        return answer is None and decision.code != "OK"
    same = decision.value is not None and math.isclose(decision.value, answer.value, rel_tol=1e-9, abs_tol=1e-9)
    return same and decision.active == answer.active and decision.last_known == (answer.last_known_ms is not None)


def find_diff_reasons(
    decision: RecordedDecision, at: Evaluation, then: Evaluation | None, *, same_policy: bool
) -> list[DiffReason]:
    """Why a replica's answer differs from the evaluation of a point in time; empty when it does not.

    Args:
        decision: the newest of the replica at that time.
        at: the evaluation of the point in time, by the policy of that time.
        then: the evaluation of the instant of the answer, by the policy that the replica had; None where the samples
            are past retention.
        same_policy: whether the replica had the policy of that time.
    """
    if is_same_answer(decision, at.answer):
        return []
    if decision.reason == FROZEN:
        return [DiffReason.FROZEN]
    if decision.reason in _WITHOUT_STORE:
        return [DiffReason.STORE_UNAVAILABLE]
    found = [DiffReason.OVERRIDES] if decision.overrides else []
    if not same_policy:
        found.append(DiffReason.OTHER_POLICY)
    if then is None:
        return found or [DiffReason.DROPPED]
    if is_same_answer(decision, then.answer):
        if (at.judgment.at_ms or 0) > (then.judgment.at_ms or 0):
            found.append(DiffReason.NEWER_ROUNDS)
        return found or [DiffReason.TIME_PASSED]
    found.append(_find_late_sample_reason(decision, then))
    return found


def _find_late_sample_reason(decision: RecordedDecision, then: Evaluation) -> DiffReason:
    """How the evaluation of the answer's own instant changed since: only samples that arrived later can change it."""
    newest, snapshot_ms = then.judgment.at_ms, decision.snapshot_ms
    if newest is None or (snapshot_ms is not None and newest < snapshot_ms):
        return DiffReason.UNEXPLAINED
    if newest == snapshot_ms:
        return DiffReason.FILLED_LATER
    return (
        DiffReason.SNAPSHOT
        if snapshot_ms is not None and decision.decided_ms - newest <= SNAPSHOT_MS
        else DiffReason.LATE_ROUNDS
    )


def select_current(decisions: Sequence[RecordedDecision], at_ms: int) -> list[RecordedDecision]:
    """The records, of each replica's newest ones, that apply to a point in time."""
    return [
        decision for decision in decisions if at_ms - decision.decided_ms <= REPEAT_INTERVAL_MS + MAX_CALL_INTERVAL_MS
    ]
