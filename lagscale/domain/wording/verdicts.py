"""A judgement in a sentence that a person on call understands: what was seen, and what to do where it is unknown.

Pure; the API shows the sentences, the scaler puts them into status details. They hold no address and no other
tenant's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lagscale.domain.explain.decision_diff import HELD, TIME_LAG, WAKING, Change, changes
from lagscale.domain.policy.policy import Metric, PersistenceScope, Policy
from lagscale.domain.verdict.contract import Judgement, Reason, Told, Verdict
from lagscale.domain.verdict.value import Rule

Names = Mapping[int, str]


def sentence(judgement: Judgement, policy: Policy, names: Names | None = None) -> str:
    """Why the verdict is what it is.

    Args:
        judgement: the verdict with its evidence.
        policy: by which it was judged.
        names: target id -> topic; without it topics are not named.
    """
    text = _TELLERS[judgement.reason](judgement, policy, names or {})
    made = changes(judgement, policy)
    if judgement.verdict is Verdict.CALM and made:
        text += f" The value is {_number(made[-1].after)} all the same: {_RULES[made[-1].rule](judgement, policy)}."
    return text


def change_sentence(change: Change, judgement: Judgement, policy: Policy) -> str:
    """What a rule of the value did, and why."""
    text = _RULES[change.rule](judgement, policy)
    return text[0].upper() + text[1:] + "."


def answer_sentence(judgement: Judgement, policy: Policy, told: Told | None) -> str:
    """What KEDA is told: measured, held, waking, or an error."""
    if told is None:
        return "KEDA gets an error, and keeps its replicas or uses its fallback."
    state = "active" if told.active else "inactive"
    if told.held_since_ms is not None:
        age = _seconds(judgement.now_ms - told.held_since_ms)
        return (
            f"KEDA gets the last known answer, held for {age} of at most {_seconds(policy.hold_ms)}: "
            f"value {_number(told.value)}, {state}."
        )
    if judgement.value is None:
        return f"Backlog is proven and the group has no members: KEDA is told to wake it, value {_number(told.value)}."
    return f"KEDA gets value {_number(told.value)}, {state}."


def _lasted(judgement: Judgement, policy: Policy, names: Names) -> str:
    island = judgement.island
    what = "Lag has been" if island is None else f"{_subject(judgement, policy, names)} has been"
    span = "" if island is None else f" for {_seconds(island.span_ms)}"
    value = judgement.value or 0.0
    made = changes(judgement, policy)
    limit = f" ({_RULES[made[-1].rule](judgement, policy)})" if made else ""
    missing = f"; {_missing(judgement)} not measured" if judgement.missing else ""
    return (
        f"{what} above {_level(policy)}{span}, and sustainSeconds is {_seconds(policy.sustain_ms)}: "
        f"{_number(judgement.total)} messages wait, the value is {_number(value)}{limit}{missing}."
    )


def _no_breach(judgement: Judgement, policy: Policy, _names: Names) -> str:
    what = "The total is not" if policy.persistence_scope is PersistenceScope.TOTAL else "No partition lags"
    return f"{what} above {_level(policy)}; {_number(judgement.total)} messages wait in all."


def _not_yet(judgement: Judgement, policy: Policy, names: Names) -> str:
    island = judgement.island
    if island is None:
        return f"Lag is above {_level(policy)}, not yet for {_seconds(policy.sustain_ms)}."
    return (
        f"{_subject(judgement, policy, names)} has been above {_level(policy)} for "
        f"{_seconds(island.span_ms)}; {_seconds(policy.sustain_ms - island.span_ms)} more make it "
        f"sustained (sustainSeconds {_seconds(policy.sustain_ms)})."
    )


def _no_data(_judgement: Judgement, policy: Policy, _names: Names) -> str:
    return (
        f"Measuring begins: not every topic has a sample yet, the first comes within two intervals of "
        f"{_seconds(policy.sampling_ms)}. If this lasts, look at the state of the cluster and of the scraper."
    )


def _nothing(_judgement: Judgement, policy: Policy, _names: Names) -> str:
    if policy.partition_limitation:
        return "There is nothing to measure: the topic has none of the partitions of partitionLimitation; correct it."
    return (
        "There is nothing to measure: the monitor has no topic with partitions. Where none is listed, topics are looked "
        "up every few seconds: create one that matches topicPattern, or let the group commit on one."
    )


def _no_topic(judgement: Judgement, _policy: Policy, names: Names) -> str:
    topics = [names[target] for target in judgement.absent if target in names]
    named = f": {', '.join(topics)}" if topics else ""
    return f"None of the topics exists{named}. Create the topic or correct the monitor."


def _stale(judgement: Judgement, policy: Policy, _names: Names) -> str:
    age = f" is {_seconds(judgement.now_ms - judgement.at_ms)} old" if judgement.at_ms is not None else " is too old"
    return (
        f"The newest sample{age}, staleAfterSeconds is {_seconds(policy.stale_after_ms)}: "
        "look at the state of the cluster and of the scraper."
    )


def _some_missing(judgement: Judgement, policy: Policy, _names: Names) -> str:
    return (
        f"{_missing(judgement)} not measured within staleAfterSeconds {_seconds(policy.stale_after_ms)}, and "
        "calm needs every one: look at the state of the monitor's targets."
    )


def _open(judgement: Judgement, policy: Policy, names: Names) -> str:
    island = judgement.island
    if island is None:
        return (
            f"Lag is above {_level(policy)}, and when that began is not known; it is known at the "
            f"latest after sustainSeconds {_seconds(policy.sustain_ms)}."
        )
    left = max(0, policy.sustain_ms - island.span_ms)
    return (
        f"{_subject(judgement, policy, names)} has been above {_level(policy)} for at least "
        f"{_seconds(island.span_ms)}; when that began is not known, so whether it lasts {_seconds(policy.sustain_ms)} "
        f"is known after {_seconds(left)} more."
    )


def _activity(_judgement: Judgement, policy: Policy, _names: Names) -> str:
    return (
        "There is no lasting lag, but whether the group is at work is not known until samples reach back "
        f"{_seconds(max(policy.work_ms, policy.activation_sustain_ms))}; wait that long."
    )


def _members(judgement: Judgement, _policy: Policy, _names: Names) -> str:
    return (
        f"Lag has lasted, but {_missing(judgement)} not measured, and the number of the group's members is not "
        "known, so a value could fall below what the present replicas stand on: look at the state of the cluster."
    )


_TELLERS: Mapping[Reason, Callable[[Judgement, Policy, Names], str]] = {
    Reason.LASTED: _lasted,
    Reason.NO_BREACH: _no_breach,
    Reason.NOT_YET: _not_yet,
    Reason.NO_DATA: _no_data,
    Reason.NOTHING_TO_MEASURE: _nothing,
    Reason.NO_TOPIC: _no_topic,
    Reason.STALE: _stale,
    Reason.MISSING: _some_missing,
    Reason.OPEN_ISLAND: _open,
    Reason.ACTIVITY_UNTOLD: _activity,
    Reason.MEMBERS_UNKNOWN: _members,
}


def _stuck(judgement: Judgement, _policy: Policy) -> str:
    count = len(judgement.stuck)
    return f"without the {_number(count)} stuck partition{'' if count == 1 else 's'}"


def _scale_up(_judgement: Judgement, policy: Policy) -> str:
    return f"only as high as has held for scaleUpStabilization {_seconds(policy.scale_up_ms)}"


def _scale_down(_judgement: Judgement, policy: Policy) -> str:
    return f"the highest of the last {_seconds(policy.scale_down_ms)}, scaleDownStabilization"


def _held(_judgement: Judgement, policy: Policy) -> str:
    return f"the last known answer, held for at most holdSeconds {_seconds(policy.hold_ms)}"


#: Rule that changed a value -> what it did.
_RULES: Mapping[str, Callable[[Judgement, Policy], str]] = {
    Rule.STUCK: _stuck,
    Rule.EVEN_SPLIT: lambda *_: "as many replicas as divide the partitions evenly",
    Rule.REPLICA_CAP: lambda *_: "capped by the partitions that can be read at once",
    Rule.LAGGING_CAP: lambda *_: "capped by the partitions that have lag",
    Rule.DRAINING: lambda *_: "capped at the present members, because the backlog is going by itself",
    Rule.FLOOR: lambda *_: "not below what the present members stand for, because not everything is measured",
    Rule.SCALE_UP: _scale_up,
    Rule.SCALE_DOWN: _scale_down,
    TIME_LAG: lambda *_: "in seconds: the greatest time lag, for each of the present replicas",
    HELD: _held,
    WAKING: lambda *_: "targetLag, to wake one replica of a group that has no members",
}


def _subject(judgement: Judgement, policy: Policy, names: Names) -> str:
    island = judgement.island
    if island is None or island.partition is None or policy.persistence_scope is PersistenceScope.TOTAL:
        return "The total"
    topic = names.get(island.target_id) if island.target_id is not None else None
    return f"Partition {island.partition} of {topic}" if topic else f"Partition {island.partition}"


def _level(policy: Policy) -> str:
    number = _number(policy.lag_threshold)
    return f"a time lag of {number} s" if policy.metric is Metric.TIME_LAG else number


def _missing(judgement: Judgement) -> str:
    verb = "is" if judgement.missing == 1 else "are"
    return f"{_number(judgement.missing)} of {_number(judgement.partitions)} partitions {verb}"


def _number(value: float) -> str:
    return f"{value:,.3f}".rstrip("0").rstrip(".")


def _seconds(milliseconds: int) -> str:
    return f"{_number(milliseconds / 1000)} s"
