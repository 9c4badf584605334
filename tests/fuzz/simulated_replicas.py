"""A simulation: a group on a broker, a scraper, a store that fails, and replicas of the scaler, in simulated time.

The simulation knows the true lag at every point in time; the replicas do not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from lagscale.domain.lag.rounds import SampleRow, TargetRound, build_row
from lagscale.domain.lag.samples import Offsets, Sample, build_sample
from lagscale.domain.policy.policy import PersistenceScope, Policy
from lagscale.domain.verdict.contract import Answer, Judgment, VerdictRequest
from lagscale.errors import LagscaleError, StoreUnavailable
from lagscale.store.registrations.answers import Decision, FrozenAnswer, FrozenAnswerKey
from lagscale.store.registrations.load import InlineMonitor, Registrations
from lagscale.store.scraping.leases import Lease
from services.scaler.answers import last_known
from services.scaler.answers.answer import AnswerService, CallRateLimiter, MonitorAnswer
from services.scaler.answers.decision_log import DecisionLog
from services.scaler.answers.frozen import FrozenAnswerCache
from services.scaler.answers.last_known import LastKnownAnswers
from services.scaler.answers.snapshots import SnapshotCache
from services.scaler.local_cache import ANSWERS, LocalCache
from services.scaler.triggers.directory import ResolvedMonitor, compute_monitor_key
from tests.support.memory_samples import MemorySamples

BEGIN_MS = 1_767_607_200_000
STEP_MS = 5_000
INTERVAL_MS = 10_000
SNAPSHOT_TTL_MS = 1_000
TENANT, TARGET = 1, 1
LEASE = Lease("a scraper", 1)
#: A call's timeout in real seconds, while the store hangs and otherwise: only a hanging store makes calls wait.
_HANGING_SECONDS, _CALL_SECONDS = 0.005, 30.0


class FailingStore:
    """Samples in memory behind a connection that can fail or hang."""

    def __init__(self, world: World) -> None:
        self.samples = MemorySamples(lambda: world.now_ms)
        self.away = False
        self.hangs = False
        self._answers = asyncio.Event()

    def turn(self, *, away: bool, hangs: bool) -> None:
        """Fail, hang, or neither; calls that hung continue."""
        self.away, self.hangs = away, hangs
        self._answers.set()
        self._answers = asyncio.Event()

    async def judge(self, requests: Sequence[VerdictRequest]) -> list[Judgment]:
        await self._reach()
        return await self.samples.judge(requests)

    async def find_last_known(self, request: VerdictRequest, judgment: Judgment) -> Answer | None:
        await self._reach()
        return await self.samples.find_last_known(request, judgment)

    async def _reach(self) -> None:
        while self.hangs:
            await self._answers.wait()
        if self.away:
            raise StoreUnavailable


class NoRegistrations:
    """A registration store that must not be called to register."""

    async def version(self) -> int:
        return 1

    async def load(self) -> Registrations:
        return Registrations(1)

    async def register(self, monitor: InlineMonitor) -> None:
        raise AssertionError("the monitor is registered")


class NoFreezes:
    """A store of frozen answers that must not be called."""

    async def find_answer(self, asked: FrozenAnswerKey, freeze_ids: Sequence[str]) -> FrozenAnswer | None:
        raise AssertionError("the monitor is not frozen")

    async def store_first(
        self, asked: FrozenAnswerKey, freeze_ids: Sequence[str], answer: FrozenAnswer
    ) -> FrozenAnswer:
        raise AssertionError("the monitor is not frozen")


class NoDecisions:
    """Discards decisions."""

    async def append(self, decisions: list[Decision]) -> None:
        return None

    async def mark_asked(self, monitor_ids: list[int]) -> None:
        return None


@dataclass
class Partition:
    """A log and its reader: messages per step in and out."""

    end: int = 1_000
    committed: int = 1_000
    produced: int = 0
    consumed: int = 0
    readable: bool = True

    def step(self) -> None:
        self.end += self.produced
        self.committed = min(self.end, self.committed + self.consumed)

    @property
    def lag(self) -> int:
        return self.end - self.committed


@dataclass
class World:
    """Everything outside the scaler; `lags` is the truth: time -> true lag of each partition."""

    policy: Policy
    now_ms: int = BEGIN_MS
    partitions: list[Partition] = field(default_factory=lambda: [Partition(), Partition()])
    members: int | None = 0
    scraping: bool = True
    rows: list[SampleRow] = field(default_factory=list)
    lags: dict[int, list[int]] = field(default_factory=dict)
    store: FailingStore = field(init=False)

    def __post_init__(self) -> None:
        self.store = FailingStore(self)

    def step(self) -> None:
        """Five seconds pass; every second time the scraper polls, if it runs and the store is available."""
        self.now_ms += STEP_MS
        for partition in self.partitions:
            partition.step()
        self.lags[self.now_ms] = [partition.lag for partition in self.partitions]
        if self.scraping and not (self.store.away or self.store.hangs) and self.now_ms % INTERVAL_MS == 0:
            self._poll()

    def _poll(self) -> None:
        previous = self.rows[-1] if self.rows else None
        samples: list[Sample | None] = []
        for number, partition in enumerate(self.partitions):
            newest = previous.newest(number) if previous else None
            answer = Offsets(0, partition.end, partition.committed, partition.end)
            samples.append(build_sample(answer, newest.sample if newest else None) if partition.readable else None)
        age_ms = None if self.members is None else 0
        made = TargetRound(self.now_ms, 1, tuple(samples), members=self.members, members_age_ms=age_ms)
        self.rows.append(build_row(previous, made))
        self.store.samples.append([(TENANT, TARGET, self.rows[-1])], LEASE)

    def poll_from_the_future(self) -> bool:
        """Write a calm round stamped by a wrong clock; whether the store rejected it."""
        calm = TargetRound(self.now_ms + 600_000, 1, tuple(Sample(0, 1) for _ in self.partitions))
        return self.store.samples.append([(TENANT, TARGET, build_row(None, calm))], LEASE).refused == 1

    def was_calm(self, at_ms: int) -> bool:
        """Whether the samples that count at that time show no lag that was in fact sustained.

        A sample may be taken as late as the maximum gap after the lag; only a longer lag must appear in the samples.
        """
        return all(self._seen_calm(number, at_ms) for number in range(len(self.partitions)))

    def _seen_calm(self, number: int, at_ms: int) -> bool:
        oldest = at_ms - self.policy.stale_after_ms - SNAPSHOT_TTL_MS
        seen = [
            row.round.at_ms
            for row in self.rows
            if oldest <= row.round.at_ms <= at_ms and row.round.samples[number] is not None
        ]
        return bool(seen) and not self._lasted(number, seen[-1])

    def _lasted(self, number: int, at_ms: int) -> bool:
        total = self.policy.persistence_scope is PersistenceScope.TOTAL
        since = at_ms
        while since in self.lags:
            lags = self.lags[since]
            if (sum(lags) if total else lags[number]) <= self.policy.lag_threshold:
                break
            since -= STEP_MS
        return at_ms - since > self.policy.sustain_ms + self.policy.max_gap_ms

    def nobody_waits(self, at_ms: int) -> bool:
        """Whether a fresh round showed no backlog that a group at work, or a patient one without members, has."""
        seen = [
            row.round
            for row in self.rows
            if at_ms - self.policy.stale_after_ms - SNAPSHOT_TTL_MS <= row.round.at_ms <= at_ms
        ]
        if not seen:
            return False
        waits = sum(self.lags[seen[-1].at_ms]) > self.policy.activation_lag_threshold
        return not waits or (seen[-1].members == 0 and not self._waited(seen[-1].at_ms))

    def _waited(self, at_ms: int) -> bool:
        since = at_ms
        while since in self.lags and sum(self.lags[since]) > self.policy.activation_lag_threshold:
            since -= STEP_MS
        return at_ms - since > self.policy.activation_sustain_ms + self.policy.max_gap_ms


class Replica:
    """One scaler on its own host, whose wall clock may be wrong."""

    def __init__(self, world: World, folder: Path) -> None:
        self._world = world
        self._local_cache = LocalCache(folder)
        self.skew_ms = 0
        #: A restart takes no time for a host clock that was set back.
        self.uncounted_ms = 0
        request = VerdictRequest(TENANT, (TARGET,), world.policy)
        self.monitor = ResolvedMonitor(
            TENANT, "acme", "orders", world.policy, 1, request, {TARGET: "orders"}, compute_monitor_key(request)
        )
        self._begin()

    def _begin(self) -> None:
        self.last = LastKnownAnswers()
        self.snapshots = SnapshotCache(
            self._world.store,
            slots=2,
            seconds=SNAPSHOT_TTL_MS / 1000,
            on_judgment=lambda request, judgment: self.last.note(
                compute_monitor_key(request), judgment, request.policy
            ),
            clock=lambda: self._world.now_ms / 1000,
        )
        decision_log = DecisionLog(NoDecisions(), "a replica", self.last.clock.now_ms)
        self.answers = AnswerService(
            self.snapshots,
            NoRegistrations(),
            self.last,
            decision_log,
            FrozenAnswerCache(NoFreezes(), self._world.store, self.last),
            call_limiter=CallRateLimiter(lambda _: 1_000_000),
        )

    def _clock(self) -> AbstractContextManager[object]:
        """This host's clocks: the monotonic one is right, the wall clock may be wrong."""
        now_ms, skew_ms = self._world.now_ms, self.skew_ms
        clock = SimpleNamespace(monotonic=lambda: now_ms / 1000, time=lambda: (now_ms + skew_ms) / 1000)
        return mock.patch.object(last_known, "time", clock)

    async def get_answer(self, *, begins_poll: bool) -> MonitorAnswer | LagscaleError:
        """The answer to KEDA, or the error instead of it."""
        with self._clock():
            seconds = _HANGING_SECONDS if self._world.store.hangs else _CALL_SECONDS
            deadline = asyncio.get_running_loop().time() + seconds
            try:
                return await self.answers.get_answer(self.monitor, deadline, begins_poll=begins_poll)
            except LagscaleError as error:
                return error

    def write_local_cache(self) -> None:
        """Write the local cache, as a replica does every second."""
        with self._clock():
            self._local_cache.write(ANSWERS, self.last.dump())

    async def restart(self) -> None:
        """Stop, and start from the local cache."""
        await self.snapshots.close()
        self._begin()
        with self._clock():
            self.last.restore(self._local_cache.read(ANSWERS))

    async def close(self) -> None:
        """Cancel the running queries."""
        await self.snapshots.close()
