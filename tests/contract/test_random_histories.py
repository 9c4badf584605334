"""The database against the reference on random histories with holes, births, resets, late and doubled rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from random import Random

import pytest

from lagscale.domain.lag.rounds import Note, TargetRound
from lagscale.domain.lag.samples import Flag
from lagscale.domain.verdict.contract import Reason, Verdict
from tests.contract.comparison import must_agree, references
from tests.contract.database import Stored, stored
from tests.contract.random_histories import RandomHistory, random_history
from tests.contract.random_waits import random_waits

#: In one round trip; each history is judged at several instants in every way. `tests/fuzz` judges many more.
BATCH = 50
#: One numbered batch that every run judges, so that a mismatch once seen stays seen.
SEEDS = range(1, 501)


@pytest.fixture
async def samples(shared_url: str) -> AsyncIterator[Stored]:
    """The real database, judged as the scaler judges."""
    async with stored(shared_url) as opened:
        yield opened


@pytest.mark.contract
@pytest.mark.timeout(300)
async def test_the_database_agrees_on_the_numbered_histories(samples: Stored) -> None:
    for first in SEEDS[::BATCH]:
        await must_agree(samples, [random_history(Random(seed)) for seed in range(first, first + BATCH)])


@pytest.mark.contract
@pytest.mark.timeout(300)
async def test_the_database_agrees_on_numbered_waits(samples: Stored) -> None:
    await must_agree(samples, [random_waits(Random(seed)) for seed in range(100)])


def test_random_waits_last_are_short_and_are_told_as_often() -> None:
    judged = [one for seed in range(300) for one in references(random_waits(Random(seed)))]
    reasons = Counter(one.reason for one in judged)
    assert min(reasons[one] for one in (Reason.LASTED, Reason.NOT_YET, Reason.NO_BREACH, Reason.START_UNKNOWN)) > 50
    assert sum(one.time_lag is not None and one.time_lag.upper_ms is not None for one in judged) > 300


def test_random_histories_reach_every_verdict_and_reason_often() -> None:
    judged = [one for history in _many() for one in references(history)]
    reasons = Counter(one.reason for one in judged)
    assert {reason: reasons[reason] for reason in Reason if reasons[reason] < 20} == {}
    assert min(Counter(one.verdict for one in judged)[verdict] for verdict in Verdict) > len(judged) // 10
    assert sum(one.active is True and one.verdict is Verdict.CALM for one in judged) > 200
    assert sum(one.active is False for one in judged) > 200
    assert sum(one.activates_from_zero for one in judged) > 20
    assert sum(one.island is not None and one.island.start_known for one in judged) > 200
    assert sum(0 < one.missing < one.partitions for one in judged) > 200
    assert sum(one.verdict is Verdict.SUSTAINED and one.missing > 0 for one in judged) > 20
    assert sum(bool(one.stuck) for one in judged) > 50
    assert sum(bool(one.stuck) and one.verdict is Verdict.SUSTAINED for one in judged) > 5
    assert sum(one.recovering for one in judged) > 3
    assert sum(one.time_lag is not None and one.time_lag.lower_ms > 0 for one in judged) > 100
    assert sum(one.time_lag is not None and one.time_lag.upper_ms is not None for one in judged) > 50
    assert sum((one.scale_up_value or 0) < (one.raw or 0) for one in judged) > 20
    assert sum((one.value or 0) > (one.scale_up_value or 0) for one in judged) > 50


def test_random_histories_hold_what_brokers_do_rarely() -> None:
    found: Counter[str] = Counter()
    for history in _many():
        found["a target without a round"] += not all(history.rows.values())
        for rounds in history.targets().values():
            this = sorted({one.at_ms: one for one in rounds}.values(), key=lambda one: one.at_ms)
            for older, newer in pairwise(this):
                found.update(_between(older, newer))
    wanted = {
        "a target without a round",
        "another id",
        "gone",
        "back under the same id",
        "an end that fell",
        "an end that fell without a reset",
        "first commit",
        *(flag.name or "" for flag in Flag if flag not in Flag.EXCLUDED | Flag.RECREATED),
    }
    assert {name: found[name] for name in wanted if found[name] < 20} == {}


def _between(older: TargetRound, newer: TargetRound) -> Iterator[str]:
    """What happened between two neighboring rounds of a target."""
    if older.incarnation != newer.incarnation:
        yield "another id"
        return
    if older.notes != newer.notes:
        yield "gone" if newer.notes & Note.NO_TOPIC else "back under the same id"
    for sample in newer.samples:
        yield from (flag.name or "" for flag in sample.flags) if sample is not None else ()
    for before, now in zip(older.samples, newer.samples, strict=False):
        if before is None or now is None:
            continue
        if now.end < before.end:
            yield "an end that fell"
            if not now.flags & Flag.RESET:
                yield "an end that fell without a reset"
        if before.flags & Flag.UNCOMMITTED and not now.flags & Flag.UNCOMMITTED:
            yield "first commit"


def _many() -> Iterator[RandomHistory]:
    return (random_history(Random(seed)) for seed in range(1, 2_501))
