"""Rounds of one target, and what the writer marks on each from the round before.

The markers let most verdicts read one row. The newest row holds everything that the next one needs, so a writer
that restarts, or takes over, only reads that row. Called by the scraper's sink and by the tests.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntFlag

from lagscale.domain.lag.samples import Flag, Sample

#: Greatest age that a marker tells, in milliseconds; also the age of knowledge where every partition is born.
AGE_LIMIT_MS = 2_000_000_000
#: A metadata answer older than this many polling intervals proves no birth.
BIRTH_INTERVALS = 2.5
_UNMOVING = Flag.UNCOMMITTED | Flag.LOST | Flag.RESET


class Note(IntFlag):
    """What is to be known of a whole row; stored as smallint."""

    NO_TOPIC = 1
    NO_COMMITS = 2  # the group had committed nothing on the topic, whether it existed or not: what follows is not born


@dataclass(frozen=True, slots=True)
class TargetRound:
    """One poll of one target, as the cluster answered.

    Attributes:
        at_ms: when the first request was sent, milliseconds of the database's clock since 1970.
        epoch: raised whenever the topic's id changed.
        samples: per partition that metadata named, in order; None where it is missing.
        outside: partitions that the limitation leaves out; their sample is None.
        members: group members, None when not read in this round.
        members_age_ms: age of that reading at `at_ms`.
        group_state: code of the group's state, None when not read.
        absent_age_ms: how long the topic has been absent; None while it is there.
        ends_asked_ms: the brokers read the ends so long after `at_ms` at the earliest; None when not known.
        ends_answered_ms: the brokers read the ends so long after `at_ms` at the latest; None when not known.
    """

    at_ms: int
    epoch: int
    samples: tuple[Sample | None, ...]
    outside: frozenset[int] = frozenset()
    notes: Note = Note(0)
    members: int | None = None
    members_age_ms: int | None = None
    group_state: int | None = None
    absent_age_ms: int | None = None
    ends_asked_ms: int | None = None
    ends_answered_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Carried:
    """The newest sample of a partition that is missing from a row, and its age at the row's time."""

    sample: Sample
    age_ms: int


@dataclass(frozen=True, slots=True)
class Markers:
    """The scalars of a row; see the columns of `lag_sample`. Lags are messages, ages milliseconds."""

    parts: int
    never: int
    oldest_age: int
    total_lag: int
    max_lag: int
    max_part: int | None
    lagging: int
    none_total: int
    none_max: int
    none_max_part: int | None
    none_lagging: int
    moved_age: int | None
    known_age: int | None


@dataclass(frozen=True, slots=True)
class Row:
    """A round with its markers and with the samples carried over for missing partitions."""

    round: TargetRound
    carried: tuple[Carried | None, ...]
    markers: Markers

    def newest(self, partition: int) -> Carried | None:
        """The newest sample of a partition as of this row, with its age."""
        if partition >= len(self.round.samples):
            return None
        sample = self.round.samples[partition]
        return Carried(sample, 0) if sample is not None else self.carried[partition]


def is_born(previous: Row | None, at_ms: int, interval_ms: int, partition: int) -> bool:
    """Whether a partition sampled at `at_ms` is new: the metadata answer before, if recent, did not name it."""
    if previous is None or at_ms - previous.round.at_ms > BIRTH_INTERVALS * interval_ms:
        return False
    if previous.round.notes & Note.NO_COMMITS:
        return False
    return partition >= len(previous.round.samples)


def extend(previous: Row | None, this: TargetRound) -> Row:
    """The row of a round, from the target's row before.

    Raises:
        ValueError: `this` is not later than `previous`.
    """
    elapsed = 0 if previous is None else this.at_ms - previous.round.at_ms
    if previous is not None and elapsed <= 0:
        raise ValueError("a round must be later than the one before")
    carried = tuple(_carry(previous, this, partition, elapsed) for partition in range(len(this.samples)))
    row = Row(_with_members(previous, this, elapsed), carried, _markers(this, carried, previous, elapsed))
    return row


