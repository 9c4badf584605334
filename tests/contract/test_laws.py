"""Every law of the verdict holds in the reference and in the database, and fails under a break."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.contract.database import Stored, stored
from tests.contract.lawbook import LAWS, first_broken, first_broken_in_memory, pairs
from tests.contract.laws import Law

IN_MEMORY = range(400_000, 400_150)
STORED = range(410_000, 410_120)
#: As many as a break may need to be seen.
TO_BREAK = range(420_000, 421_000)
every_law = pytest.mark.parametrize("law", LAWS, ids=[law.says for law in LAWS])


@pytest.fixture
async def samples(shared_url: str) -> AsyncIterator[Stored]:
    """The real database, judged as the scaler judges."""
    async with stored(shared_url) as opened:
        yield opened


@every_law
def test_the_law_holds_in_the_reference(law: Law) -> None:
    found = first_broken_in_memory(law, IN_MEMORY)
    assert found is None, str(found)


@every_law
def test_the_law_speaks_of_many_histories(law: Law) -> None:
    assert sum(1 for _ in pairs(law, IN_MEMORY)) > len(IN_MEMORY) // 20


@pytest.mark.contract
@pytest.mark.timeout(300)
@every_law
async def test_the_law_holds_in_the_database(law: Law, samples: Stored) -> None:
    found = await first_broken(law, samples, STORED)
    assert found is None, str(found)


@pytest.mark.contract
@pytest.mark.timeout(300)
@every_law
async def test_the_law_can_fail(law: Law, samples: Stored) -> None:
    with law.breaks():
        assert await first_broken(law, samples, TO_BREAK) is not None
