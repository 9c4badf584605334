"""What frozen monitors keep, by every engine: the numbered histories of it, and a rule that all of them obey."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from lagscale.domain.verdict.contract import Answer, VerdictRequest
from lagscale.domain.verdict.evaluate import find_last_known, judge
from lagscale.domain.verdict.hold import build_frozen_request, without_hold_limit
from lagscale.store.scraping.leases import Lease
from services.scaler.answers.snapshots import VerdictSource
from tests.contract import table, table_freeze
from tests.contract.case import Case, Holding
from tests.contract.database import TENANT, Stored, stored
from tests.contract.histories import ms
from tests.support.memory_samples import MemorySamples

FROZEN = [(case, one) for case in table_freeze.CASES for one in case.expected if isinstance(one, Holding)]
every_freeze = pytest.mark.parametrize(
    ("case", "expected"), FROZEN, ids=[f"{case.number} at {one.at:g}: {case.says}" for case, one in FROZEN]
)
#: Every other history, frozen at its last instant.
every_end = pytest.mark.parametrize("case", table.CASES, ids=[f"{case.number}: {case.says}" for case in table.CASES])


@pytest.fixture
async def samples(shared_url: str) -> AsyncIterator[Stored]:
    async with stored(shared_url) as opened:
        yield opened


async def kept(store: VerdictSource, request: VerdictRequest, at_ms: int) -> Answer | None:
    """As the scaler and the API look for it."""
    asked = build_frozen_request(request, at_ms)
    (judged,) = await store.judge([asked])
    return await store.find_last_known(asked, judged)


@every_freeze
def test_the_reference_keeps_what_the_table_says(case: Case, expected: Holding) -> None:
    policy = without_hold_limit(case.parsed())
    now_ms = ms(expected.at)
    assert find_last_known(case.history().targets(), policy, now_ms=now_ms, upto_ms=now_ms) == expected.told


@every_freeze
async def test_the_store_in_memory_keeps_what_the_table_says(case: Case, expected: Holding) -> None:
    history = case.history()
    store = MemorySamples(lambda: ms(100_000))
    for topic, rows in history.rows().items():
        store.append([(TENANT, topic, row) for row in rows], LEASE)
    request = VerdictRequest(TENANT, tuple(history.topics), case.parsed())
    assert await kept(store, request, ms(expected.at)) == expected.told


@pytest.mark.contract
@every_freeze
async def test_the_database_keeps_what_the_table_says(case: Case, expected: Holding, samples: Stored) -> None:
    (ids,) = samples.put([case.history().rows()])
    request = VerdictRequest(TENANT, tuple(ids.values()), case.parsed())
    assert await kept(samples.verdicts, request, ms(expected.at)) == expected.told


@pytest.mark.contract
@every_end
async def test_a_freeze_never_lowers_and_never_puts_to_sleep(case: Case, samples: Stored) -> None:
    (ids,) = samples.put([case.history().rows()])
    at_ms = ms(case.expected[-1].at)
    request = VerdictRequest(TENANT, tuple(ids.values()), case.parsed())
    found = await kept(samples.verdicts, request, at_ms)
    targets = case.history().targets()
    assert found == find_last_known(targets, without_hold_limit(request.policy), now_ms=at_ms, upto_ms=at_ms)
    now = judge(targets, request.policy, now_ms=at_ms, upto_ms=at_ms)
    if found is not None:
        assert found.active
        assert found.value >= (now.value or 0.0)
        assert found.last_known_ms is not None
        assert found.last_known_ms <= at_ms
    else:
        assert now.active is not True


LEASE = Lease("a scraper", 1)
