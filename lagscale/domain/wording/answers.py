"""Sentences for recorded answers, why they differ from the evaluation, and freezes. The API shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from lagscale.domain.explain.decision_diff import FROZEN, DiffReason, RecordedDecision
from lagscale.domain.verdict.freezes import Freeze
from lagscale.domain.wording.verdicts import format_age, format_number

#: Reasons reach Kubernetes events, which are short.
_MAX_REASON_LENGTH: Final = 200


@dataclass(frozen=True, slots=True)
class PointInTime:
    """A point in time, and the version of the registration that was valid."""

    at_ms: int
    version: int


def describe_decisions(decisions: Sequence[RecordedDecision], before: RecordedDecision | None, at_ms: int) -> str:
    """The recorded answers to KEDA at a point in time.

    Args:
        decisions: of each replica the one that applies.
        before: the newest older one, if none applies.
        at_ms: the point in time.
    """
    if not decisions:
        if before is None:
            return "No answer to KEDA is recorded."
        age = format_age(at_ms - before.decided_ms)
        return f"No answer to KEDA is recorded for this time; the previous one, {age} earlier: {describe_decision(before)}."
    answers: dict[str, list[str]] = {}
    for decision in decisions:
        answers.setdefault(describe_decision(decision), []).append(decision.replica)
    if len(answers) == 1:
        return f"Answer to KEDA: {next(iter(answers))}."
    parts = "; ".join(f"{text} by {', '.join(sorted(set(replicas)))}" for text, replicas in answers.items())
    return f"Replicas answered KEDA differently: {parts}."


def describe_decision(decision: RecordedDecision) -> str:
    """An answer, as a part of a sentence."""
    if decision.code != "OK" or decision.value is None:
        return f"an error ({decision.code}, {decision.reason})"
    state = "active" if decision.active else "inactive"
    answer = f"value {format_number(decision.value)}, {state}"
    if decision.reason == FROZEN:
        return f"last-known answer of the freeze: {answer}"
    if decision.last_known:
        return f"last-known answer: {answer}"
    return f"{answer}, to activate the group from zero" if decision.verdict == "unknown" else answer


def describe_diff(reasons: Sequence[DiffReason], decision: RecordedDecision, point: PointInTime) -> str:
    """Why a replica's answer differs from the evaluation."""
    return " ".join(_DESCRIBERS[reason](decision, point) for reason in reasons)


def _frozen(decision: RecordedDecision, _point: PointInTime) -> str:
    if decision.code == "OK":
        return "Scaling was frozen, so KEDA got the last-known answer regardless of the samples."
    return "Scaling was frozen, and there was no last-known answer."


def _store_unavailable(decision: RecordedDecision, _point: PointInTime) -> str:
    if decision.code == "OK":
        return "The store was unavailable to this replica; it answered from its local cache."
    return "The store was unavailable to this replica, and its local cache had no last-known answer."


def _overrides(decision: RecordedDecision, _point: PointInTime) -> str:
    keys = ", ".join(f"{name} {text}" for name, text in sorted((decision.overrides or {}).items()))
    return f"The ScaledObject overrides policy keys: {keys}."


def _other_policy(decision: RecordedDecision, point: PointInTime) -> str:
    registration = "another version" if decision.version is None else f"version {decision.version}"
    return f"This replica had {registration} of the registration; version {point.version} was valid at that time."


def _newer_rounds(decision: RecordedDecision, point: PointInTime) -> str:
    return (
        f"Answered {_describe_age(decision, point)}; newer rounds arrived in between, and no other answer of this "
        "replica is recorded until then."
    )


def _time_passed(decision: RecordedDecision, point: PointInTime) -> str:
    return f"Answered {_describe_age(decision, point)}; since then its samples became stale, or holdSeconds expired."


_DESCRIBERS: Mapping[DiffReason, Callable[[RecordedDecision, PointInTime], str]] = {
    DiffReason.FROZEN: _frozen,
    DiffReason.STORE_UNAVAILABLE: _store_unavailable,
    DiffReason.OVERRIDES: _overrides,
    DiffReason.OTHER_POLICY: _other_policy,
    DiffReason.NEWER_ROUNDS: _newer_rounds,
    DiffReason.TIME_PASSED: _time_passed,
    DiffReason.SNAPSHOT: lambda *_: (
        "Answered from a snapshot, which is reused for about a second; the newest round arrived within it."
    ),
    DiffReason.LATE_ROUNDS: lambda *_: "Newer rounds of that time reached the store only after the answer.",
    DiffReason.FILLED_LATER: lambda *_: (
        "The newest round is the same, but earlier samples reached the store after the answer, or only some of the "
        "topics were measured then."
    ),
    DiffReason.DROPPED: lambda *_: "The samples behind this answer are past retention.",
    DiffReason.UNEXPLAINED: lambda *_: "The reason is not recorded.",
}


def describe_freezes(freezes: Sequence[Freeze], *, has_answer: bool) -> str:
    """The freezes of a monitor, for KEDA's events and for explanations.

    Args:
        freezes: those in force, at least one.
        has_answer: whether there is a last-known answer.
    """
    last = max(freezes, key=lambda one: one.until_ms)
    until = datetime.fromtimestamp(last.until_ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    reason = last.reason[:_MAX_REASON_LENGTH]
    if has_answer:
        return f"Frozen until {until} ({reason}): KEDA gets the last-known answer."
    return f"Frozen until {until} ({reason}); there is no last-known answer. End the freeze with `lagscale unfreeze`."


def _describe_age(decision: RecordedDecision, point: PointInTime) -> str:
    return f"{format_age(point.at_ms - decision.decided_ms)} before that time"
