"""A small broker that misbehaves at random: what random histories are polled from.

Numbers are small and times are multiples of 5 s, so that every threshold is often hit exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from lagscale.domain.lag.rounds import Note, SampleRow, TargetRound, build_row, is_first_seen
from lagscale.domain.lag.samples import Offsets, Sample, build_sample
from tests.contract.histories import BEGIN_MS

INTERVAL_MS = 10_000
STEP_MS = 5_000


@dataclass
class RandomPartition:
    """One partition's log and the group's commit."""

    start: int
    end: int
    committed: int | None

    @classmethod
    def fresh(cls, random: Random) -> RandomPartition:
        """Empty or not, committed or not."""
        end = random.choice((0, 0, 3, 6))
        return cls(0, end, random.choice((None, end, end, 0)))

    def live(self, random: Random, busy: int, quiet: int) -> None:
        """What happens between two polls: `busy` of 10 times messages come; commits move `quiet` times less often."""
        if random.randrange(10) < busy:
            self.end += random.choice((1, 1, 2, 3, 5))
        happens = random.randrange(40 * quiet)
        if happens == 0:
            self.start = random.randint(self.start, self.end)
        elif happens == 1 and self.committed is not None:
            self.committed = random.randint(0, self.committed)
        elif happens == 2:
            self.committed = random.choice((None, self.end + 2, self.start))
        elif happens == 3:
            # The end falls under the same topic id, as after an unclean election.
            self.end = random.randint(self.start, self.end)
        elif happens < 14:
            self.committed = min(max(self.committed or 0, self.start) + random.choice((1, 2, 4)), self.end)
        elif happens < 18:
            self.committed = self.end

    def answer(self) -> Offsets:
        return Offsets(self.start, self.end, self.committed, self.end)


@dataclass
class RandomTopic:
    """One target, polled with holes."""

    random: Random
    outside: frozenset[int]
    holes: int
    partitions: list[RandomPartition] = field(default_factory=list)
    rows: list[SampleRow] = field(default_factory=list)
    incarnation: int = 1
    absent_since: int | None = None
    stale_after_ms: int = 30_000
    quiet: int = 1
    reads: int = 0

    @classmethod
    def fresh(cls, random: Random) -> RandomTopic:
        """A topic of up to four partitions."""
        outside = frozenset({0}) if random.randrange(8) == 0 else frozenset()
        made = cls(random, outside, random.choice((0, 0, 1, 3, 6)))
        made.partitions = [RandomPartition.fresh(random) for _ in range(random.choice((1, 1, 1, 2, 2, 3, 4)))]
        if random.randrange(30) == 0:
            made.absent_since = BEGIN_MS
        if random.randrange(30) == 0:
            made.partitions.clear()
        return made

    def live(self, busy: int) -> bool:
        """What happens between two polls; whether the topic was created again."""
        for partition in self.partitions:
            partition.live(self.random, busy, self.quiet)
            if self.reads and partition.committed is not None:
                partition.committed = min(partition.committed + self.reads, partition.end)
        happens = self.random.randrange(80)
        if happens == 0:
            self.partitions.append(RandomPartition.fresh(self.random))
        elif happens == 1:
            commits = [p.committed for p in self.partitions]
            kept = self.random.randint(0, len(commits))
            self.partitions = [
                RandomPartition(0, self.random.choice((0, 1, 4, 8)), committed) for committed in commits[:kept]
            ]
            return True
        return False

    def come_and_go(self, at_ms: int) -> bool:
        """The topic becomes unknown or known; whether it is another one: often, when it comes back after it was gone."""
        if self.random.randrange(60 if self.absent_since is None else 10):
            return False
        was_gone = self._gone(at_ms)
        self.absent_since = at_ms if self.absent_since is None else None
        return was_gone and self.absent_since is None and self.random.randrange(3) > 0

    def _gone(self, at_ms: int) -> bool:
        since = self.absent_since
        return since is not None and (
            not self.rows or not self.rows[-1].round.samples or at_ms - since >= self.stale_after_ms
        )

    def poll(self, at_ms: int, members: int | None, age_ms: int | None, *, new_id: bool, first_seen: bool) -> None:
        """One round, measured and marked as the scraper does it."""
        previous = self.rows[-1] if self.rows else None
        self.incarnation += new_id
        samples: list[Sample | None] = []
        gone = self._gone(at_ms)
        for number, partition in enumerate([] if gone else self.partitions):
            newest = previous.newest(number) if previous else None
            if number in self.outside or self.absent_since is not None or self.random.randrange(10) < self.holes:
                samples.append(None)
                continue
            last = newest.sample if newest else None
            fresh = first_seen or is_first_seen(previous, at_ms, INTERVAL_MS, number)
            samples.append(build_sample(partition.answer(), last, same_id=not new_id, first_seen=fresh))
        notes = Note.NO_TOPIC if gone else Note(0)
        made = TargetRound(at_ms, self.incarnation, tuple(samples), self.outside, notes, members, age_ms)
        if self.random.randrange(3) == 0:
            asked = self.random.choice((0, 5, 400))
            answered = asked + self.random.choice((0, 20, 1_500))
            made = replace(made, ends_asked_ms=asked, ends_answered_ms=answered)
        self.rows.append(build_row(previous, made))


@dataclass
class RandomGroup:
    """The group's topics in common polls, with the member count read now and then."""

    random: Random
    topics: dict[int, RandomTopic]
    crowd: tuple[int, ...] = (0, 0, 0, 1, 2, 5)
    readings: dict[int, int] = field(default_factory=dict)

    def run(self, polls: int) -> None:
        """Poll so many times, with pauses."""
        at_ms = BEGIN_MS
        recreated = dict.fromkeys(self.topics, False)
        busy = self.random.choice((0, 1, 4, 8))
        pause = self.random.choice((0, 0, 1, 3))
        how_read = self.random.choice((0, 3, 8, 10))
        for poll in range(polls):
            if self.random.randrange(10) == 0:
                busy = self.random.choice((0, 0, 2, 8))
            members, age_ms = self._members(at_ms, how_read)
            for name, topic in self.topics.items():
                recreated[name] |= topic.live(busy) | topic.come_and_go(at_ms)
                if self.random.randrange(8) == 0:
                    continue
                first_seen = not topic.rows and poll > 0 and self.random.randrange(2) == 0
                topic.poll(at_ms, members, age_ms, new_id=recreated[name], first_seen=first_seen)
                recreated[name] = False
            at_ms += INTERVAL_MS
            if self.random.randrange(10) < pause:
                at_ms += STEP_MS * self.random.choice((-1, 1, 1, 2, 3, 4, 6, 12))
            if self.random.randrange(20) == 0:
                at_ms += self.random.choice((1, 999, 60_000))

    def _members(self, at_ms: int, how_read: int) -> tuple[int | None, int | None]:
        if self.random.randrange(10) >= how_read:
            return None, None
        age_ms = self.random.choice((0, 0, 0, 20_000, 60_000, 170_000))
        # One moment has one answer, whichever rounds carry it.
        members = self.readings.setdefault(at_ms - age_ms, self.random.choice(self.crowd))
        return members, age_ms
