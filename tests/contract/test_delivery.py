"""History 26 and 40: however rounds are delivered, and whatever a host's clock says, the answers are the same."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import psycopg
import pytest

from lagscale.domain.lag.rounds import SampleRow, TargetRound, build_row
from lagscale.domain.lag.samples import Sample
from lagscale.domain.verdict.contract import Reason, Verdict, VerdictRequest
from lagscale.domain.verdict.evaluate import judge
from lagscale.errors import LeaseLost
from lagscale.store.scraping.leases import Lease
from tests.contract.case import Case
from tests.contract.database import TENANT, Stored, stored
from tests.contract.histories import BEGIN_MS, History, ms
from tests.support.memory_samples import MemorySamples

CASE = Case("26", "late and doubled rounds", lambda: History().known().rounds(0, 90, 150), ())
LEASE = Lease("a scraper", 1)


@pytest.fixture
async def samples(shared_url: str) -> AsyncIterator[Stored]:
    async with stored(shared_url) as opened:
        yield opened


def late(rows: Sequence[SampleRow]) -> list[SampleRow]:
    """The round at t = 45 after the one at t = 90."""
    return [row for row in rows if row.round.at_ms != ms(45)] + [row for row in rows if row.round.at_ms == ms(45)]


def test_the_reference_reads_late_and_doubled_rounds_as_the_clean_history() -> None:
    rounds = CASE.history().targets()[1]
    clean = judge({1: rounds}, CASE.parsed(), now_ms=ms(90))
    assert clean.verdict is Verdict.SUSTAINED
    assert judge({1: [*rounds[::-1], *rounds]}, CASE.parsed(), now_ms=ms(90)) == clean


async def test_the_store_in_memory_counts_what_came_twice() -> None:
    rows = CASE.history().rows()[1]
    store = MemorySamples(lambda: ms(90))
    written = store.append([(TENANT, 1, row) for row in [*late(rows), *rows]], LEASE)
    assert (written.stored, written.duplicates, written.refused) == (len(rows), len(rows), 0)
    assert store.newest([1, 2]) == {1: rows[-1]}
    (judged,) = await store.judge([VerdictRequest(TENANT, (1,), CASE.parsed())])
    assert judged == judge(CASE.history().targets(), CASE.parsed(), now_ms=ms(90))


async def test_the_store_in_memory_keeps_tenants_apart() -> None:
    store = MemorySamples(lambda: ms(90))
    store.append([(TENANT, 1, row) for row in CASE.history().rows()[1]], LEASE)
    (judged,) = await store.judge([VerdictRequest(TENANT + 1, (1,), CASE.parsed())])
    assert judged.reason is Reason.NO_DATA


def test_the_store_in_memory_refuses_rows_of_the_future() -> None:
    store = MemorySamples(lambda: BEGIN_MS)
    rows = [build_row(None, TargetRound(BEGIN_MS + ahead, 1, (Sample(0, 1),))) for ahead in (1_000, 1_001, 5_000)]
    written = store.append([(TENANT, target, row) for target, row in enumerate(rows)], LEASE)
    assert (written.stored, written.refused) == (1, 2)


def test_the_store_in_memory_takes_nothing_without_the_lease() -> None:
    store = MemorySamples(lambda: ms(90), LEASE)
    with pytest.raises(LeaseLost):
        store.append([(TENANT, 1, CASE.history().rows()[1][0])], replace(LEASE, epoch=2))
    assert store.newest([1]) == {}


@pytest.mark.contract
@pytest.mark.parametrize("evidence", [True, False])
async def test_the_database_reads_late_rounds_as_the_clean_history(samples: Stored, evidence: bool) -> None:
    rows = CASE.history().rows()[1]
    clean, delayed = [tuple(ids.values()) for ids in samples.put([{1: rows}, {1: late(rows)}])]
    requests = [CASE.request(90, TENANT, targets) for targets in (clean, delayed)]
    first, second = await samples.verdicts.judge(requests, evidence=evidence)
    assert first.verdict is Verdict.SUSTAINED
    assert replace(first, island=None) == replace(second, island=None)


@pytest.mark.contract
async def test_the_database_judges_another_tenants_targets_as_unmeasured(samples: Stored) -> None:
    (ids,) = samples.put([CASE.history().rows()])
    (judged,) = await samples.verdicts.judge([CASE.request(90, TENANT + 1, tuple(ids.values()))])
    assert judged.reason is Reason.NO_DATA


@pytest.mark.contract
async def test_now_is_the_databases_clock_whatever_the_hosts_says(
    samples: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(samples.url) as connection:
        row = connection.execute("select (extract(epoch from clock_timestamp()) * 1000)::bigint").fetchone()
    assert row is not None
    now_ms: int = row[0]
    rows: list[SampleRow] = []
    for back in range(90, -1, -15):
        made = TargetRound(now_ms - back * 1000, 1, (Sample(150, 1000),), members=0, members_age_ms=0)
        rows.append(build_row(rows[-1] if rows else None, made))
    (ids,) = samples.put([{1: rows}])
    wall = time.time
    monkeypatch.setattr(time, "time", lambda: wall() - 600)
    # However long this test takes, the samples are fresh.
    policy = replace(CASE.parsed(), stale_after_ms=3_600_000)
    (judged,) = await samples.verdicts.judge([VerdictRequest(TENANT, tuple(ids.values()), policy)])
    assert (judged.verdict, judged.at_ms) == (Verdict.SUSTAINED, now_ms)
    assert judged.now_ms >= now_ms
