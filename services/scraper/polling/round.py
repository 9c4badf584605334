"""Rounds: what a cluster answered about one target, and the row that it makes after the target's newest one.

Plain functions without clock and I/O; the poll fills `Polled`, the sink calls `row_after`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from lagscale.domain.lag.rounds import AGE_LIMIT_MS, Carried, Note, Row, TargetRound, extend, is_born
from lagscale.domain.lag.samples import Flag, Offsets, Sample, measure

Partition = tuple[str, int]
#: A group's commits: None where it has none; a partition that is not there could not be read.
Committed = Mapping[Partition, int | None]


@dataclass(frozen=True, slots=True)
class TopicSeen:
    """A topic's id, and for each of its partitions whether it has a leader."""

    topic_id: str
    partitions: Mapping[int, bool]


@dataclass(frozen=True, slots=True)
class Ends:
    """Log starts, high watermarks and last stable offsets; what could not be read is not there."""

    starts: Mapping[Partition, int]
    highs: Mapping[Partition, int]
    stables: Mapping[Partition, int]


@dataclass(frozen=True, slots=True)
class GroupSeen:
    """A group's number of members, and the code of its state."""

    members: int
    state: int


@dataclass(frozen=True, slots=True)
class Polled:
    """One target's answers in one round.

    Attributes:
        at_ms: when the first request was sent, by the database's clock.
        topic_id: None when there is no such topic.
        offsets: per partition that metadata named; None where it could not be read.
        interval_ms: the real polling interval of the target.
        ends_asked_ms: the brokers read the ends so long after `at_ms` at the earliest.
        ends_answered_ms: the brokers read the ends so long after `at_ms` at the latest.
    """

    at_ms: int
    topic_id: str | None
    offsets: tuple[Offsets | None, ...]
    interval_ms: int
    stale_after_ms: int
    limitation: str = ""
    members: int | None = None
    group_state: int | None = None
    ends_asked_ms: int | None = None
    ends_answered_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Before:
    """What is known of a target before this round: the topic's id, the epoch, the newest row."""

    topic_id: str | None = None
    epoch: int = 0
    row: Row | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """A row, and the topic's id and epoch where they are new."""

    row: Row
    topic_id: str | None = None
    new_id: bool = field(default=False)


def row_after(before: Before, polled: Polled) -> Made | None:
    """The row of this round; None when it is not later than the newest stored one, so its markers would be wrong."""
    if before.row is not None and polled.at_ms <= before.row.round.at_ms:
        return None
    if polled.topic_id is None:
        return Made(extend(before.row, _absent(before, polled)))
    new_id = polled.topic_id != before.topic_id
    epoch = before.epoch + 1 if new_id and before.topic_id is not None else before.epoch
    this = _present(before.row, polled, epoch)
    return Made(extend(before.row, this), polled.topic_id, new_id)


def _present(previous: Row | None, polled: Polled, epoch: int) -> TargetRound:
    count = len(polled.offsets)
    if previous is not None and previous.round.epoch == epoch and not previous.round.notes & Note.NO_TOPIC:
        # Partitions do not vanish under one topic id: fewer of them are missing ones.
        count = max(count, len(previous.round.samples))
    outside = _outside(polled.limitation, count)
    samples: list[Sample | None] = [None] * count
    for partition, offsets in enumerate(polled.offsets):
        if offsets is None or partition in outside:
            continue
        newest = None if previous is None else previous.newest(partition)
        born = is_born(previous, polled.at_ms, polled.interval_ms, partition)
        samples[partition] = _sample(offsets, newest, previous, epoch, born)
    return TargetRound(
        at_ms=polled.at_ms,
        epoch=epoch,
        samples=tuple(samples),
        outside=outside,
        members=polled.members,
        members_age_ms=None if polled.members is None else 0,
        group_state=polled.group_state,
        ends_asked_ms=polled.ends_asked_ms,
        ends_answered_ms=polled.ends_answered_ms,
    )


def _sample(offsets: Offsets, newest: Carried | None, previous: Row | None, epoch: int, born: bool) -> Sample:
    if newest is None or previous is None:
        return measure(offsets, None, born=born)
    same_id = previous.round.epoch == epoch and not newest.sample.flags & Flag.OLD_ID
    return measure(offsets, newest.sample, same_id=same_id, born=born, renewed=epoch > 0)


def _absent(before: Before, polled: Polled) -> TargetRound:
    """The topic is unknown: missing until it has been absent for long enough, then there is none."""
    previous = before.row
    age = 0
    if previous is not None and previous.round.absent_age_ms is not None:
        age = min(previous.round.absent_age_ms + polled.at_ms - previous.round.at_ms, AGE_LIMIT_MS)
    gone = previous is None or not previous.round.samples or age >= polled.stale_after_ms
    count = 0 if gone or previous is None else len(previous.round.samples)
    return TargetRound(
        at_ms=polled.at_ms,
        epoch=before.epoch,
        samples=(None,) * count,
        outside=_outside(polled.limitation, count),
        notes=Note.NO_TOPIC if gone else Note(0),
        members=polled.members,
        members_age_ms=None if polled.members is None else 0,
        group_state=polled.group_state,
        absent_age_ms=age,
    )


@lru_cache(maxsize=4096)
def _outside(limitation: str, partitions: int) -> frozenset[int]:
    """The partitions that a limitation such as `1,3,5-8` leaves out."""
    if not limitation.strip():
        return frozenset()
    inside: set[int] = set()
    # It was checked when it was registered.
    for first, last in re.findall(r"(\d+)(?:\s*-\s*(\d+))?", limitation):
        inside.update(range(int(first), int(last or first) + 1))
    return frozenset(range(partitions)) - inside
