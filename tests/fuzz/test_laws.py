"""The laws of the verdict in the reference, on many histories."""

from __future__ import annotations

import os

import pytest

from tests.contract.lawbook import LAWS, first_broken_in_memory
from tests.contract.laws import Law

#: Of these few: each is judged twice, by every law.
EXAMPLES = int(os.environ.get("LAGSCALE_FUZZ_EXAMPLES", "5000")) // 20
SEEDS = range(500_000, 500_000 + EXAMPLES)


@pytest.mark.fuzz
# A mark beats the command line's time-out, so it follows the number of examples.
@pytest.mark.timeout(120 + EXAMPLES // 5)
@pytest.mark.parametrize("law", LAWS, ids=[law.says for law in LAWS])
def test_the_law_holds_in_the_reference(law: Law) -> None:
    found = first_broken_in_memory(law, SEEDS)
    assert found is None, str(found)
