"""States of partitions and groups in sentences that a person on call understands. Pure; the API shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from lagscale.domain.group_status.hot_partitions import HOT_TIMES
from lagscale.domain.group_status.rules import SEVERITY, Condition, GroupConditions, PartitionCondition, Why


def partition_sentence(one: PartitionCondition) -> str:
    """Why the partition's state is what it is, with its numbers, and what is to be known beside it."""
    told = [_TELLERS[one.why](one)]
    if one.lost:
        told.append(f"{one.lost:,} messages were lost to retention before they were read.")
    if one.stuck:
        told.append("It is stuck: the group has members, and none of them gets on here.")
    if one.hot:
        told.append(f"It is hot: at least {HOT_TIMES} times the lag of the topic's other partitions.")
    return " ".join(told)


def group_sentence(found: GroupConditions) -> str:
    """How many partitions are in which state, the worst first."""
    if not found.partitions:
        return "Nothing is measured yet, or no topic of the monitor has partitions: look at the monitor's health."
    counts = Counter(one.condition for one in found.partitions)
    number = len(found.partitions)
    if counts[Condition.OK] == number and not found.unmeasured:
        return "The only partition is ok." if number == 1 else f"All {number:,} partitions are ok."
    told = [f"{counts[state]:,} {state.value}" for state in reversed(SEVERITY) if counts[state]]
    late = len(found.unmeasured)
    missing = f" {late:,} of the topics {'was' if late == 1 else 'were'} not measured lately." if late else ""
    return f"Of {number:,} partition{'s' if number > 1 else ''}: {', '.join(told)}.{missing}"


def _span(one: PartitionCondition) -> str:
    return _seconds(0 if one.at_ms is None or one.then_ms is None else one.at_ms - one.then_ms)


def _no_progress(one: PartitionCondition) -> str:
    since = "at least " if one.since_earlier else ""
    whose = (
        "while the group had members"
        if one.condition is Condition.STALL
        else "and the group was without a known member"
    )
    if one.uncommitted:
        return f"Nothing was committed for {since}{_span(one)}, {whose}; {one.lag:,} messages wait."
    return f"The commit has stood at {one.position:,} for {since}{_span(one)}, {whose}; {one.lag:,} messages wait."


#: Rule -> its sentence.
_TELLERS: Final[Mapping[Why, Callable[[PartitionCondition], str]]] = {
    Why.NO_SAMPLE: lambda _: "There is no sample of it; look at the state of the monitor's targets.",
    Why.STALE: lambda _: (
        "Its newest sample is older than staleAfterSeconds; look at the state of the monitor's targets."
    ),
    Why.NO_COMMIT: lambda _: (
        "The group has no commit here, and offsetResetPolicy latest counts nothing before the first."
    ),
    Why.NOTHING_WAITS: lambda _: "Nothing waits.",
    Why.WENT_BACK: lambda one: (
        f"The commit went back within the last {_span(one)} and is not yet where it was; {one.lag:,} messages wait."
    ),
    Why.CAUGHT_UP: lambda one: f"{one.lag:,} messages wait; within the last {_span(one)} nothing waited.",
    Why.JUST_BEGUN: lambda one: f"{one.lag:,} messages wait; the partition, or its log, began {_span(one)} ago.",
    Why.TOO_SHORT: lambda one: (
        f"{one.lag:,} messages wait, and the samples reach back {_span(one)} without a gap: too short to tell."
    ),
    Why.NO_PROGRESS: _no_progress,
    Why.LAG_NEVER_FELL: lambda one: (
        f"Lag went from {one.lag_then:,} to {one.lag:,} in {_span(one)} and never fell, though the commit advanced by "
        f"{one.advanced:,}: the group is too slow."
    ),
    Why.LAG_FALLS: lambda one: (
        f"{one.lag:,} messages wait, {one.lag_then:,} did {_span(one)} ago; lag falls at times, and the commit advanced "
        f"by {one.advanced:,}."
    ),
}


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:,.3f}".rstrip("0").rstrip(".") + " s"
