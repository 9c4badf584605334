"""Rounds of one target, and the markers that the writer derives from the previous round.

The markers let most verdicts read one row. The newest row contains everything that the next one needs, so a writer
that restarts or takes over reads only that row. Called by the scraper's rounds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntFlag

from lagscale.domain.lag.samples import WITHOUT_PROGRESS, Flag, Sample

#: Upper limit of ages in markers, in milliseconds; also the coverage age where every partition was first seen.
MAX_AGE_MS = 2_000_000_000
#: A member count that was older than this at a round is unknown.
MEMBERS_MAX_AGE_MS = 180_000
#: A partition counts as first seen only if the previous metadata answer is at most so many polling intervals old.
FIRST_SEEN_INTERVALS = 2.5


class Note(IntFlag):
    """Facts of a whole row; stored as smallint."""

    NO_TOPIC = 1
    NO_COMMITS = (
        2  # the group had no commit on the topic, which may have existed: partitions that follow are not first seen
    )


@dataclass(frozen=True, slots=True)
class TargetRound:
    """One poll of one target, as the cluster answered.

    Attributes:
        at_ms: when the first request was sent, milliseconds of the database's clock since 1970.
        incarnation: incremented whenever the topic's id changes.
        samples: per partition that metadata named, in order; None where it is missing.
        excluded: partitions that the limitation excludes; their sample is None.
        members: group members, None when not queried in this round.
        members_age_ms: age of that number at `at_ms`.
        group_state: code of the group's state, None when not read.
        absent_age_ms: how long the topic has been absent; None while it exists.
        ends_asked_ms: the brokers read the ends so long after `at_ms` at the earliest; None when not known.
        ends_answered_ms: the brokers read the ends so long after `at_ms` at the latest; None when not known.
    """

    at_ms: int
    incarnation: int
    samples: tuple[Sample | None, ...]
    excluded: frozenset[int] = frozenset()
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
    progress_age: int | None
    coverage_age: int | None


@dataclass(frozen=True, slots=True)
class SampleRow:
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


def is_first_seen(previous: SampleRow | None, at_ms: int, interval_ms: int, partition: int) -> bool:
    """Whether a partition sampled at `at_ms` is new: the metadata answer before, if recent, did not name it."""
    if previous is None or at_ms - previous.round.at_ms > FIRST_SEEN_INTERVALS * interval_ms:
        return False
    if previous.round.notes & Note.NO_COMMITS:
        return False
    return partition >= len(previous.round.samples)


def build_row(previous: SampleRow | None, this: TargetRound) -> SampleRow:
    """The row of a round, from the target's row before.

    Raises:
        ValueError: `this` is not later than `previous`.
    """
    elapsed = 0 if previous is None else this.at_ms - previous.round.at_ms
    if previous is not None and elapsed <= 0:
        raise ValueError("a round must be later than the one before")
    carried = tuple(_carry(previous, this, partition, elapsed) for partition in range(len(this.samples)))
    row = SampleRow(_with_members(previous, this, elapsed), carried, _compute_markers(this, carried, previous, elapsed))
    return row


def _carry(previous: SampleRow | None, this: TargetRound, partition: int, elapsed: int) -> Carried | None:
    if previous is None or partition in this.excluded or this.samples[partition] is not None:
        return None
    newest = previous.newest(partition)
    if newest is None:
        return None
    sample = newest.sample
    if previous.round.incarnation != this.incarnation:
        sample = Sample(sample.lag, sample.end, sample.flags | Flag.RECREATED, sample.lost)
    return Carried(sample, min(newest.age_ms + elapsed, MAX_AGE_MS))


def _with_members(previous: SampleRow | None, this: TargetRound, elapsed: int) -> TargetRound:
    if this.members is not None or previous is None or previous.round.members is None:
        return this
    before = previous.round
    return TargetRound(
        this.at_ms,
        this.incarnation,
        this.samples,
        this.excluded,
        this.notes,
        before.members,
        min((before.members_age_ms or 0) + elapsed, MAX_AGE_MS),
        before.group_state,
        this.absent_age_ms,
        this.ends_asked_ms,
        this.ends_answered_ms,
    )


def _compute_markers(
    this: TargetRound, carried: tuple[Carried | None, ...], previous: SampleRow | None, elapsed: int
) -> Markers:
    scope = [partition for partition in range(len(this.samples)) if partition not in this.excluded]
    newest = {p: s for p in scope if (s := this.samples[p] or _sample_of(carried[p])) is not None}
    committed = {p: s.lag for p, s in newest.items() if not s.flags & Flag.UNCOMMITTED}
    uncommitted = {p: s.lag for p, s in newest.items() if s.flags & Flag.UNCOMMITTED}
    return Markers(
        parts=len(scope),
        never=len(scope) - len(newest),
        oldest_age=max((c.age_ms for c in carried if c is not None), default=0),
        total_lag=sum(committed.values()),
        max_lag=max(committed.values(), default=0),
        max_part=_find_max_partition(committed),
        lagging=_count_lagging(committed.values()),
        none_total=sum(uncommitted.values()),
        none_max=max(uncommitted.values(), default=0),
        none_max_part=_find_max_partition(uncommitted),
        none_lagging=_count_lagging(uncommitted.values()),
        progress_age=_compute_progress_age(this, scope, previous, elapsed),
        coverage_age=_compute_coverage_age(this, scope, carried, previous, elapsed),
    )


def _sample_of(carried: Carried | None) -> Sample | None:
    return None if carried is None else carried.sample


def _find_max_partition(lags: dict[int, int]) -> int | None:
    return max(lags, key=lambda partition: (lags[partition], -partition)) if lags else None


def _count_lagging(lags: Iterable[int]) -> int:
    return sum(lag > 0 for lag in lags)


def _find_same_incarnation(previous: SampleRow | None, incarnation: int, partition: int) -> Sample | None:
    """The partition's newest earlier sample, if it is of this incarnation."""
    if previous is None or previous.round.incarnation != incarnation:
        return None
    newest = previous.newest(partition)
    return None if newest is None or newest.sample.flags & Flag.RECREATED else newest.sample


def _compute_progress_age(this: TargetRound, scope: list[int], previous: SampleRow | None, elapsed: int) -> int | None:
    for partition in scope:
        now, before = this.samples[partition], _find_same_incarnation(previous, this.incarnation, partition)
        if now is None or before is None or (now.flags | before.flags) & WITHOUT_PROGRESS:
            continue
        if now.position > before.position:
            return 0
    if previous is None or previous.round.incarnation != this.incarnation or previous.markers.progress_age is None:
        return None
    return min(previous.markers.progress_age + elapsed, MAX_AGE_MS)


def _compute_coverage_age(
    this: TargetRound, scope: list[int], carried: tuple[Carried | None, ...], previous: SampleRow | None, elapsed: int
) -> int | None:
    """Age of the youngest first sample in scope; None while a partition has no sample of the current incarnation.

    With nothing in scope coverage is complete.
    """
    if not scope:
        return MAX_AGE_MS
    age = MAX_AGE_MS
    if (
        previous is not None
        and previous.round.incarnation == this.incarnation
        and previous.markers.coverage_age is not None
    ):
        age = min(previous.markers.coverage_age + elapsed, MAX_AGE_MS)
    for partition in scope:
        now, older = this.samples[partition], carried[partition]
        if now is None and (older is None or older.sample.flags & Flag.RECREATED):
            return None
        if (
            now is not None
            and not now.flags & Flag.FIRST_SEEN
            and _find_same_incarnation(previous, this.incarnation, partition) is None
        ):
            age = 0
    return age
