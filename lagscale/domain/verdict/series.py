"""The samples of a monitor up to an instant: scope, one series per partition, members.

Built from raw rounds only, for the reference of the verdict (`evaluate`); markers and carried samples are not used.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lagscale.domain.lag.rounds import MEMBERS_MAX_AGE_MS, Note, TargetRound
from lagscale.domain.lag.samples import Flag, Sample
from lagscale.domain.policy.policy import OffsetResetPolicy, Policy


@dataclass(frozen=True, slots=True)
class SamplePoint:
    """One sample of one partition, at its time, under its topic's id (`incarnation`)."""

    at_ms: int
    incarnation: int
    sample: Sample

    def has(self, flags: Flag) -> bool:
        """Whether any of the flags is set."""
        return bool(self.sample.flags & flags)


@dataclass(frozen=True, slots=True)
class PartitionSeries:
    """The samples of one partition in scope, oldest first, from when it was last first seen.

    Attributes:
        incarnation: the topic's current one.
        points: every sample that counts, however old.
    """

    target_id: int
    partition: int
    incarnation: int
    points: tuple[SamplePoint, ...]

    def newest(self, at_ms: int | None = None) -> SamplePoint | None:
        """The newest sample, or the newest at or before an instant."""
        if at_ms is None:
            return self.points[-1] if self.points else None
        before = bisect_right(self.points, at_ms, key=lambda point: point.at_ms)
        return self.points[before - 1] if before else None

    def since(self, at_ms: int) -> PartitionSeries:
        """Only the samples from an instant on."""
        return replace(self, points=tuple(point for point in self.points if point.at_ms >= at_ms))

    def first_seen_after(self, at_ms: int) -> bool:
        """Whether the partition did not exist yet at an instant."""
        return bool(self.points) and self.points[0].has(Flag.FIRST_SEEN) and self.points[0].at_ms > at_ms


@dataclass(frozen=True, slots=True)
class MonitorSeries:
    """All samples that a verdict may use, at T = `at_ms`.

    Attributes:
        rounds: per target, its rounds up to T, oldest first, each once.
        series: the partitions in scope at T.
        removed: earlier samples of partitions that metadata no longer names, or did not name for a while: the topic was
            absent. They count for *progress* only.
        times: of the rounds in the lookback and, per target, of the last round before it.
        start_times: per target, the time of the oldest round that counts for islands and totals.
    """

    at_ms: int
    rounds: Mapping[int, tuple[TargetRound, ...]]
    series: tuple[PartitionSeries, ...]
    removed: tuple[PartitionSeries, ...]
    times: tuple[int, ...]
    start_times: Mapping[int, int]

    def select_lookback(self) -> tuple[PartitionSeries, ...]:
        """The series that count for islands and totals: of the lookback and of each target's last round before it."""
        return tuple(series.since(self.start_times[series.target_id]) for series in self.series)

    def members(self) -> int | None:
        """Members at the newest round: queried at most `MEMBERS_MAX_AGE_MS` before it, in this round or an earlier one."""
        counts = [
            (age, members)
            for rounds in self.rounds.values()
            if rounds and rounds[-1].at_ms == self.at_ms
            for age, members in [_find_newest_members(rounds)]
            if members is not None and age <= MEMBERS_MAX_AGE_MS
        ]
        return min(counts)[1] if counts else None

    def had_members_since(self, since_ms: int) -> bool:
        """Whether a reading from an instant on says that the group has members."""
        return any(
            this.members is not None and this.members >= 1 and this.at_ms - (this.members_age_ms or 0) >= since_ms
            for rounds in self.rounds.values()
            for this in rounds
        )

    def members_by_time(self, target_id: int) -> dict[int, bool]:
        """At the time of each of a target's rounds: whether the group was known to have a member."""
        found: dict[int, bool] = {}
        read_ms, members = 0, None
        for this in self.rounds[target_id]:
            if this.members is not None:
                read_ms, members = this.at_ms - (this.members_age_ms or 0), this.members
            found[this.at_ms] = members is not None and members >= 1 and this.at_ms - read_ms <= MEMBERS_MAX_AGE_MS
        return found

    def find_absent_topics(self) -> tuple[int, ...]:
        """Targets whose topic does not exist."""
        return tuple(t for t, rounds in sorted(self.rounds.items()) if rounds and rounds[-1].notes & Note.NO_TOPIC)


