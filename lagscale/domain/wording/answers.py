"""What KEDA was told, in a sentence, and why the samples say something else. Pure; the API shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from lagscale.domain.explain.decision_diff import FROZEN, DiffReason, RecordedDecision
from lagscale.domain.verdict.freezes import Freeze
from lagscale.domain.wording.numbers import format_age, format_number

#: Reasons reach Kubernetes events, which are short.
_MAX_REASON_LENGTH: Final = 200


@dataclass(frozen=True, slots=True)
class PointInTime:
    """A moment: its time, and the version of the policy that was valid."""

    at_ms: int
    version: int


def describe_decisions(decisions: Sequence[RecordedDecision], before: RecordedDecision | None, at_ms: int) -> str:
    """What KEDA was told at a moment.

    Args:
        decisions: of each replica the one that speaks of the moment.
        before: the newest older one, if no replica has one of the moment.
        at_ms: the moment.
    """
    if not decisions:
        if before is None:
            return "No answer to KEDA is on record."
        age = format_age(at_ms - before.decided_ms)
        return f"No answer to KEDA is on record for this moment; the last one before, {age} earlier, was {describe_decision(before)}."
    answers: dict[str, list[str]] = {}
    for decision in decisions:
        answers.setdefault(describe_decision(decision), []).append(decision.replica)
    if len(answers) == 1:
        return f"KEDA was told {next(iter(answers))}."
    parts = "; ".join(f"{text} by {', '.join(sorted(set(replicas)))}" for text, replicas in answers.items())
    return f"KEDA was not told the same by all: {parts}."


def describe_decision(decision: RecordedDecision) -> str:
    """An answer, as a part of a sentence."""
    if decision.code != "OK" or decision.value is None:
        return f"an error ({decision.code}, {decision.reason})"
    state = "active" if decision.active else "inactive"
    answer = f"value {format_number(decision.value)}, {state}"
    if decision.reason == FROZEN:
        return f"what was known when it was frozen: {answer}"
    if decision.last_known:
        return f"the last known answer, held: {answer}"
    return f"{answer}, to wake the group" if decision.verdict == "unknown" else answer


def describe_diff(reasons: Sequence[DiffReason], decision: RecordedDecision, point: PointInTime) -> str:
    """Why a replica's answer is not what the samples say."""
    return " ".join(_DESCRIBERS[reason](decision, point) for reason in reasons)


def _frozen(decision: RecordedDecision, _point: PointInTime) -> str:
    if decision.code == "OK":
        return "It was frozen, so KEDA got what was known before, whatever the samples said."
    return "It was frozen, and nothing was known before that could be held."


def _store_unavailable(decision: RecordedDecision, _point: PointInTime) -> str:
    if decision.code == "OK":
        return "The store did not answer this replica, so it told what it remembered."
    return "The store did not answer this replica, and it remembered nothing that could be held."


def _overrides(decision: RecordedDecision, _point: PointInTime) -> str:
    keys = ", ".join(f"{name} {text}" for name, text in sorted((decision.overrides or {}).items()))
    return f"The ScaledObject gave keys of its own: {keys}."


def _other_policy(decision: RecordedDecision, point: PointInTime) -> str:
    registration = "another version" if decision.version is None else f"version {decision.version}"
    return f"This replica knew {registration} of the registration; version {point.version} was valid at the moment."


def _newer_rounds(decision: RecordedDecision, point: PointInTime) -> str:
    return (
        f"It was told {_describe_age(decision, point)}, and newer rounds have come between; "
        "no other answer of this replica is on record until the moment."
    )


def _time_passed(decision: RecordedDecision, point: PointInTime) -> str:
    return f"It was told {_describe_age(decision, point)}; by the moment its samples had gone stale, or the hold had run out."


_DESCRIBERS: Mapping[DiffReason, Callable[[RecordedDecision, PointInTime], str]] = {
    DiffReason.FROZEN: _frozen,
    DiffReason.STORE_UNAVAILABLE: _store_unavailable,
    DiffReason.OVERRIDES: _overrides,
    DiffReason.OTHER_POLICY: _other_policy,
    DiffReason.NEWER_ROUNDS: _newer_rounds,
    DiffReason.TIME_PASSED: _time_passed,
    DiffReason.SNAPSHOT: lambda *_: (
        "It was told from a snapshot, which serves for about a second; the newest round came in it."
    ),
    DiffReason.LATE_ROUNDS: lambda *_: "Newer rounds of that time reached the store only after it was told.",
    DiffReason.FILLED_LATER: lambda *_: (
        "Its newest round is the same, but samples of before reached the store after it was told, or only a part of "
        "the topics was measured then."
    ),
    DiffReason.DROPPED: lambda *_: "The samples that it was told from are no longer kept.",
    DiffReason.UNEXPLAINED: lambda *_: "Why is not on record.",
}


def describe_freezes(freezes: Sequence[Freeze], *, has_answer: bool) -> str:
    """What KEDA's events and explanations say.

    Args:
        freezes: those in force, at least one.
        has_answer: whether there is an answer that is held.
    """
    last = max(freezes, key=lambda one: one.until_ms)
    until = datetime.fromtimestamp(last.until_ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    reason = last.reason[:_MAX_REASON_LENGTH]
    if has_answer:
        return f"Frozen until {until} ({reason}): KEDA gets the last answer that was known."
    return (
        f"Frozen until {until} ({reason}), and no answer was known before that could be held; "
        "`lagscale unfreeze` ends it."
    )


def _describe_age(decision: RecordedDecision, point: PointInTime) -> str:
    return f"{format_age(point.at_ms - decision.decided_ms)} before the moment"
