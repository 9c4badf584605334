"""Time lag on a real broker against the truth of a producer that records its own times, by the database's clock."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from random import Random
from statistics import median
from threading import Event, Thread
from typing import Any

import pytest
from confluent_kafka import Producer

from devstack.server import wait_until
from lagscale.domain.lag.rounds import TargetRound
from lagscale.domain.lag.time_lag import NO_WAIT, TimeLag, collect_ends, compute_time_lag
from lagscale.store.samples.columns import read_row
from services.scraper.polling.poll import DatabaseClock

pytestmark = pytest.mark.integration
World = Any  # The fixture's class lives in conftest, which is not importable by name.

CASES = 50


class Recorder:
    """Appends messages until `stop`, and records when each was sent, and when the broker had it."""

    def __init__(
        self, bootstrap: str, topic: str, clock: DatabaseClock, pauses: Callable[[], tuple[int, float]]
    ) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": "all"})
        self._topic, self._clock, self._pauses = topic, clock, pauses
        self._stop = Event()
        #: Offset -> milliseconds of the database's clock, before it was sent and after it was acknowledged.
        self.times: dict[int, tuple[int, int]] = {}

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = Thread(target=self._run, name="recorder")
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join(20)
            # Clients end before their broker does.
            del self._producer

    def _run(self) -> None:
        pause = 0.0
        while not self._stop.wait(pause):
            messages, pause = self._pauses()
            for _ in range(messages):
                self._producer.produce(
                    self._topic, b"x", partition=0, callback=partial(self._record, self._clock.now_ms())
                )
            self._producer.flush(20)

    def _record(self, sent_ms: int, error: Any, message: Any) -> None:
        assert error is None
        self.times[message.offset()] = (sent_ms - self._clock.error_ms, self._clock.now_ms() + 1 + self._clock.error_ms)


def stored_rounds(world: World, target: int) -> list[TargetRound]:
    """What the scraper stored, oldest first."""
    rows = reversed(world.rows(target))
    return [read_row({**row, "at_ms": round(row["ts"].timestamp() * 1000)}).round for row in rows]


def measured(world: World, dice: Random, pauses: Callable[[], tuple[int, float]]) -> tuple[Recorder, list[TargetRound]]:
    """A producer at work, and a round for each commit that a group without members makes behind it."""
    topic, group = world.topic(), f"g-{uuid.uuid4().hex[:10]}"
    (target,) = world.monitor(world.cluster(), group, topic)
    recorder = Recorder(world.broker.address, topic, DatabaseClock.learn(world.database), pauses)
    with recorder.running():
        for _ in range(CASES + 15):
            # Between two rounds lies what a producer needs for some messages.
            appended = len(recorder.times) + dice.choice((1, 1, 3, 12))
            wait_until(lambda: len(recorder.times) >= appended, 20, "the producer appended messages")  # noqa: B023
            behind = dice.choice((0, 1, dice.randint(1, 20), dice.randint(1, 200)))
            world.commit(group, topic, max(len(recorder.times) - behind, 0))
            world.tick()
    return recorder, stored_rounds(world, target)


def test_the_truth_lies_within_the_bounds_in_fifty_rounds_on_a_real_broker(world: World) -> None:
    dice = Random(31)
    pauses = ((1, 0.004), (1, 0.01), (30, 0.02), (5, 0.05), (0, 0.1))
    recorder, rounds = measured(world, dice, lambda: dice.choice(pauses))
    found = [judged(rounds[: newest + 1]) for newest in range(1, len(rounds))]
    waiting = [one for one in found if one is not None]
    for position, lag, at_ms in waiting:
        # Between the two the broker appended the message; what is younger than the round has waited for 0.
        sent_ms, acknowledged_ms = recorder.times[position]
        assert lag.lower_ms <= max(at_ms - sent_ms, 0), (position, lag, at_ms - sent_ms)
        assert lag.upper_ms is None or lag.upper_ms >= max(at_ms - acknowledged_ms, 0), (position, lag, at_ms)
    widths = [lag.upper_ms - lag.lower_ms for _, lag, _ in waiting if lag.upper_ms is not None]
    assert len(widths) >= CASES
    # No sample is missing: one interval, from one round's question to the next round's answer.
    assert max(widths) <= max(spans(rounds))
    report(rounds)


def judged(rounds: Sequence[TargetRound]) -> tuple[int, TimeLag, int] | None:
    """Position, time lag and stamp at the newest of the rounds; None where nothing waits."""
    sample = rounds[-1].samples[0]
    assert sample is not None
    found = compute_time_lag(collect_ends(rounds, 0), sample.position)
    assert found is not None
    assert (found == NO_WAIT) or sample.lag > 0
    return (sample.position, found, rounds[-1].at_ms) if sample.lag else None


def spans(rounds: Sequence[TargetRound]) -> list[int]:
    """Milliseconds from each round's question for ends to the next round's answer."""
    reads = collect_ends(rounds, 0)
    return [n.at_ms + n.answered_ms - o.at_ms - o.asked_ms for o, n in pairwise(reads)]


def report(rounds: Sequence[TargetRound]) -> None:
    """Print what the documentation quotes; pytest shows it with `-s`."""
    reads = collect_ends(rounds, 0)
    asked = sorted(read.asked_ms for read in reads)
    took = sorted(read.answered_ms - read.asked_ms for read in reads)
    print(f"\nends asked {median(asked):g} ms after the stamp (at most {asked[-1]}),", end=" ")
    print(f"answered within {median(took):g} ms (at most {took[-1]}), {len(reads)} rounds")