def build_series(
    targets: Mapping[int, Sequence[TargetRound]], policy: Policy, upto_ms: int | None
) -> MonitorSeries | None:
    """Order the rounds and lay out the samples by partition; None when no target has a round.

    1. A round counts once, regardless of order and number of deliveries.
    2. T is the time of the newest round of any target.
    3. The scope of a target is that of its newest round.
    4. Samples from before a partition was last first seen do not count, nor those before a round that did not name it.
    """
    rounds = {target: _order_rounds(given, upto_ms) for target, given in targets.items()}
    times = [r.at_ms for given in rounds.values() for r in given]
    if not times:
        return None
    newest = max(times)
    start_times = {target: _find_start(given, newest - policy.lookback_ms) for target, given in rounds.items() if given}
    incarnations = [
        incarnation_series
        for target, given in sorted(rounds.items())
        if given
        for incarnation_series in _split_incarnations(target, given)
    ]
    series = [incarnation_series[-1] for incarnation_series in incarnations]
    earlier = [before for incarnation_series in incarnations for before in incarnation_series[:-1]]
    return MonitorSeries(
        at_ms=newest,
        rounds=rounds,
        series=tuple(s for s in series if s.partition < _count_named(rounds, s)),
        removed=tuple([s for s in series if s.partition >= _count_named(rounds, s)] + earlier),
        times=tuple(sorted({r.at_ms for t, given in rounds.items() for r in given if r.at_ms >= start_times[t]})),
        start_times=start_times,
    )


def compute_lag(sample: Sample, policy: Policy) -> int:
    """Lag for verdict and value: without a commit, 0 under `latest`, all that can be read under `earliest`."""
    if sample.flags & Flag.UNCOMMITTED and policy.offset_reset_policy is OffsetResetPolicy.LATEST:
        return 0
    return sample.lag


def compute_activity_lag(sample: Sample, policy: Policy) -> int:
    """Lag for activity: as for the verdict, but 1 under `latest` where messages exist before a first commit."""
    if sample.flags & Flag.UNCOMMITTED and policy.offset_reset_policy is OffsetResetPolicy.LATEST:
        return int(sample.lag > 0 and not policy.scale_to_zero_on_invalid_offset)
    return sample.lag


def _order_rounds(given: Sequence[TargetRound], upto_ms: int | None) -> tuple[TargetRound, ...]:
    by_time: dict[int, TargetRound] = {}
    for this in given:
        if upto_ms is None or this.at_ms <= upto_ms:
            by_time.setdefault(this.at_ms, this)
    return tuple(by_time[at] for at in sorted(by_time))


def _find_start(rounds: tuple[TargetRound, ...], from_ms: int) -> int:
    before = [r.at_ms for r in rounds if r.at_ms < from_ms]
    return before[-1] if before else rounds[0].at_ms


def _count_named(rounds: Mapping[int, tuple[TargetRound, ...]], series: PartitionSeries) -> int:
    """How many partitions the newest round of the series' target names."""
    return len(rounds[series.target_id][-1].samples)


def _split_incarnations(target: int, rounds: tuple[TargetRound, ...]) -> list[list[PartitionSeries]]:
    """Per partition its samples, split where it is first seen, or named again."""
    last = rounds[-1]
    found = []
    for partition in range(max(len(this.samples) for this in rounds)):
        if partition in last.excluded:
            continue
        incarnations: list[list[SamplePoint]] = [[]]
        named = True
        for this in rounds:
            reappeared = not named and partition < len(this.samples)
            named = partition < len(this.samples)
            sample = this.samples[partition] if named and partition not in this.excluded else None
            if reappeared or (sample is not None and sample.flags & Flag.FIRST_SEEN):
                incarnations.append([])
            if sample is not None:
                incarnations[-1].append(SamplePoint(this.at_ms, this.incarnation, sample))
        found.append([PartitionSeries(target, partition, last.incarnation, tuple(points)) for points in incarnations])
    return found


def _find_newest_members(rounds: tuple[TargetRound, ...]) -> tuple[int, int | None]:
    """Age at the newest round, and number, of the newest member count that was read."""
    for this in reversed(rounds):
        if this.members is not None:
            return rounds[-1].at_ms - this.at_ms + (this.members_age_ms or 0), this.members
    return 0, None
