"""Every break of the verdict's SQL is caught by a wrong answer, on few histories."""

from __future__ import annotations

import pytest

from tests.contract.breakages import BREAKAGES
from tests.contract.database import stored
from tests.contract.mutations import first_wrong, prepare_all, try_all

SEEDS = range(200_000, 201_000)


@pytest.mark.contract
@pytest.mark.timeout(600)
async def test_every_break_of_the_sql_gives_a_wrong_answer(shared_url: str) -> None:
    async with stored(shared_url) as samples:
        asked = prepare_all(samples, SEEDS)
        assert await first_wrong(samples, asked, None) is None
        outcomes = await try_all(samples, asked)
    assert [outcome.breakage.name for outcome in outcomes if outcome.caught is None] == []
    assert len(outcomes) == len(BREAKAGES) > 10
