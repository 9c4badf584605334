"""The least and the greatest value of every number of a policy: registered, and judged alike by reference and SQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from decimal import Decimal

import pytest

from lagscale.domain.policy.keys import KEYS
from lagscale.domain.policy.parsing import format_effective_values, parse_policy
from lagscale.domain.policy.policy import MAX_LAG, MAX_LOOKBACK_MS
from tests.contract.comparison import must_agree
from tests.contract.database import Stored, stored
from tests.contract.histories import History, ms
from tests.contract.random_histories import Instant, RandomHistory

_NUMBERS = {key.name: key for key in KEYS if key.is_number and key.field is not None}
#: Key -> the keys with which its greatest value is possible.
_WITH: Mapping[str, Mapping[str, str]] = {"activeValue": {"targetLag": str(MAX_LAG)}}
#: A lookback is shared by several keys; key -> the seconds that the others need at least.
_OTHERS = {
    "sustainSeconds": 55,
    "activationSustainSeconds": 55,
    "workSeconds": 55,
    "stuckAfterSeconds": 55,
    "staleAfterSeconds": 145,
}
_LEAST = {
    "maxGapSeconds": "20",
    "staleAfterSeconds": "25",
    "stuckAfterSeconds": "25",
    "targetLag": "0.001",
    "samplingInterval": "5",
}


def extremes() -> list[tuple[str, str]]:
    """Every key with its least and its greatest possible value."""
    found = []
    for name, key in _NUMBERS.items():
        greatest = min(key.maximum, MAX_LOOKBACK_MS // 1000 - _OTHERS[name]) if name in _OTHERS else key.maximum
        # Freshness and progress last at least as long as a gap.
        greatest = greatest // 3 if name == "maxGapSeconds" else greatest
        found += [(name, _LEAST.get(name, str(key.minimum))), (name, str(greatest))]
    return found


def loaded() -> History:
    """Two partitions, one with the greatest lag of an honest broker, and a consumer that reads a little."""
    history = History().known(0, 0)
    for number in range(6):
        history.round(15 * number, MAX_LAG + 10 - number, 7, members=2)
    return history


@pytest.fixture
async def samples(shared_url: str) -> AsyncIterator[Stored]:
    """The real database, judged as the scaler judges."""
    async with stored(shared_url) as opened:
        yield opened


@pytest.mark.parametrize(("name", "text"), extremes())
def test_a_registration_gives_back_every_value(name: str, text: str) -> None:
    policy = parse_policy({**_WITH.get(name, {}), name: text})
    texts = {key: value for key, value in format_effective_values(policy, {}).items() if value != "all"}
    assert Decimal(texts[name]) == Decimal(text)
    assert parse_policy(texts) == policy


@pytest.mark.contract
async def test_reference_and_database_judge_every_value_alike(samples: Stored) -> None:
    histories = []
    for name, text in extremes():
        for scope in ("partition", "total"):
            given = {"sustainSeconds": "30", **_WITH.get(name, {}), "persistenceScope": scope, name: text}
            for more in ({}, {"ensureEvenDistributionOfPartitions": "true"}, {"drainSeconds": "60"}):
                policy = parse_policy({**more, **given})
                histories.append(RandomHistory(policy, loaded().rows(), [Instant(ms(75), ms(75))]))
    await must_agree(samples, histories)


@pytest.mark.contract
async def test_the_greatest_threshold_of_time_lag_is_judged_alike(samples: Stored) -> None:
    policy = parse_policy({"metric": "timeLag", "lagThreshold": "43200", "sustainSeconds": "30"})
    await must_agree(samples, [RandomHistory(policy, loaded().rows(), [Instant(ms(75), ms(75))])])
