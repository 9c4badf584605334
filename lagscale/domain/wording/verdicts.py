"""A judgement in a sentence that a person on call understands: what was seen, and what to do where it is unknown.

Pure; the API shows the sentences, the scaler puts them into status details. They hold no address and no other
tenant's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lagscale.domain.explain.decision_diff import ACTIVATION, LAST_KNOWN, TIME_LAG, ValueChange, compute_value_changes
from lagscale.domain.policy.policy import Metric, PersistenceScope, Policy
from lagscale.domain.verdict.contract import Answer, Judgment, Reason, Verdict
from lagscale.domain.verdict.value import ValueRule
from lagscale.domain.wording.numbers import format_number, format_seconds

Names = Mapping[int, str]


def describe_verdict(judgment: Judgment, policy: Policy, names: Names | None = None) -> str:
    """Why the verdict is what it is.

    Args:
        judgment: the verdict with its evidence.
        policy: by which it was judged.
        names: target id -> topic; without it topics are not named.
    """
    text = _DESCRIBERS[judgment.reason](judgment, policy, names or {})
    changes = compute_value_changes(judgment, policy)
    if judgment.verdict is Verdict.CALM and changes:
        text += f" The value is {format_number(changes[-1].after)} all the same: {_RULES[changes[-1].rule](judgment, policy)}."
    return text


def describe_change(change: ValueChange, judgment: Judgment, policy: Policy) -> str:
    """What a rule of the value did, and why."""
    text = _RULES[change.rule](judgment, policy)
    return text[0].upper() + text[1:] + "."


def describe_answer(judgment: Judgment, policy: Policy, answer: Answer | None) -> str:
    """What KEDA is told: measured, held, waking, or an error."""
    if answer is None:
        return "KEDA gets an error, and keeps its replicas or uses its fallback."
    state = "active" if answer.active else "inactive"
    if answer.last_known_ms is not None:
        age = format_seconds(judgment.now_ms - answer.last_known_ms)
        return (
            f"KEDA gets the last known answer, held for {age} of at most {format_seconds(policy.hold_ms)}: "
            f"value {format_number(answer.value)}, {state}."
        )
    if judgment.value is None:
        return f"Backlog is proven and the group has no members: KEDA is told to wake it, value {format_number(answer.value)}."
    return f"KEDA gets value {format_number(answer.value)}, {state}."


def _lasted(judgment: Judgment, policy: Policy, names: Names) -> str:
    island = judgment.island
    what = "Lag has been" if island is None else f"{_format_subject(judgment, policy, names)} has been"
    span = "" if island is None else f" for {format_seconds(island.span_ms)}"
    value = judgment.value or 0.0
    changes = compute_value_changes(judgment, policy)
    limit = f" ({_RULES[changes[-1].rule](judgment, policy)})" if changes else ""
    missing = f"; {_format_missing(judgment)} not measured" if judgment.missing else ""
    return (
        f"{what} above {_format_threshold(policy)}{span}, and sustainSeconds is {format_seconds(policy.sustain_ms)}: "
        f"{format_number(judgment.total)} messages wait, the value is {format_number(value)}{limit}{missing}."
    )


def _no_breach(judgment: Judgment, policy: Policy, _names: Names) -> str:
    what = "The total is not" if policy.persistence_scope is PersistenceScope.TOTAL else "No partition lags"
    return f"{what} above {_format_threshold(policy)}; {format_number(judgment.total)} messages wait in all."


def _not_yet(judgment: Judgment, policy: Policy, names: Names) -> str:
    island = judgment.island
    if island is None:
        return f"Lag is above {_format_threshold(policy)}, not yet for {format_seconds(policy.sustain_ms)}."
    return (
        f"{_format_subject(judgment, policy, names)} has been above {_format_threshold(policy)} for "
        f"{format_seconds(island.span_ms)}; {format_seconds(policy.sustain_ms - island.span_ms)} more make it "
        f"sustained (sustainSeconds {format_seconds(policy.sustain_ms)})."
    )


def _no_data(_judgement: Judgment, policy: Policy, _names: Names) -> str:
    return (
        f"Measuring begins: not every topic has a sample yet, the first comes within two intervals of "
        f"{format_seconds(policy.sampling_ms)}. If this lasts, look at the state of the cluster and of the scraper."
    )


def _nothing_to_measure(_judgement: Judgment, policy: Policy, _names: Names) -> str:
    if policy.partition_limitation:
        return "There is nothing to measure: the topic has none of the partitions of partitionLimitation; correct it."
    return (
        "There is nothing to measure: the monitor has no topic with partitions. Where none is listed, topics are looked "
        "up every few seconds: create one that matches topicPattern, or let the group commit on one."
    )


def _no_topic(judgment: Judgment, _policy: Policy, names: Names) -> str:
    topics = [names[target] for target in judgment.absent if target in names]
    named = f": {', '.join(topics)}" if topics else ""
    return f"None of the topics exists{named}. Create the topic or correct the monitor."


def _stale(judgment: Judgment, policy: Policy, _names: Names) -> str:
    age = f" is {format_seconds(judgment.now_ms - judgment.at_ms)} old" if judgment.at_ms is not None else " is too old"
    return (
        f"The newest sample{age}, staleAfterSeconds is {format_seconds(policy.stale_after_ms)}: "
        "look at the state of the cluster and of the scraper."
    )


def _some_missing(judgment: Judgment, policy: Policy, _names: Names) -> str:
    return (
        f"{_format_missing(judgment)} not measured within staleAfterSeconds {format_seconds(policy.stale_after_ms)}, and "
        "calm needs every one: look at the state of the monitor's targets."
    )


def _start_unknown(judgment: Judgment, policy: Policy, names: Names) -> str:
    island = judgment.island
    if island is None:
        return (
            f"Lag is above {_format_threshold(policy)}, and when that began is not known; it is known at the "
            f"latest after sustainSeconds {format_seconds(policy.sustain_ms)}."
        )
    left = max(0, policy.sustain_ms - island.span_ms)
    return (
        f"{_format_subject(judgment, policy, names)} has been above {_format_threshold(policy)} for at least "
        f"{format_seconds(island.span_ms)}; when that began is not known, so whether it lasts {format_seconds(policy.sustain_ms)} "
        f"is known after {format_seconds(left)} more."
    )


def _activity(_judgement: Judgment, policy: Policy, _names: Names) -> str:
    return (
        "There is no lasting lag, but whether the group is at work is not known until samples reach back "
        f"{format_seconds(max(policy.work_ms, policy.activation_sustain_ms))}; wait that long."
    )


def _members_unknown(judgment: Judgment, _policy: Policy, _names: Names) -> str:
    return (
        f"Lag has lasted, but {_format_missing(judgment)} not measured, and the number of the group's members is not "
        "known, so a value could fall below what the present replicas stand on: look at the state of the cluster."
    )


_DESCRIBERS: Mapping[Reason, Callable[[Judgment, Policy, Names], str]] = {
    Reason.LASTED: _lasted,
    Reason.NO_BREACH: _no_breach,
    Reason.NOT_YET: _not_yet,
    Reason.NO_DATA: _no_data,
    Reason.NOTHING_TO_MEASURE: _nothing_to_measure,
    Reason.NO_TOPIC: _no_topic,
    Reason.STALE: _stale,
    Reason.MISSING: _some_missing,
    Reason.START_UNKNOWN: _start_unknown,
    Reason.ACTIVITY_UNDETERMINED: _activity,
    Reason.MEMBERS_UNKNOWN: _members_unknown,
}


def _without_stuck(judgment: Judgment, _policy: Policy) -> str:
    count = len(judgment.stuck)
    return f"without the {format_number(count)} stuck partition{'' if count == 1 else 's'}"


def _scale_up(_judgement: Judgment, policy: Policy) -> str:
    return f"only as high as has held for scaleUpStabilization {format_seconds(policy.scale_up_ms)}"


def _scale_down(_judgement: Judgment, policy: Policy) -> str:
    return f"the highest of the last {format_seconds(policy.scale_down_ms)}, scaleDownStabilization"


def _last_known(_judgement: Judgment, policy: Policy) -> str:
    return f"the last known answer, held for at most holdSeconds {format_seconds(policy.hold_ms)}"


#: Rule that changed a value -> what it did.
_RULES: Mapping[str, Callable[[Judgment, Policy], str]] = {
    ValueRule.STUCK: _without_stuck,
    ValueRule.EVEN_SPLIT: lambda *_: "as many replicas as divide the partitions evenly",
    ValueRule.REPLICA_CAP: lambda *_: "capped by the partitions that can be read at once",
    ValueRule.LAGGING_CAP: lambda *_: "capped by the partitions that have lag",
    ValueRule.RECOVERING: lambda *_: "capped at the present members, because the backlog is going by itself",
    ValueRule.FLOOR: lambda *_: "not below what the present members stand for, because not everything is measured",
    ValueRule.SCALE_UP: _scale_up,
    ValueRule.SCALE_DOWN: _scale_down,
    TIME_LAG: lambda *_: "in seconds: the greatest time lag, for each of the present replicas",
    LAST_KNOWN: _last_known,
    ACTIVATION: lambda *_: "targetLag, to wake one replica of a group that has no members",
}


def _format_subject(judgment: Judgment, policy: Policy, names: Names) -> str:
    island = judgment.island
    if island is None or island.partition is None or policy.persistence_scope is PersistenceScope.TOTAL:
        return "The total"
    topic = names.get(island.target_id) if island.target_id is not None else None
    return f"Partition {island.partition} of {topic}" if topic else f"Partition {island.partition}"


def _format_threshold(policy: Policy) -> str:
    number = format_number(policy.lag_threshold)
    return f"a time lag of {number} s" if policy.metric is Metric.TIME_LAG else number


def _format_missing(judgment: Judgment) -> str:
    verb = "is" if judgment.missing == 1 else "are"
    return f"{format_number(judgment.missing)} of {format_number(judgment.partitions)} partitions {verb}"