def _carry(previous: Row | None, this: TargetRound, partition: int, elapsed: int) -> Carried | None:
    if previous is None or partition in this.outside or this.samples[partition] is not None:
        return None
    newest = previous.newest(partition)
    if newest is None:
        return None
    sample = newest.sample
    if previous.round.epoch != this.epoch:
        sample = Sample(sample.lag, sample.end, sample.flags | Flag.OLD_ID, sample.lost)
    return Carried(sample, min(newest.age_ms + elapsed, AGE_LIMIT_MS))


def _with_members(previous: Row | None, this: TargetRound, elapsed: int) -> TargetRound:
    if this.members is not None or previous is None or previous.round.members is None:
        return this
    before = previous.round
    return TargetRound(
        this.at_ms,
        this.epoch,
        this.samples,
        this.outside,
        this.notes,
        before.members,
        min((before.members_age_ms or 0) + elapsed, AGE_LIMIT_MS),
        before.group_state,
        this.absent_age_ms,
        this.ends_asked_ms,
        this.ends_answered_ms,
    )


def _markers(this: TargetRound, carried: tuple[Carried | None, ...], previous: Row | None, elapsed: int) -> Markers:
    scope = [partition for partition in range(len(this.samples)) if partition not in this.outside]
    newest = {p: s for p in scope if (s := this.samples[p] or _sample_of(carried[p])) is not None}
    committed = {p: s.lag for p, s in newest.items() if not s.flags & Flag.UNCOMMITTED}
    uncommitted = {p: s.lag for p, s in newest.items() if s.flags & Flag.UNCOMMITTED}
    return Markers(
        parts=len(scope),
        never=len(scope) - len(newest),
        oldest_age=max((c.age_ms for c in carried if c is not None), default=0),
        total_lag=sum(committed.values()),
        max_lag=max(committed.values(), default=0),
        max_part=_hottest(committed),
        lagging=_lagging(committed.values()),
        none_total=sum(uncommitted.values()),
        none_max=max(uncommitted.values(), default=0),
        none_max_part=_hottest(uncommitted),
        none_lagging=_lagging(uncommitted.values()),
        moved_age=_moved_age(this, scope, previous, elapsed),
        known_age=_known_age(this, scope, carried, previous, elapsed),
    )


def _sample_of(carried: Carried | None) -> Sample | None:
    return None if carried is None else carried.sample


def _hottest(lags: dict[int, int]) -> int | None:
    return max(lags, key=lambda partition: (lags[partition], -partition)) if lags else None


def _lagging(lags: Iterable[int]) -> int:
    return sum(lag > 0 for lag in lags)


def _of_present_id(previous: Row | None, epoch: int, partition: int) -> Sample | None:
    """The partition's newest earlier sample, if it was taken under this epoch."""
    if previous is None or previous.round.epoch != epoch:
        return None
    newest = previous.newest(partition)
    return None if newest is None or newest.sample.flags & Flag.OLD_ID else newest.sample


def _moved_age(this: TargetRound, scope: list[int], previous: Row | None, elapsed: int) -> int | None:
    for partition in scope:
        now, before = this.samples[partition], _of_present_id(previous, this.epoch, partition)
        if now is None or before is None or (now.flags | before.flags) & _UNMOVING:
            continue
        if now.position > before.position:
            return 0
    if previous is None or previous.round.epoch != this.epoch or previous.markers.moved_age is None:
        return None
    return min(previous.markers.moved_age + elapsed, AGE_LIMIT_MS)


def _known_age(
    this: TargetRound, scope: list[int], carried: tuple[Carried | None, ...], previous: Row | None, elapsed: int
) -> int | None:
    """Age of the youngest first sample in scope; None while a partition has no sample of the present id.

    With nothing in scope there is nothing that would have to be known.
    """
    if not scope:
        return AGE_LIMIT_MS
    age = AGE_LIMIT_MS
    if previous is not None and previous.round.epoch == this.epoch and previous.markers.known_age is not None:
        age = min(previous.markers.known_age + elapsed, AGE_LIMIT_MS)
    for partition in scope:
        now, kept = this.samples[partition], carried[partition]
        if now is None and (kept is None or kept.sample.flags & Flag.OLD_ID):
            return None
        if now is not None and not now.flags & Flag.BORN and _of_present_id(previous, this.epoch, partition) is None:
            age = 0
    return age
