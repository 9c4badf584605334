"""History 36: a monitor that measures nothing is unknown, whichever statement is asked, beside any other monitor."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from lagscale.domain.verdict.contract import Judgment, Reason, Verdict
from lagscale.domain.verdict.evaluate import find_last_known, judge
from tests.contract.case import Case
from tests.contract.database import TENANT, Stored, stored
from tests.contract.histories import History, ms

CASE = Case("36", "no target", lambda: History().known().rounds(0, 60, 150), (), {"holdSeconds": "3600"})
NOTHING = Judgment(Verdict.UNKNOWN, Reason.NOTHING_TO_MEASURE, None, None, None, ms(60))


@pytest.fixture
async def samples(shared_url: str) -> AsyncIterator[Stored]:
    async with stored(shared_url) as opened:
        yield opened


def test_the_reference_finds_nothing_to_measure() -> None:
    assert judge({}, CASE.parsed(), now_ms=ms(60)) == NOTHING
    assert find_last_known({}, CASE.parsed(), now_ms=ms(60)) is None


@pytest.mark.contract
@pytest.mark.parametrize("way", Stored.WAYS)
async def test_the_database_finds_nothing_to_measure(samples: Stored, way: str) -> None:
    (ids,) = samples.put([CASE.history().rows()])
    nothing, other = CASE.request(60, TENANT, ()), CASE.request(60, TENANT, tuple(ids.values()))
    first, second, third = await samples.judge([nothing, other, nothing], way)
    assert second.verdict is Verdict.SUSTAINED
    assert (first, third) == (NOTHING, NOTHING)


@pytest.mark.contract
async def test_the_database_holds_nothing_for_nothing(samples: Stored) -> None:
    assert await samples.verdicts.find_last_known(CASE.request(60, TENANT, ()), NOTHING) is None
