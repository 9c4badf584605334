"""The cache of snapshots: both calls of a KEDA poll get the same judgment."""

from __future__ import annotations

from collections.abc import Sequence

from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.contract import Answer, Judgment, Reason, Verdict, VerdictRequest
from services.scaler.answers.snapshots import SnapshotCache

ASK = VerdictRequest(1, (1,), Policy.parse({}))


class Changing:
    """A store whose judgments all differ."""

    def __init__(self) -> None:
        self.asked = 0

    async def judge(self, requests: Sequence[VerdictRequest]) -> list[Judgment]:
        self.asked += 1
        return [Judgment(Verdict.SUSTAINED, Reason.LASTED, float(self.asked), True, 1, 1) for _ in requests]

    async def find_last_known(self, request: VerdictRequest, judgment: Judgment) -> Answer | None:
        raise AssertionError("nothing is unknown here")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def snapshots(store: Changing, clock: Clock) -> SnapshotCache:
    return SnapshotCache(store, slots=1, seconds=1.0, on_judgment=lambda _ask, _judgment: None, clock=clock)


async def test_both_calls_of_a_poll_get_the_same_judgment_at_any_time() -> None:
    store, clock = Changing(), Clock()
    shared = snapshots(store, clock)
    for _ in range(40):
        value = (await shared.get(ASK, begins_poll=True)).judgment.value
        clock.now += 0.3
        assert (await shared.get(ASK)).judgment.value == value
        clock.now += 0.04
    assert store.asked < 40, "polls within one second share a judgment"


async def test_a_judgment_expires() -> None:
    store, clock = Changing(), Clock()
    shared = snapshots(store, clock)
    first = await shared.get(ASK)
    clock.now += 1.01
    assert (await shared.get(ASK)).judgment.value != first.judgment.value
