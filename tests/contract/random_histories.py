"""Random histories with random policies, and the instants at which they are judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from lagscale.domain.lag.rounds import SampleRow, TargetRound, build_row
from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.policy.policy import Metric, OffsetResetPolicy, PersistenceScope, Policy
from lagscale.domain.verdict.contract import VerdictRequest
from tests.contract.histories import BEGIN_MS
from tests.contract.random_broker import RandomGroup, RandomTopic

#: Idle consumers allowed, limited to partitions with lag, split evenly: at most one of them.
_SPLITS = ((False, True, False), (False, True, False), (False, False, True), (False, False, True))


@dataclass(frozen=True, slots=True)
class Instant:
    """Samples after `upto_ms` do not exist; None: every one counts."""

    now_ms: int
    upto_ms: int | None


@dataclass(frozen=True)
class RandomHistory:
    """One monitor.

    Attributes:
        rows: per target, in the order in which they reach the store.
        instants: when it is judged.
    """

    policy: Policy
    rows: Mapping[int, Sequence[SampleRow]]
    instants: Sequence[Instant]

    def targets(self) -> dict[int, list[TargetRound]]:
        """Raw rounds as delivered, each second one twice."""
        return {
            target: [row.round for row in rows] + [row.round for row in rows[::2]] for target, rows in self.rows.items()
        }

    def smaller(self, instant: Instant) -> Iterator[RandomHistory]:
        """The same history with something left out, the greatest parts first, judged at one instant."""
        if len(self.instants) > 1:
            yield replace(self, instants=[instant])
        for target in self.rows:
            if len(self.rows) > 1:
                yield self._with({name: rows for name, rows in self.rows.items() if name != target}, instant)
        for target, rows in self.rows.items():
            size = len(rows) // 2
            while size:
                for first in range(0, len(rows), size):
                    left = [*rows[:first], *rows[first + size :]]
                    yield self._with({**self.rows, target: left}, instant)
                size //= 2

    def _with(self, rows: Mapping[int, Sequence[SampleRow]], instant: Instant) -> RandomHistory:
        return RandomHistory(
            self.policy, {name: marked(row.round for row in given) for name, given in rows.items()}, [instant]
        )

    def requests(self, tenant: int, ids: Mapping[int, int]) -> list[VerdictRequest]:
        """One ask for each instant."""
        targets = tuple(ids[target] for target in sorted(self.rows))
        return [VerdictRequest(tenant, targets, self.policy, i.upto_ms, i.now_ms) for i in self.instants]


def marked(rounds: Iterable[TargetRound]) -> list[SampleRow]:
    """The rounds of one target in true order, marked anew."""
    made: list[SampleRow] = []
    for this in sorted(rounds, key=lambda this: this.at_ms):
        made.append(build_row(made[-1] if made else None, this))
    return made


def random_history(random: Random, *, by_time: bool = False) -> RandomHistory:
    """One monitor; the same random numbers give the same one. `by_time` has it judged by time in any case.

    Some have a target that was never polled.
    """
    policy = random_policy(random, by_time=by_time)
    topics = {name: RandomTopic.fresh(random) for name in range(1, random.choice((1, 1, 1, 2, 3)) + 1)}
    for topic in topics.values():
        topic.stale_after_ms = policy.stale_after_ms
    group = RandomGroup(random, topics)
    if random.randrange(6) == 0 or (by_time and random.randrange(3)):
        # A group that is there and hardly moves: what is stuck, and what is not, is seldom seen otherwise.
        group.crowd = random.choice(((1, 2, 3), (1, 2, 3), (0, 1, 1, 1, 1, 1)))
        for topic in topics.values():
            topic.quiet = 12
        if random.randrange(2):
            # A backlog that one reader takes down at an even pace: what drains is seldom seen otherwise.
            for topic in topics.values():
                topic.reads = random.choice((1, 1, 2))
                for partition in topic.partitions:
                    partition.end += random.choice((8, 16))
    group.run(random.choice((1, 4, 8, 12, 20, 30)))
    rows = {name: list(topic.rows) for name, topic in topics.items()}
    if random.randrange(15) == 0:
        rows[len(rows) + 1] = []
    times = sorted({row.round.at_ms for given in rows.values() for row in given}) or [BEGIN_MS]
    instants = [_instant(random, times, policy) for _ in range(random.choice((1, 2, 3)))]
    for given in rows.values():
        random.shuffle(given)
    return RandomHistory(policy, rows, instants)


def random_policy(random: Random, *, by_time: bool = False) -> Policy:
    """Within the rules of the policy's keys."""
    max_gap = random.choice((20_000, 25_000, 25_000, 30_000, 45_000))
    sustain = random.choice((0, 10_000, 20_000, 20_000, 30_000, 60_000, 120_000))
    threshold = random.choice((1, 2, 3, 3, 5, 8))
    by_time |= random.randrange(6) == 0
    if by_time:
        threshold = random.choice((5, 10, 15, 30, 60))
    idle, limited, even = random.choice(((True, False, False),) * 3 + ((False, False, False),) * 2 + _SPLITS)
    return replace(
        parse_policy({}),
        lag_threshold=threshold,
        target_lag=random.choice((float(threshold), 0.7, 1.0, 1.1, 2.5, 4.0)),
        sustain_ms=sustain,
        sampling_ms=10_000,
        max_gap_ms=max_gap,
        stale_after_ms=max_gap + random.choice((0, 5_000, 10_000, 30_000)),
        activation_lag_threshold=random.choice((0, 0, 1, 3, 6)),
        activation_sustain_ms=random.choice((sustain, sustain, 0, 10_000, 30_000, 60_000)),
        work_ms=random.choice((0, 0, max_gap, max_gap + 5_000, 60_000)),
        hold_ms=random.choice((0, 30_000, 60_000, 3_600_000)),
        persistence_scope=PersistenceScope.TOTAL
        if not by_time and random.random() < 0.5
        else PersistenceScope.PARTITION,
        offset_reset_policy=random.choice((OffsetResetPolicy.LATEST, OffsetResetPolicy.EARLIEST)),
        scale_to_zero_on_invalid_offset=random.random() < 0.3,
        allow_idle_consumers=idle,
        consumers_per_replica=random.choice((1, 1, 2, 3)),
        limit_to_lagging=limited,
        even_split=even and not by_time,
        scale_up_ms=random.choice((0, 0, 0, 10_000, 25_000, 60_000)),
        scale_down_ms=random.choice((0, 0, 10_000, 45_000, 400_000)),
        stuck_after_ms=random.choice((0, 0, 0, max_gap, max_gap + 5_000, 90_000)),
        metric=Metric.TIME_LAG if by_time else Metric.LAG,
        drain_ms=0 if by_time else random.choice((0, 0, 10_000, 60_000, 300_000)),
        active_value=random.choice((0.0, 0.0, 0.5)),
    )


def _instant(random: Random, times: Sequence[int], policy: Policy) -> Instant:
    newest = times[-1] if random.randrange(2) else random.choice(times)
    upto = None if newest == times[-1] and random.randrange(2) else newest + random.choice((0, 0, 1, 4_999))
    later = (0, 0, 0, 1_000, 5_000, policy.max_gap_ms, policy.stale_after_ms, policy.stale_after_ms + 1, 100_000, -500)
    return Instant(newest + random.choice(later), upto)
