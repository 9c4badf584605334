"""A small language for histories: rounds of offsets in true order, measured and marked as the scraper does it.

    history = History()
    history.rounds(-60, -15, 0)      # one partition of topic 1, lag 0, every 15 s
    history.round(0, 150)            # the same partition: lag 150 at t = 0
    history.round(15, None)          # missing from this round
    history.round(0, 5, topic=2)     # another topic in the same poll

Times are seconds from an arbitrary beginning. Lags are reached as on a broker: a higher one by produced messages, a
lower one by commits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lagscale.domain.lag.rounds import Note, SampleRow, TargetRound, build_row, is_first_seen
from lagscale.domain.lag.samples import Offsets, Sample, build_sample

#: t = 0 of every history: 2026-01-05 10:00:00 UTC.
BEGIN_MS = 1_767_607_200_000
SAMPLING = 15


def ms(seconds: float) -> int:
    """A time of a history as milliseconds since 1970."""
    return BEGIN_MS + round(seconds * 1000)


def offsets(end: int, committed: int | None, start: int = 0) -> Offsets:
    """One partition's answer."""
    return Offsets(start=start, end=end, committed=committed, high=end)


@dataclass
class Topic:
    """One target: its rows so far and each partition's last answer."""

    rows: list[SampleRow] = field(default_factory=list)
    last: dict[int, Offsets] = field(default_factory=dict)
    incarnation: int = 1

    def answer(self, partition: int, given: int | Offsets, produced: int | None) -> Offsets:
        """Offsets as given, or those that reach a lag from the last ones."""
        if isinstance(given, int) and produced is not None:
            end = self.last[partition].end + produced
            given = offsets(end, end - given)
        elif isinstance(given, int):
            before = self.last.get(partition, offsets(100_000, 100_000))
            committed = before.committed if before.committed is not None else before.end
            lag = before.end - committed
            given = offsets(before.end + max(0, given - lag), committed + max(0, lag - given))
        self.last[partition] = given
        return given

    def sample(self, partition: int, answer: Offsets, at_ms: int, *, same_id: bool, first_seen: bool) -> Sample:
        """What the answer says after the rows so far."""
        previous = self.rows[-1] if self.rows else None
        newest = previous.newest(partition) if previous else None
        first_seen = first_seen or is_first_seen(previous, at_ms, SAMPLING * 1000, partition)
        return build_sample(answer, newest.sample if newest else None, same_id=same_id, first_seen=first_seen)


class History:
    """Rounds of one monitor's topics, in true order."""

    def __init__(self) -> None:
        self.topics: dict[int, Topic] = {1: Topic()}

    def round(
        self,
        at: float,
        *partitions: int | Offsets | None,
        topic: int = 1,
        members: int | None = 0,
        new_id: bool = False,
        absent: bool = False,
        first_seen: bool = False,
        excluded: Sequence[int] = (),
        produced: int | None = None,
        answered: int | None = None,
    ) -> TargetRound:
        """One poll of one topic.

        Args:
            at: seconds.
            partitions: for each its lag or its offsets; None where it is missing.
            topic: the target's id.
            members: of the group, read in this round; None when not known.
            new_id: the topic was created again.
            absent: the topic does not exist.
            first_seen: the whole topic appeared: the metadata answer before did not name it.
            excluded: partitions that the limitation leaves out.
            answered: milliseconds after which the ends were there.
            produced: messages produced on every partition since its last answer, for lags given as numbers.
        """
        this = self.topics.setdefault(topic, Topic())
        previous = this.rows[-1] if this.rows else None
        this.incarnation += new_id
        samples = [
            None
            if given is None or partition in excluded
            else this.sample(
                partition, this.answer(partition, given, produced), ms(at), same_id=not new_id, first_seen=first_seen
            )
            for partition, given in enumerate(partitions)
        ]
        made = TargetRound(
            at_ms=ms(at),
            incarnation=this.incarnation,
            samples=tuple(samples),
            excluded=frozenset(excluded),
            notes=Note.NO_TOPIC if absent else Note(0),
            members=members,
            members_age_ms=None if members is None else 0,
            ends_answered_ms=answered,
        )
        this.rows.append(build_row(previous, made))
        return made

    def rounds(
        self, first: int, last: int, *partitions: int | Offsets | None, topic: int = 1, members: int | None = 0
    ) -> History:
        """The same lags every 15 s from `first` to `last`, both included."""
        for at in range(first, last + 1, SAMPLING):
            self.round(at, *partitions, topic=topic, members=members)
        return self

    def series(self, first: int, *lags: int | Offsets | None, members: int | None = 0) -> History:
        """One lag of one partition after the other, every 15 s."""
        for number, lag in enumerate(lags):
            self.round(first + number * SAMPLING, lag, members=members)
        return self

    def known(self, *partitions: int | Offsets | None, topic: int = 1) -> History:
        """Older, calm samples: whatever breaches later is known to have begun."""
        return self.rounds(-120, -15, *(partitions or (0,)), topic=topic)

    def rows(self) -> dict[int, list[SampleRow]]:
        """Target id -> its rows, oldest first."""
        return {topic: list(made.rows) for topic, made in self.topics.items()}

    def targets(self) -> dict[int, list[TargetRound]]:
        """Target id -> its raw rounds, oldest first."""
        return {topic: [row.round for row in made.rows] for topic, made in self.topics.items()}
