"""Judgements of about the last second, shared by the calls of one poll, and read together when the store is busy.

A memo, not state: losing it costs one query. `answers.py` and the streams ask here; nobody else asks the store.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import structlog
from cachetools import TTLCache

from lagscale.domain.verdict.contract import Ask, Judgement, Told, Verdict
from lagscale.errors import LagscaleError, StoreUnavailable
from lagscale.store.records import VerdictStore
from services.scaler import metrics

log = structlog.get_logger(__name__)

#: Monitors that one query judges for waiting calls, and for the streams.
BATCH: Final = 16
_STREAMS_BATCH: Final = 500
_REMEMBERED: Final = 50_000
#: A held answer changes only with a new row, and after this long it is read again all the same: rows may come late.
_HOLD_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Reading:
    """A judgement with the answer held in its place while it is unknown."""

    judgement: Judgement
    hold: Told | None


_FORGOTTEN: Final = (float("-inf"), None)
_HoldKey = tuple[Ask, int | None, Verdict, int | None]


class Snapshots:
    """Reads judgements with single flight, a memo, and coalescing without any timer."""

    def __init__(
        self,
        store: VerdictStore,
        *,
        slots: int,
        seconds: float,
        on_reading: Callable[[Ask, Judgement], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`slots` queries run at once; a reading serves for `seconds`; `on_reading` hears of each judgement read."""
        self._clock = clock
        self._store = store
        self._free = slots
        self._on_reading = on_reading
        self._seconds = seconds
        self._memo: TTLCache[Ask, tuple[float, Reading | LagscaleError | None]] = TTLCache(
            _REMEMBERED, seconds, timer=clock
        )
        self._holds: TTLCache[_HoldKey, Told | None] = TTLCache(_REMEMBERED, _HOLD_SECONDS)
        self._flights: dict[Ask, asyncio.Future[Reading]] = {}
        self._queue: deque[Ask] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    async def get(self, ask: Ask, *, begins_poll: bool = False) -> Reading:
        """The monitor's reading; cancelling the caller leaves the flight to the others.

        A call that begins a poll takes none that is about to be forgotten: the poll's next call must find the same
        one, or value and activity would contradict each other.

        Raises:
            StoreUnavailable: the store does not answer.
        """
        kept_at, known = self._memo.get(ask, _FORGOTTEN)
        if begins_poll and self._clock() - kept_at > self._seconds / 2:
            known = None
        metrics.MEMO.labels("snapshot", "miss" if known is None else "hit").inc()
        if isinstance(known, LagscaleError):
            raise type(known)(known.message)
        if known is not None:
            return known
        flight = self._flights.get(ask)
        if flight is None:
            flight = self._flights[ask] = asyncio.get_running_loop().create_future()
            # Nobody may be left to hear of a failure.
            flight.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._queue.append(ask)
            self._depart()
        return await asyncio.shield(flight)

    def remembered(self, ask: Ask) -> Reading | None:
        """The reading that serves calls just now, without asking for one; None without any, or after a failure."""
        _, known = self._memo.get(ask, _FORGOTTEN)
        return None if known is None or isinstance(known, LagscaleError) else known

    async def refresh(self, asks: Iterable[Ask]) -> None:
        """Read these monitors anew for the open streams, by as few queries as may be, outside the calls' slots."""
        waiting = list(dict.fromkeys(asks))
        for start in range(0, len(waiting), _STREAMS_BATCH):
            batch = waiting[start : start + _STREAMS_BATCH]
            try:
                judgements = await self._judge(batch)
                # What is known first: looking for held answers takes longer.
                read = sorted(zip(batch, judgements, strict=True), key=lambda one: one[1].verdict is Verdict.UNKNOWN)
                for ask, judgement in read:
                    self._keep(ask, await self._reading(ask, judgement))
            except StoreUnavailable as error:
                # Each stream would ask by itself otherwise, and wait.
                for ask in waiting[start:]:
                    self._keep(ask, error.with_traceback(None))
                return

    async def close(self) -> None:
        """End the flights; who waits gets an error."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _depart(self) -> None:
        """Start queries while there are free slots: what has queued goes together."""
        while self._free and self._queue:
            batch = [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]
            self._free -= 1
            task = asyncio.get_running_loop().create_task(self._fly(batch))
            self._tasks.add(task)
            task.add_done_callback(self._landed)

    def _landed(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._free += 1
        if not task.cancelled():
            self._depart()

    async def _fly(self, batch: Sequence[Ask]) -> None:
        try:
            await self._serve(batch)
        except Exception as error:
            # One monitor's defect must not take the others of its batch with it.
            if len(batch) > 1 and not isinstance(error, LagscaleError):
                for ask in batch:
                    await self._fly([ask])
                return
            self._fail(batch, error)
        except asyncio.CancelledError:
            self._fail(batch, StoreUnavailable())
            raise

    async def _serve(self, batch: Sequence[Ask]) -> None:
        judgements = await self._judge(batch)
        unknown = []
        for ask, judgement in zip(batch, judgements, strict=True):
            if judgement.verdict is Verdict.UNKNOWN:
                unknown.append((ask, judgement))
            else:
                self._land(ask, Reading(judgement, None))
        for ask, judgement in unknown:
            self._land(ask, await self._reading(ask, judgement))

    async def _judge(self, batch: Sequence[Ask]) -> list[Judgement]:
        metrics.BATCH.observe(len(batch))
        try:
            judgements = await self._store.judge(batch)
        except StoreUnavailable as error:
            metrics.STORE_ERRORS.labels(type(error).__name__).inc()
            raise
        for ask, judgement in zip(batch, judgements, strict=True):
            metrics.VERDICTS.labels(judgement.verdict.value, judgement.reason.value).inc()
            self._on_reading(ask, judgement)
        return judgements

    async def _reading(self, ask: Ask, judgement: Judgement) -> Reading:
        if judgement.verdict is not Verdict.UNKNOWN or ask.policy.hold_ms == 0:
            return Reading(judgement, None)
        key = (ask, judgement.at_ms, judgement.verdict, judgement.members)
        known = key in self._holds
        metrics.MEMO.labels("hold", "hit" if known else "miss").inc()
        hold = self._holds[key] if known else await self._store.hold(ask, judgement)
        self._holds[key] = hold
        since = None if hold is None else hold.held_since_ms
        if since is not None and judgement.now_ms - since > ask.policy.hold_ms:
            hold = None
        return Reading(judgement, hold)

    def _keep(self, ask: Ask, reading: Reading | LagscaleError) -> None:
        self._memo[ask] = self._clock(), reading

    def _land(self, ask: Ask, reading: Reading) -> None:
        self._keep(ask, reading)
        flight = self._flights.pop(ask, None)
        if flight is not None and not flight.done():
            flight.set_result(reading)

    def _fail(self, batch: Sequence[Ask], error: Exception | StoreUnavailable) -> None:
        if not isinstance(error, LagscaleError):
            log.error("verdict_failed", exc_info=error)
            metrics.STORE_ERRORS.labels(type(error).__name__).inc()
            error = StoreUnavailable()
        for ask in batch:
            flight = self._flights.pop(ask, None)
            if flight is not None and not flight.done():
                flight.set_exception(type(error)(error.message))
