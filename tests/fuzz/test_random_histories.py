"""The database against the reference over random policies and histories, many of them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from tests.contract.comparison import must_agree
from tests.contract.database import Stored, stored
from tests.contract.random_histories import random_history
from tests.contract.random_waits import random_waits

#: In one round trip; each history is judged at several instants in every way.
BATCH = 50
#: `make fuzz` asks for 100,000.
EXAMPLES = int(os.environ.get("LAGSCALE_FUZZ_EXAMPLES", "5000"))


@pytest.fixture
async def samples(shared_url: str) -> AsyncIterator[Stored]:
    """The real database, judged as the scaler judges."""
    async with stored(shared_url) as opened:
        yield opened


@pytest.mark.fuzz
# A mark beats the command line's time-out, so it follows the number of examples.
@pytest.mark.timeout(300 + EXAMPLES // 10)
# Held after a look back that was wholly judged anew.
@example(seeds=[103116993])
@given(seeds=st.lists(st.integers(0, 2**48), min_size=BATCH, max_size=BATCH, unique=True))
@settings(
    max_examples=EXAMPLES // BATCH,
    deadline=None,
    # What a mismatch does not need is left out by its rounds, not by its seed.
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
async def test_the_database_agrees_with_the_reference(samples: Stored, seeds: list[int]) -> None:
    await must_agree(samples, [random_history(Random(seed)) for seed in seeds])


@pytest.mark.fuzz
@pytest.mark.timeout(300 + EXAMPLES // 20)
@given(seeds=st.lists(st.integers(0, 2**48), min_size=BATCH, max_size=BATCH, unique=True))
@settings(
    max_examples=EXAMPLES // BATCH // 5,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
async def test_the_database_agrees_by_time(samples: Stored, seeds: list[int]) -> None:
    await must_agree(samples, [random_waits(Random(seed)) for seed in seeds])
