"""What KEDA was told, in a sentence, and why the samples say something else. Pure; the API shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lagscale.domain.explain.decision_diff import FROZEN, Record, Why


@dataclass(frozen=True, slots=True)
class About:
    """A moment: its time, and the version of the policy that was valid."""

    at_ms: int
    version: int


def told_sentence(records: Sequence[Record], before: Record | None, at_ms: int) -> str:
    """What KEDA was told at a moment.

    Args:
        records: of each replica the one that speaks of the moment.
        before: the newest older one, if no replica has one of the moment.
        at_ms: the moment.
    """
    if not records:
        if before is None:
            return "No answer to KEDA is on record."
        age = _seconds(at_ms - before.told_ms)
        return (
            f"No answer to KEDA is on record for this moment; the last one before, {age} earlier, was {what(before)}."
        )
    answers: dict[str, list[str]] = {}
    for record in records:
        answers.setdefault(what(record), []).append(record.replica)
    if len(answers) == 1:
        return f"KEDA was told {next(iter(answers))}."
    told = "; ".join(f"{text} by {', '.join(sorted(set(replicas)))}" for text, replicas in answers.items())
    return f"KEDA was not told the same by all: {told}."


def what(record: Record) -> str:
    """An answer, as a part of a sentence."""
    if record.code != "OK" or record.value is None:
        return f"an error ({record.code}, {record.reason})"
    state = "active" if record.active else "inactive"
    answer = f"value {_number(record.value)}, {state}"
    if record.reason == FROZEN:
        return f"what was known when it was frozen: {answer}"
    if record.held:
        return f"the last known answer, held: {answer}"
    return f"{answer}, to wake the group" if record.verdict == "unknown" else answer


def why_sentence(whys: Sequence[Why], record: Record, moment: About) -> str:
    """Why a replica's answer is not what the samples say."""
    return " ".join(_TELLERS[why](record, moment) for why in whys)


def _frozen(record: Record, _moment: About) -> str:
    if record.code == "OK":
        return "It was frozen, so KEDA got what was known before, whatever the samples said."
    return "It was frozen, and nothing was known before that could be held."


def _store_away(record: Record, _moment: About) -> str:
    if record.code == "OK":
        return "The store did not answer this replica, so it told what it remembered."
    return "The store did not answer this replica, and it remembered nothing that could be held."


def _overrides(record: Record, _moment: About) -> str:
    keys = ", ".join(f"{name} {text}" for name, text in sorted((record.overrides or {}).items()))
    return f"The ScaledObject gave keys of its own: {keys}."


def _other_policy(record: Record, moment: About) -> str:
    known = "another version" if record.version is None else f"version {record.version}"
    return f"This replica knew {known} of the registration; version {moment.version} was valid at the moment."


def _newer_rounds(record: Record, moment: About) -> str:
    return (
        f"It was told {_ago(record, moment)}, and newer rounds have come between; "
        "no other answer of this replica is on record until the moment."
    )


def _time_passed(record: Record, moment: About) -> str:
    return f"It was told {_ago(record, moment)}; by the moment its samples had gone stale, or the hold had run out."


_TELLERS: Mapping[Why, Callable[[Record, About], str]] = {
    Why.FROZEN: _frozen,
    Why.STORE_AWAY: _store_away,
    Why.OVERRIDES: _overrides,
    Why.OTHER_POLICY: _other_policy,
    Why.NEWER_ROUNDS: _newer_rounds,
    Why.TIME_PASSED: _time_passed,
    Why.SNAPSHOT: lambda *_: (
        "It was told from a snapshot, which serves for about a second; the newest round came in it."
    ),
    Why.LATE_ROUNDS: lambda *_: "Newer rounds of that time reached the store only after it was told.",
    Why.FILLED_LATER: lambda *_: (
        "Its newest round is the same, but samples of before reached the store after it was told, or only a part of "
        "the topics was measured then."
    ),
    Why.DROPPED: lambda *_: "The samples that it was told from are no longer kept.",
    Why.NOT_KNOWN: lambda *_: "Why is not on record.",
}


def _ago(record: Record, moment: About) -> str:
    return f"{_seconds(moment.at_ms - record.told_ms)} before the moment"


def _number(value: float) -> str:
    return f"{value:,.3f}".rstrip("0").rstrip(".")


def _seconds(milliseconds: int) -> str:
    seconds = milliseconds / 1000
    return f"{_number(seconds if seconds < 10 else round(seconds))} s"
