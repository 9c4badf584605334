"""Producers, topics and rounds in simulated time: what a scraper would store, and what only the simulation knows.

Times of the world are whole microseconds; what is stored is made by the scraper's own watch from a clock that is a
little wrong in each round.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from lagscale.domain.lag.time_lag import EndRead
from services.scraper.polling.poll import DatabaseClock

MS = 1_000
SECOND = 1_000 * MS
#: The base of all times: stamps are milliseconds since 1970.
BEGIN = 1_767_607_200 * SECOND


@dataclass(frozen=True, slots=True)
class Round:
    """One poll in true time: stamped, the commit read, the ends read between question and answer."""

    number: int
    at: int
    committed: int
    asked: int
    read: int
    answered: int
    error_ms: int
    wrong_by: int

    def stored(self, end: int, incarnation: int) -> EndRead:
        """The end as the scraper stores it, by its own clock."""
        stamp = self._watch(self.at).now_ms()
        return EndRead(
            stamp,
            end,
            self._watch(self.asked).measure_min_ms(stamp),
            self._watch(self.answered).measure_max_ms(stamp),
            incarnation,
        )

    def _watch(self, now: int) -> DatabaseClock:
        return DatabaseClock(lambda: (now + self.wrong_by) // MS, self.error_ms)


@dataclass
class Log:
    """One partition: when the message of each offset was appended; it may be truncated, or be created again."""

    appended: list[int]
    first: int = 0

    def truncate(self, to: int, then: list[int]) -> None:
        """Drop everything from an offset on; what is appended later replaces what would have come."""
        self.appended = self.appended[: to - self.first] + then

    def create_again(self, then: list[int]) -> None:
        """Begin at 0 under another id."""
        self.appended, self.first = then, 0

    def end(self, at: int) -> int:
        """The end at an instant of the present log."""
        return self.first + bisect_right(self.appended, at)


@dataclass(frozen=True, slots=True)
class Case:
    """What is stored of a partition, a position at its newest round, and the truth.

    Attributes:
        truth: microseconds that the first unread message had waited at the newest stamp; 0 when nothing waits.
        numbers: of the rounds of `ends`: they follow one another where no sample is missing.
        interval: microseconds between two rounds.
        instant: every round read its offsets at the moment of its stamp.
        rate: messages in one interval, of a steady producer; None of others.
    """

    kind: str
    ends: tuple[EndRead, ...]
    numbers: tuple[int, ...]
    position: int
    truth: int
    interval: int
    instant: bool
    rate: float | None


def steady(dice: Random, begin: int, until: int, interval: int, rate: float) -> list[int]:
    """Messages at equal distances, so many in one interval."""
    distance = interval / rate
    phase = dice.random() * distance
    return [int(begin + phase + n * distance) for n in range(int((until - begin - phase) / distance))]


def _any_rate(dice: Random, begin: int, until: int, interval: int) -> list[int]:
    return steady(dice, begin, until, interval, 10 ** dice.uniform(-1, 2.5))


def _random(dice: Random, begin: int, until: int, interval: int) -> list[int]:
    mean = interval / 10 ** dice.uniform(-1, 2)
    times, at = [], float(begin)
    while (at := at + dice.expovariate(1 / mean)) < until:
        times.append(int(at))
    return times


def _bursts(dice: Random, begin: int, until: int, interval: int) -> list[int]:
    times: list[int] = []
    for _ in range(dice.randint(1, 6)):
        at, width = dice.randint(begin, until), dice.choice((0, 50 * MS, interval // 3))
        times += [at + dice.randint(0, width) for _ in range(dice.choice((1, 3, 40, 400)))]
    return sorted(times)


def _idle(dice: Random, begin: int, until: int, interval: int) -> list[int]:
    return sorted(dice.randint(begin, until) for _ in range(dice.randint(0, 3)))


def _changing(dice: Random, begin: int, until: int, interval: int) -> list[int]:
    edges = [begin, *sorted(dice.randint(begin, until) for _ in range(3)), until]
    times: list[int] = []
    for first, last in pairwise(edges):
        times += dice.choice((_any_rate, _random, _bursts, _idle))(dice, first, last, interval)
    return sorted(times)


PRODUCERS: dict[str, Callable[[Random, int, int, int], list[int]]] = {
    "steady": _any_rate,
    "random": _random,
    "bursts": _bursts,
    "idle": _idle,
    "changing": _changing,
}


def _rounds(dice: Random, interval: int, *, instant: bool) -> list[Round]:
    rounds: list[Round] = []
    free_from = BEGIN
    for number in range(dice.randint(2, 40)):
        due = BEGIN + number * interval
        if instant:
            rounds.append(Round(number, due, due, due, due, due, 0, 0))
            continue
        at = max(due + dice.randint(0, interval // 20), free_from)
        slow = dice.random() < 0.1
        steps = [dice.randint(0, 900 * MS if slow else 15 * MS) for _ in range(4)]
        committed, asked = at + steps[0], at + steps[0] + steps[1]
        error_ms = dice.choice((0, 1, 1, 2, 20))
        wrong_by = dice.randint(-error_ms * MS, error_ms * MS)
        read, answered = asked + steps[2], asked + steps[2] + steps[3]
        rounds.append(Round(number, at, committed, asked, read, answered, error_ms, wrong_by))
        # Batches follow one another; the clock's greatest error keeps the stamps in order, too.
        free_from = answered + 41 * MS
    return rounds


def _kept(dice: Random, rounds: list[Round]) -> list[Round]:
    """The rounds that have a sample: with single holes, with a restart; the newest one is there."""
    holes = dice.choice((0.0, 0.0, 0.1, 0.5))
    kept = [this for this in rounds[:-1] if dice.random() >= holes]
    if dice.random() < 0.2:
        gap = sorted(dice.randint(0, len(rounds)) for _ in range(2))
        kept = [this for this in kept if not gap[0] <= this.number < gap[1]]
    return [*kept, rounds[-1]]


def _cut(dice: Random, log: Log, kept: list[Round], make: Callable[[int], list[int]]) -> tuple[int, bool] | None:
    """Truncate the log, or create it again, between two stored rounds; the number of the round after, and which."""
    if len(kept) < 2 or dice.random() > 0.3:
        return None
    index = dice.randrange(1, len(kept))
    before, after = kept[index - 1], kept[index]
    at = dice.randint(before.answered + 1, max(before.answered + 1, after.at - 1))
    new_id = dice.random() < 0.5
    end = log.end(before.read)
    if new_id:
        log.create_again(make(at))
    elif end > log.first:
        # A truncation that the next stored end shows: nothing is appended before it.
        log.truncate(dice.randint(log.first, end - 1), make(after.read + 1))
    else:
        return None
    return after.number, new_id


def case(seed: int, kind: str | None = None, rate: float | None = None) -> Case:
    """One random case; a kind of producer or the rate of a steady one may be given."""
    dice = Random(seed)
    kind = kind or dice.choice(list(PRODUCERS))
    interval = dice.choice((1, 5, 15, 60)) * SECOND
    instant = dice.random() < 0.3
    rounds = _rounds(dice, interval, instant=instant)
    kept = _kept(dice, rounds)
    until = rounds[-1].answered + SECOND

    def make(begin: int) -> list[int]:
        if rate is not None:
            return steady(dice, begin, until, interval, rate)
        return PRODUCERS[kind](dice, begin, until, interval)

    log = Log(make(BEGIN - dice.randint(0, 10) * interval), dice.choice((0, 7, 10**12)))
    ends = {this.number: log.end(this.read) for this in kept}
    cut = None if rate is not None else _cut(dice, log, kept, make)
    if cut is not None:
        ends |= {this.number: log.end(this.read) for this in kept if this.number >= cut[0]}
    newest = kept[-1]
    position = _position(dice, log, newest)
    stored = tuple(
        this.stored(ends[this.number], int(cut is not None and cut[1] and this.number >= cut[0])) for this in kept
    )
    truth = 0
    if position < ends[newest.number]:
        truth = max(stored[-1].at_ms * MS - log.appended[position - log.first], 0)
    numbers = tuple(this.number for this in kept)
    return Case(kind, stored, numbers, position, truth, interval, instant, rate)


def _position(dice: Random, log: Log, newest: Round) -> int:
    """Where the group stands when its commit is read: at the end, close behind, at a stored end, or anywhere."""
    end = log.end(newest.committed)
    behind = dice.choice((0, 1, 2, dice.randint(0, 50), dice.randint(0, max(end - log.first, 0))))
    return max(end - behind, log.first)
