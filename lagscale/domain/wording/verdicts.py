"""Sentences for verdicts, answers and value changes: the evidence, and what to check where the verdict is unknown.

The API shows them, the scaler puts them into status details. They contain no address and no other tenant's name. Other
modules of sentences take the formats of numbers from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lagscale.domain.explain.decision_diff import ACTIVATION, LAST_KNOWN, TIME_LAG, ValueChange, compute_value_changes
from lagscale.domain.policy.policy import Metric, PersistenceScope, Policy
from lagscale.domain.verdict.contract import Answer, Judgment, Reason, Verdict
from lagscale.domain.verdict.value import ValueRule

Names = Mapping[int, str]
_TOLERANCE = (
    " The HPA changes nothing within its tolerance, 10 % by default, so it may stay a few replicas below that number."
)


def describe_verdict(judgment: Judgment, policy: Policy, names: Names | None = None) -> str:
    """Why the verdict is what it is.

    Args:
        judgment: the verdict with its evidence.
        policy: applied to it.
        names: target id -> topic; without it topics are not named.
    """
    text = _DESCRIBERS[judgment.reason](judgment, policy, names or {})
    changes = compute_value_changes(judgment, policy)
    if judgment.verdict is Verdict.CALM and changes:
        text += f" The value is {format_number(changes[-1].after)} nevertheless: {_RULES[changes[-1].rule](judgment, policy)}."
    return text


def describe_change(change: ValueChange, judgment: Judgment, policy: Policy) -> str:
    """What a rule of the value did, and why."""
    text = _RULES[change.rule](judgment, policy)
    tolerance = _TOLERANCE if change.rule in {ValueRule.REPLICA_CAP, ValueRule.LAGGING_CAP} else ""
    return f"{text[0].upper()}{text[1:]}.{tolerance}"


def describe_answer(judgment: Judgment, policy: Policy, answer: Answer | None) -> str:
    """What KEDA gets: a measured, last-known or activating answer, or an error."""
    if answer is None:
        return (
            "KEDA gets an error: where minReplicaCount is 1 or more, it keeps the current replicas or uses its fallback; at 0 it "
            "may scale to zero."
        )
    state = "active" if answer.active else "inactive"
    if answer.last_known_ms is not None:
        age = format_seconds(judgment.now_ms - answer.last_known_ms)
        return (
            f"KEDA gets the last-known answer, {age} old, at most {format_seconds(policy.hold_ms)}: "
            f"value {format_number(answer.value)}, {state}."
        )
    if judgment.value is None:
        return f"There is backlog and the group has no members: KEDA gets value {format_number(answer.value)}, active, to activate the group from zero."
    return f"KEDA gets value {format_number(answer.value)}, {state}."


def _lasted(judgment: Judgment, policy: Policy, names: Names) -> str:
    island = judgment.island
    what = "Lag has been" if island is None else f"{_format_subject(judgment, policy, names)} has been"
    span = "" if island is None else f" for {format_seconds(island.span_ms)}"
    value = judgment.value or 0.0
    changes = compute_value_changes(judgment, policy)
    limit = f" ({_RULES[changes[-1].rule](judgment, policy)})" if changes else ""
    missing = f"; {_format_missing(judgment)} without a fresh sample" if judgment.missing else ""
    return (
        f"{what} above {_format_threshold(policy)}{span}, and sustainSeconds is {format_seconds(policy.sustain_ms)}: "
        f"total lag {format_number(judgment.total)}, value {format_number(value)}{limit}{missing}."
    )


def _no_breach(judgment: Judgment, policy: Policy, _names: Names) -> str:
    what = "The total lag is not" if policy.persistence_scope is PersistenceScope.TOTAL else "No partition has lag"
    return f"{what} above {_format_threshold(policy)}; total lag {format_number(judgment.total)}."


def _not_yet(judgment: Judgment, policy: Policy, names: Names) -> str:
    island = judgment.island
    if island is None:
        return f"Lag is above {_format_threshold(policy)}, but not yet for {format_seconds(policy.sustain_ms)}."
    return (
        f"{_format_subject(judgment, policy, names)} has been above {_format_threshold(policy)} for "
        f"{format_seconds(island.span_ms)}; sustained in {format_seconds(policy.sustain_ms - island.span_ms)} "
        f"(sustainSeconds {format_seconds(policy.sustain_ms)})."
    )


def _no_data(_judgment: Judgment, policy: Policy, _names: Names) -> str:
    return (
        "Not every topic has a sample yet; the first is due within two sampling intervals of "
        f"{format_seconds(policy.sampling_ms)}. If this persists, check the states of the cluster and the scraper."
    )


def _nothing_to_measure(_judgment: Judgment, policy: Policy, _names: Names) -> str:
    if policy.partition_limitation:
        return "Nothing to measure: the topic has none of the partitions in partitionLimitation; correct it."
    return (
        "Nothing to measure: the monitor has no topic with partitions. If it lists no topics, they are discovered every "
        "few seconds: create a topic that matches topicPattern, or let the group commit on one."
    )


def _no_topic(judgment: Judgment, _policy: Policy, names: Names) -> str:
    topics = [names[target] for target in judgment.absent if target in names]
    named = f": {', '.join(topics)}" if topics else ""
    return f"None of the topics exists{named}. Create the topic or correct the monitor."


def _stale(judgment: Judgment, policy: Policy, _names: Names) -> str:
    age = f" is {format_seconds(judgment.now_ms - judgment.at_ms)} old" if judgment.at_ms is not None else " is too old"
    return (
        f"The newest sample{age}, staleAfterSeconds is {format_seconds(policy.stale_after_ms)}: "
        "check the states of the cluster and the scraper."
    )


def _some_missing(judgment: Judgment, policy: Policy, _names: Names) -> str:
    return (
        f"{_format_missing(judgment)} without a sample within staleAfterSeconds {format_seconds(policy.stale_after_ms)}, "
        "and calm requires all of them: check the states of the monitor's targets."
    )


def _start_unknown(judgment: Judgment, policy: Policy, names: Names) -> str:
    island, time_lag = judgment.island, judgment.time_lag
    if policy.metric is Metric.TIME_LAG and time_lag is not None and time_lag.upper_ms is None:
        return (
            f"The oldest unread message has waited for at least {format_seconds(time_lag.lower_ms)}, longer than anything "
            f"stored; whether the time lag stays above {format_number(policy.lag_threshold)} s for "
            f"{format_seconds(policy.sustain_ms)} is determined once the samples reach back far enough."
        )
    if island is None:
        return (
            f"Lag is above {_format_threshold(policy)}, with an unknown start; determined after at most "
            f"sustainSeconds {format_seconds(policy.sustain_ms)}."
        )
    left = max(0, policy.sustain_ms - island.span_ms)
    return (
        f"{_format_subject(judgment, policy, names)} has been above {_format_threshold(policy)} for at least "
        f"{format_seconds(island.span_ms)}, with an unknown start; whether it lasts {format_seconds(policy.sustain_ms)} "
        f"is determined in {format_seconds(left)}."
    )


def _activity(_judgment: Judgment, policy: Policy, _names: Names) -> str:
    return (
        "No sustained lag, but activity is undetermined until samples cover "
        f"{format_seconds(max(policy.work_ms, policy.activation_sustain_ms))}."
    )


def _members_unknown(judgment: Judgment, _policy: Policy, _names: Names) -> str:
    return (
        f"Lag is sustained, but {_format_missing(judgment)} without a fresh sample and the number of group members is "
        "unknown, so the value could drop below the current replicas: check the state of the cluster."
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


def _scale_up(_judgment: Judgment, policy: Policy) -> str:
    return f"the lowest value of scaleUpStabilization {format_seconds(policy.scale_up_ms)}"


def _scale_down(_judgment: Judgment, policy: Policy) -> str:
    return f"the highest value of scaleDownStabilization {format_seconds(policy.scale_down_ms)}"


def _last_known(_judgment: Judgment, policy: Policy) -> str:
    return f"the last-known answer, for at most holdSeconds {format_seconds(policy.hold_ms)}"


#: Rule that changed a value -> what it did.
_RULES: Mapping[str, Callable[[Judgment, Policy], str]] = {
    ValueRule.ACTIVE_VALUE: lambda *_: "activeValue, because the group is active",
    ValueRule.STUCK: _without_stuck,
    ValueRule.EVEN_SPLIT: lambda *_: "a replica count that divides the partitions evenly",
    ValueRule.REPLICA_CAP: lambda *_: "capped by the number of partitions",
    ValueRule.LAGGING_CAP: lambda *_: "capped by the number of partitions with lag",
    ValueRule.RECOVERING: lambda *_: "capped at the current members, because the backlog is recovering",
    ValueRule.FLOOR: lambda *_: "not below the current members, because some partitions are not measured",
    ValueRule.SCALE_UP: _scale_up,
    ValueRule.SCALE_DOWN: _scale_down,
    TIME_LAG: lambda *_: "in seconds: the greatest time lag times the current replicas",
    LAST_KNOWN: _last_known,
    ACTIVATION: lambda *_: "targetLag, to activate one replica of a group without members",
}


def _format_subject(judgment: Judgment, policy: Policy, names: Names) -> str:
    island = judgment.island
    if island is None or island.partition is None or policy.persistence_scope is PersistenceScope.TOTAL:
        return "The total lag"
    topic = names.get(island.target_id) if island.target_id is not None else None
    return f"Partition {island.partition} of {topic}" if topic else f"Partition {island.partition}"


def _format_threshold(policy: Policy) -> str:
    number = format_number(policy.lag_threshold)
    return f"a time lag of {number} s" if policy.metric is Metric.TIME_LAG else number


def _format_missing(judgment: Judgment) -> str:
    verb = "is" if judgment.missing == 1 else "are"
    return f"{format_number(judgment.missing)} of {format_number(judgment.partitions)} partitions {verb}"


def format_number(value: float) -> str:
    """With thousands separators and at most three decimals."""
    return f"{value:,.3f}".rstrip("0").rstrip(".")


def format_seconds(milliseconds: int) -> str:
    """Milliseconds as seconds with their unit."""
    return f"{format_number(milliseconds / 1000)} s"


def format_age(milliseconds: int) -> str:
    """Like `format_seconds`, but in whole seconds from 10 s on."""
    seconds = milliseconds / 1000
    return f"{format_number(seconds if seconds < 10 else round(seconds))} s"
