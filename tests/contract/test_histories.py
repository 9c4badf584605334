"""Every numbered history against every engine: the reference, the store in memory, and the real database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from lagscale.domain.verdict.contract import Judgment, Verdict
from lagscale.domain.verdict.evaluate import find_last_known, judge
from lagscale.domain.verdict.hold import choose_answer
from lagscale.store.scraping.leases import Lease
from services.scaler.answers.snapshots import VerdictSource
from tests.contract.case import Case, Expected
from tests.contract.database import TENANT, Stored, stored
from tests.contract.histories import ms
from tests.contract.table import CASES
from tests.support.memory_samples import MemorySamples

every_case = pytest.mark.parametrize("case", CASES, ids=[f"{case.number}: {case.says}" for case in CASES])
LEASE = Lease("a scraper", 1)


@pytest.fixture
async def samples(shared_url: str) -> AsyncIterator[Stored]:
    """The real database, judged as the scaler judges."""
    async with stored(shared_url) as opened:
        yield opened


@every_case
def test_the_reference_judges_as_the_table_says(case: Case) -> None:
    targets, policy = case.history().targets(), case.parsed()
    for expected in case.expected:
        now_ms = ms(expected.at)
        judged = judge(targets, policy, now_ms=now_ms, upto_ms=now_ms)
        if isinstance(expected, Expected):
            expected.check(judged)
        else:
            past = find_last_known(targets, policy, now_ms=now_ms, upto_ms=now_ms)
            assert choose_answer(judged, policy, past) == expected.told, f"at {expected.at} s: {judged}"


@every_case
async def test_the_store_in_memory_judges_as_the_table_says(case: Case) -> None:
    history = case.history()
    store = MemorySamples(lambda: ms(100_000))
    for topic, rows in history.rows().items():
        store.append([(TENANT, topic, row) for row in rows], LEASE)
    await _check_all(store, case, tuple(history.topics))


@pytest.mark.contract
@every_case
async def test_the_database_judges_as_the_table_says(case: Case, samples: Stored) -> None:
    (ids,) = samples.put([case.history().rows()])
    await _check_all(samples.verdicts, case, tuple(ids.values()), ids)
    for expected in case.expected:
        if isinstance(expected, Expected):
            (judged,) = await samples.verdicts.judge(
                [case.request(expected.at, TENANT, tuple(ids.values()))], evidence=True
            )
            expected.check(_renamed(judged, ids))


async def _check_all(
    store: VerdictSource, case: Case, targets: tuple[int, ...], ids: dict[int, int] | None = None
) -> None:
    """Judge every instant. With `ids` the targets have other names in the store, and it need not tell islands."""
    for expected in case.expected:
        request = case.request(expected.at, TENANT, targets)
        (judged,) = await store.judge([request])
        if isinstance(expected, Expected):
            expected.check(judged if ids is None else _renamed(judged, ids), islands=ids is None)
        else:
            past = await store.find_last_known(request, judged) if judged.verdict is Verdict.UNKNOWN else None
            assert choose_answer(judged, request.policy, past) == expected.told, f"at {expected.at} s: {judged}"


def _renamed(judged: Judgment, ids: dict[int, int]) -> Judgment:
    """The absent topics and the stuck partitions by the history's own names."""
    names = {target: topic for topic, target in ids.items()}
    stuck = tuple((names[target], partition) for target, partition in judged.stuck)
    return replace(judged, stuck=stuck, absent=tuple(names[target] for target in judged.absent))
