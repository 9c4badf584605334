"""Sentences for the status of groups and partitions; the API shows them."""

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
from lagscale.domain.group_status.transactions import OpenTransaction
from lagscale.domain.policy.policy import IsolationLevel
from lagscale.domain.wording.numbers import format_count
from lagscale.domain.wording.verdicts import format_seconds


def describe_partition(partition: PartitionStatus) -> str:
    """Why a partition has its status, with the numbers; followed by lost messages, stuck and hot."""
    parts = [_DESCRIBERS[partition.rule](partition)]
    if partition.lost:
        verb = "was" if partition.lost == 1 else "were"
        parts.append(f"{format_count(partition.lost, 'message')} {verb} lost to retention before being read.")
    if partition.stuck:
        parts.append("Stuck: the group has members, but the commit does not advance.")
    if partition.hot:
        parts.append(f"Hot partition: at least {HOT_FACTOR} times the lag of the topic's other partitions.")
    return " ".join(parts)


def describe_group(group: GroupStatus) -> str:
    """How many partitions have which status, the worst first."""
    if not group.partitions:
        return "Nothing is measured yet, or no topic of the monitor has partitions: check the health of the monitor."
    counts = Counter(partition.status for partition in group.partitions)
    number = len(group.partitions)
    if counts[Status.OK] == number and not group.unmeasured:
        return "The only partition is ok." if number == 1 else f"All {number:,} partitions are ok."
    parts = [f"{counts[state]:,} {state.value}" for state in reversed(SEVERITY_ORDER) if counts[state]]
    unmeasured_count = len(group.unmeasured)
    missing = (
        f" {unmeasured_count:,} of the topics {'was' if unmeasured_count == 1 else 'were'} not measured recently."
        if unmeasured_count
        else ""
    )
    return f"Of {format_count(number, 'partition')}: {', '.join(parts)}.{missing}"


def describe_open_transaction(one: OpenTransaction, since: str, read: str, isolation: IsolationLevel) -> str:
    """What an open transaction holds back, since when, how that was measured, and what it means for the lag."""
    return (
        f"{describe_unstable(f'partition {one.partition} of {one.topic}', one.messages, isolation)} The last stable offset "
        f"was {one.stable_offset:,} from {since} or earlier until the newest reading at {read}."
    )


def describe_unstable(where: str, messages: int, isolation: IsolationLevel) -> str:
    """What lies behind the last stable offset, and what that means for the lag."""
    counts = (
        "they do not count as lag, and do not activate the workload"
        if isolation is IsolationLevel.READ_COMMITTED
        else "they count as lag; isolationLevel read_committed leaves them out"
    )
    return (
        f"{format_count(messages, 'message')} of {where} lie{'s' if messages == 1 else ''} behind an open "
        f"transaction. Consumers that read committed messages do not get them yet; {counts}."
    )


def _format_span(partition: PartitionStatus) -> str:
    return format_seconds(
        0 if partition.at_ms is None or partition.start_ms is None else partition.at_ms - partition.start_ms
    )


def _no_progress(partition: PartitionStatus) -> str:
    since = "at least " if partition.may_have_stalled_before else ""
    whose = "while the group had members" if partition.status is Status.STALL else "and the group had no known members"
    if partition.uncommitted:
        return f"No commit for {since}{_format_span(partition)}, {whose}; lag {partition.lag:,}."
    return f"The commit has not moved from {partition.position:,} for {since}{_format_span(partition)}, {whose}; lag {partition.lag:,}."


#: Rule -> its sentence.
_DESCRIBERS: Final[Mapping[StatusRule, Callable[[PartitionStatus], str]]] = {
    StatusRule.NO_SAMPLE: lambda _: "There is no sample; check the states of the monitor's targets.",
    StatusRule.STALE: lambda _: (
        "The newest sample is older than staleAfterSeconds; check the states of the monitor's targets."
    ),
    StatusRule.NO_COMMIT: lambda _: (
        "The group has no commit here, and offsetResetPolicy latest counts no lag before the first one."
    ),
    StatusRule.NO_LAG: lambda _: "No lag.",
    StatusRule.REWOUND: lambda partition: (
        f"The commit moved backwards within the last {_format_span(partition)} and has not caught up; lag {partition.lag:,}."
    ),
    StatusRule.CAUGHT_UP: lambda partition: (
        f"Lag {partition.lag:,}; it was 0 within the last {_format_span(partition)}."
    ),
    StatusRule.JUST_BEGUN: lambda partition: (
        f"Lag {partition.lag:,}; the partition, or its log, was created {_format_span(partition)} ago."
    ),
    StatusRule.TOO_SHORT: lambda partition: (
        f"Lag {partition.lag:,}; samples cover only {_format_span(partition)} without a gap, too short to decide."
    ),
    StatusRule.NO_PROGRESS: _no_progress,
    StatusRule.LAG_NEVER_FELL: lambda partition: (
        f"Lag went from {partition.start_lag:,} to {partition.lag:,} in {_format_span(partition)} and never fell, though the commit advanced by "
        f"{partition.commit_delta:,}: the group is too slow."
    ),
    StatusRule.LAG_FALLS: lambda partition: (
        f"Lag {partition.lag:,}, from {partition.start_lag:,} {_format_span(partition)} ago; it falls at times, and the commit advanced "
        f"by {partition.commit_delta:,}."
    ),
}
