"""One store asked again and again while rounds arrive: what it remembers of the past changes no answer."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from random import Random

import pytest

from lagscale.domain.lag.rounds import SampleRow, TargetRound
from lagscale.domain.verdict.contract import Answer, Judgment, Verdict, VerdictRequest
from lagscale.domain.verdict.evaluate import find_last_known, judge
from tests.contract.database import TENANT, Stored, stored
from tests.contract.random_histories import RandomHistory, random_history

SEEDS = range(300_000, 300_060)
#: After a round, and long after it: fresh, stale, beyond a short hold.
LATER_MS = (0, 5_000, 90_000)
#: How long a target's deliveries may stall while another's go on.
STALL_MS = 40_000


@dataclass
class Growing:
    """A history of which rounds arrive one by one, in the store and in memory."""

    samples: Stored
    history: RandomHistory
    names: dict[int, int]
    arrived: dict[int, list[TargetRound]]

    @classmethod
    def begin(cls, samples: Stored, history: RandomHistory) -> Growing:
        return cls(samples, history, samples.name(history.rows), {target: [] for target in history.rows})

    def deliveries(self, random: Random) -> list[tuple[int, int, SampleRow]]:
        """(time of arrival, target, row): each target's in true order, for a writer marks a row from the one before."""
        made = []
        for target, rows in self.history.rows.items():
            arrives_ms = 0
            for row in sorted(rows, key=lambda row: row.round.at_ms):
                stalled_ms = random.randrange(STALL_MS) if random.randrange(6) == 0 else 0
                arrives_ms = max(arrives_ms, row.round.at_ms + stalled_ms)
                made.append((arrives_ms, target, row))
        return sorted(made, key=lambda one: one[0])

    def arrive(self, target: int, row: SampleRow) -> None:
        self.arrived[target].append(row.round)
        self.samples.add(self.names[target], row)

    async def check(self, now_ms: int) -> tuple[Verdict, Answer | None]:
        """Verdict and held answer of now, which are those of a store that was never asked before."""
        policy = self.history.policy
        request = VerdictRequest(
            TENANT, tuple(self.names[target] for target in sorted(self.names)), policy, None, now_ms
        )
        (judged,) = await self.samples.verdicts.judge([request])
        reference = judge(self.arrived, policy, now_ms=now_ms)
        assert _nameless(judged) == _nameless(reference)
        if judged.verdict is not Verdict.UNKNOWN:
            return judged.verdict, None
        held = await self.samples.verdicts.find_last_known(request, judged)
        assert held == find_last_known(self.arrived, policy, now_ms=now_ms)
        return judged.verdict, held


def _nameless(judged: Judgment) -> Judgment:
    """Without the targets' ids, which are others in the store, and without what only evidence names."""
    return replace(judged, island=None, absent=(), stuck=(), stuck_lag=0, lagging=0, time_lag=None)


@pytest.mark.contract
@pytest.mark.timeout(300)
async def test_the_store_answers_as_if_it_remembered_nothing(shared_url: str) -> None:
    found: Counter[tuple[Verdict, bool]] = Counter()
    async with stored(shared_url) as samples:
        for seed in SEEDS:
            random = Random(seed)
            growing = Growing.begin(samples, random_history(random))
            for at_ms, target, row in growing.deliveries(random):
                growing.arrive(target, row)
                verdict, held = await growing.check(at_ms + random.choice(LATER_MS))
                found[verdict, held is not None] += 1
    assert found[Verdict.UNKNOWN, True] > 50
    assert found[Verdict.UNKNOWN, False] > 50
