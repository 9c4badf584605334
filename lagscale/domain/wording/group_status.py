"""States of partitions and groups in sentences that a person on call understands. Pure; the API shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from lagscale.domain.group_status.rules import (
    HOT_FACTOR,
    SEVERITY_ORDER,
    GroupStatus,
    PartitionStatus,
    Status,
    StatusRule,
)
from lagscale.domain.wording.numbers import format_seconds


def describe_partition(partition: PartitionStatus) -> str:
    """Why the partition's state is what it is, with its numbers, and what is to be known beside it."""
    parts = [_DESCRIBERS[partition.rule](partition)]
    if partition.lost:
        parts.append(f"{partition.lost:,} messages were lost to retention before they were read.")
    if partition.stuck:
        parts.append("It is stuck: the group has members, and none of them gets on here.")
    if partition.hot:
        parts.append(f"It is hot: at least {HOT_FACTOR} times the lag of the topic's other partitions.")
    return " ".join(parts)


def describe_group(group: GroupStatus) -> str:
    """How many partitions are in which state, the worst first."""
    if not group.partitions:
        return "Nothing is measured yet, or no topic of the monitor has partitions: look at the monitor's health."
    counts = Counter(partition.status for partition in group.partitions)
    number = len(group.partitions)
    if counts[Status.OK] == number and not group.unmeasured:
        return "The only partition is ok." if number == 1 else f"All {number:,} partitions are ok."
    parts = [f"{counts[state]:,} {state.value}" for state in reversed(SEVERITY_ORDER) if counts[state]]
    unmeasured_count = len(group.unmeasured)
    missing = (
        f" {unmeasured_count:,} of the topics {'was' if unmeasured_count == 1 else 'were'} not measured lately."
        if unmeasured_count
        else ""
    )
    return f"Of {number:,} partition{'s' if number > 1 else ''}: {', '.join(parts)}.{missing}"


def _format_span(partition: PartitionStatus) -> str:
    return format_seconds(
        0 if partition.at_ms is None or partition.start_ms is None else partition.at_ms - partition.start_ms
    )


def _no_progress(partition: PartitionStatus) -> str:
    since = "at least " if partition.may_have_stalled_before else ""
    whose = (
        "while the group had members"
        if partition.status is Status.STALL
        else "and the group was without a known member"
    )
    if partition.uncommitted:
        return f"Nothing was committed for {since}{_format_span(partition)}, {whose}; {partition.lag:,} messages wait."
    return f"The commit has stood at {partition.position:,} for {since}{_format_span(partition)}, {whose}; {partition.lag:,} messages wait."


#: Rule -> its sentence.
_DESCRIBERS: Final[Mapping[StatusRule, Callable[[PartitionStatus], str]]] = {
    StatusRule.NO_SAMPLE: lambda _: "There is no sample of it; look at the state of the monitor's targets.",
    StatusRule.STALE: lambda _: (
        "Its newest sample is older than staleAfterSeconds; look at the state of the monitor's targets."
    ),
    StatusRule.NO_COMMIT: lambda _: (
        "The group has no commit here, and offsetResetPolicy latest counts nothing before the first."
    ),
    StatusRule.NO_LAG: lambda _: "Nothing waits.",
    StatusRule.WENT_BACK: lambda partition: (
        f"The commit went back within the last {_format_span(partition)} and is not yet where it was; {partition.lag:,} messages wait."
    ),
    StatusRule.CAUGHT_UP: lambda partition: (
        f"{partition.lag:,} messages wait; within the last {_format_span(partition)} nothing waited."
    ),
    StatusRule.JUST_BEGUN: lambda partition: (
        f"{partition.lag:,} messages wait; the partition, or its log, began {_format_span(partition)} ago."
    ),
    StatusRule.TOO_SHORT: lambda partition: (
        f"{partition.lag:,} messages wait, and the samples reach back {_format_span(partition)} without a gap: too short to tell."
    ),
    StatusRule.NO_PROGRESS: _no_progress,
    StatusRule.LAG_NEVER_FELL: lambda partition: (
        f"Lag went from {partition.start_lag:,} to {partition.lag:,} in {_format_span(partition)} and never fell, though the commit advanced by "
        f"{partition.commit_delta:,}: the group is too slow."
    ),
    StatusRule.LAG_FALLS: lambda partition: (
        f"{partition.lag:,} messages wait, {partition.start_lag:,} did {_format_span(partition)} ago; lag falls at times, and the commit advanced "
        f"by {partition.commit_delta:,}."
    ),
}
