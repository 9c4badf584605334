"""Random histories by time alone: what comes evenly and is read late, with few holes, so that waits can be told.

The general generator seldom leaves enough whole rounds for a wait to be known, and hardly ever for one that lasted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from lagscale.domain.lag.rounds import SampleRow
from lagscale.domain.lag.samples import Offsets
from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.policy.policy import Metric, OffsetResetPolicy, Policy
from tests.contract.histories import SAMPLING, History, offsets
from tests.contract.random_histories import Instant, RandomHistory, marked

_GAP_MS = 2_500 * SAMPLING
#: Messages in a round; of 11 the parts of a round are no whole milliseconds.
_RATES = (0, 1, 1, 2, 11, 11, 50)


@dataclass
class _Read:
    """One partition whose reader is so many rounds behind, or has stopped.

    Attributes:
        ends: at each round so far.
        rate: messages produced in a round.
        behind: rounds between the end and the commit.
        stands: whether the commit moves no more.
        uncommitted: whether there is none.
    """

    random: Random
    ends: list[int]
    rate: int
    behind: int
    stands: bool = False
    uncommitted: bool = False
    committed: int = 0

    @classmethod
    def fresh(cls, random: Random) -> _Read:
        ends = [1_000]
        return cls(random, ends, random.choice(_RATES), random.choice((0, 1, 1, 2, 3, 4)), committed=1_000)

    def next(self, *, new_id: bool) -> Offsets | None:
        """The partition's answer of the next round; None where it is missing."""
        random = self.random
        if random.randrange(8) == 0:
            self.rate = random.choice(_RATES)
        if random.randrange(12) == 0:
            self.stands = not self.stands
        if random.randrange(40) == 0:
            self.uncommitted = not self.uncommitted
        end = self.ends[-1] + self.rate
        if new_id or random.randrange(80) == 0:
            # The log lost its end, or is another one.
            end = max(0, self.ends[-1] - random.choice((1, 3, 100, 2_000)))
        self.ends.append(end)
        if not self.stands:
            self.committed = self.ends[max(0, len(self.ends) - 1 - self.behind)] - random.choice((0, 0, 0, 1, 3))
        elif random.randrange(30) == 0:
            self.committed -= random.choice((1, 5))
        self.committed = max(0, self.committed)
        if random.randrange(60) == 0:
            return None
        return offsets(end, None if self.uncommitted else self.committed, random.choice((0, 0, 0, max(0, end - 2))))


def random_waits(random: Random) -> RandomHistory:
    """One monitor by time; the same random numbers give the same one."""
    history, at = History(), 0
    topics = range(1, random.choice((1, 1, 1, 2)) + 1)
    reads = {topic: [_Read.fresh(random) for _ in range(random.choice((1, 1, 2, 2, 3)))] for topic in topics}
    absent = dict.fromkeys(topics, 0)
    answered = random.choice((None, 0, 500, 500, 1_500))
    crowd = random.choice(((0,), (1,), (2, 3), (1, None)))
    for _ in range(random.choice((3, 8, 12, 16, 24))):
        new_id = random.randrange(60) == 0
        members = random.choice(crowd)
        for topic in topics:
            parts = [read.next(new_id=new_id) for read in reads[topic]]
            absent[topic] = random.choice((1, 1, 2)) if random.randrange(50) == 0 else absent[topic] - 1
            if absent[topic] > 0:
                history.round(at, topic=topic, members=members, absent=True, answered=answered)
                continue
            history.round(at, *parts, topic=topic, members=members, new_id=new_id, answered=answered)
            if random.randrange(60) == 0:
                reads[topic].append(_Read.fresh(random))
        at += SAMPLING * random.choice((1,) * 24 + (2, 2, 2, 3, 3, 6))
    asked = None if answered is None else random.choice((0, 0, min(answered, 300)))
    rows = {topic: _asked(rows, asked) for topic, rows in history.rows().items()}
    instants = [_instant(random, [row.round.at_ms for row in rows[1]]) for _ in range(3)]
    return RandomHistory(_policy(random), rows, instants)


def _asked(rows: list[SampleRow], asked_ms: int | None) -> list[SampleRow]:
    return rows if asked_ms is None else marked(replace(row.round, ends_asked_ms=asked_ms) for row in rows)


def _instant(random: Random, times: list[int]) -> Instant:
    newest = times[-1] if random.randrange(2) else random.choice(times)
    return Instant(newest + random.choice((0, 0, 0, 500, 1_000, SAMPLING * 1_000, 61_000)), newest)


def _policy(random: Random) -> Policy:
    sustain = random.choice((0, 15_000, 15_000, 30_000, 45_000, 60_000))
    return replace(
        parse_policy({}),
        lag_threshold=random.choice((5, 14, 15, 15, 30, 30, 44, 45)),
        target_lag=random.choice((1.0, 10.0, 15.0)),
        sustain_ms=sustain,
        sampling_ms=SAMPLING * 1_000,
        max_gap_ms=random.choice((30_000, _GAP_MS, 45_000)),
        stale_after_ms=60_000,
        activation_lag_threshold=random.choice((0, 0, 2, 1_000)),
        activation_sustain_ms=random.choice((0, sustain)),
        work_ms=random.choice((0, 45_000, 60_000, 120_000)),
        hold_ms=random.choice((0, 60_000)),
        offset_reset_policy=random.choice(
            (OffsetResetPolicy.LATEST, OffsetResetPolicy.LATEST, OffsetResetPolicy.EARLIEST)
        ),
        allow_idle_consumers=random.randrange(2) == 0,
        consumers_per_replica=random.choice((1, 1, 2)),
        limit_to_lagging=False,
        stuck_after_ms=random.choice((0, 0, 0, 0, 60_000)),
        metric=Metric.TIME_LAG,
    )
