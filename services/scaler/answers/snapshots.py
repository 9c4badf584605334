"""Judgments of about the last second, shared by the calls of one poll, and read in batches when the store is busy.

A cache, not state: losing it costs one query. All judgments of unfrozen monitors are read through it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import structlog
from cachetools import TTLCache

from lagscale.domain.verdict.contract import Answer, Judgment, Verdict, VerdictRequest
from lagscale.errors import LagscaleError, StoreUnavailable
from services.scaler import deadlines, metrics

log = structlog.get_logger(__name__)

#: Monitors per query, for waiting calls and for streams.
BATCH: Final = 16
_STREAMS_BATCH: Final = 500
_CACHE_SIZE: Final = 50_000


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A judgment, and the last-known answer if it is unknown."""

    judgment: Judgment
    last_known: Answer | None


_NOT_CACHED: Final = (float("-inf"), None)
_LastKnownKey = tuple[VerdictRequest, int | None, Verdict, int | None]


class VerdictSource(Protocol):
    """Judges monitors from stored samples; `PostgresVerdicts` is the one in the store.

    Every method raises `StoreUnavailable` if the store does not answer in time.
    """

    async def judge(self, requests: Sequence[VerdictRequest]) -> list[Judgment]:
        """One judgment for each request, in order, all from one snapshot."""

    async def find_last_known(self, request: VerdictRequest, judgment: Judgment) -> Answer | None:
        """The last-known answer for an unknown judgment, from the samples; None without one."""


class SnapshotCache:
    """Reads judgments: cached, one query at a time for each monitor, and batched without a timer."""

    def __init__(
        self,
        store: VerdictSource,
        *,
        slots: int,
        seconds: float,
        on_judgment: Callable[[VerdictRequest, Judgment], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """At most `slots` queries run at once; a snapshot is valid for `seconds`; `on_judgment` receives each judgment."""
        self._store, self._free, self._seconds = store, slots, seconds
        self._on_judgment, self._clock = on_judgment, clock
        self._snapshots: TTLCache[VerdictRequest, tuple[float, Snapshot | LagscaleError | None]] = TTLCache(
            _CACHE_SIZE, seconds, timer=clock
        )
        self._last_known: TTLCache[_LastKnownKey, Answer | None] = TTLCache(
            _CACHE_SIZE, deadlines.LAST_KNOWN_TTL_SECONDS
        )
        self._pending: dict[VerdictRequest, asyncio.Future[Snapshot]] = {}
        self._queue: deque[VerdictRequest] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    async def get(self, request: VerdictRequest, *, begins_poll: bool = False) -> Snapshot:
        """The monitor's snapshot; cancelling a caller does not cancel the query for the others.

        A call that begins a poll does not use a snapshot that expires soon: the poll's next call must find the same
        one, or value and activity would contradict each other.

        Raises:
            StoreUnavailable: the query failed.
        """
        cached_at, cached = self._snapshots.get(request, _NOT_CACHED)
        if begins_poll and self._clock() - cached_at > self._seconds / 2:
            cached = None
        metrics.CACHE_LOOKUPS.labels("snapshot", "miss" if cached is None else "hit").inc()
        if isinstance(cached, LagscaleError):
            raise type(cached)(cached.message)
        if cached is not None:
            return cached
        future = self._pending.get(request)
        if future is None:
            future = self._pending[request] = asyncio.get_running_loop().create_future()
            # Without a waiter left, asyncio would complain of an exception that was never retrieved.
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._queue.append(request)
            self._start()
        return await asyncio.shield(future)

    def find_cached(self, request: VerdictRequest) -> Snapshot | None:
        """The valid snapshot, without a query; None without any, or after a failure."""
        _, cached = self._snapshots.get(request, _NOT_CACHED)
        return None if cached is None or isinstance(cached, LagscaleError) else cached

    async def refresh(self, requests: Iterable[VerdictRequest]) -> None:
        """Read these monitors again for the open streams, in as few queries as possible, outside the calls' slots."""
        waiting = list(dict.fromkeys(requests))
        for start in range(0, len(waiting), _STREAMS_BATCH):
            batch = waiting[start : start + _STREAMS_BATCH]
            try:
                judgments = await self._judge(batch)
                # Known verdicts first: reading last-known answers takes longer.
                read = sorted(zip(batch, judgments, strict=True), key=lambda one: one[1].verdict is Verdict.UNKNOWN)
                for request, judgment in read:
                    self._cache(request, await self._build_snapshot(request, judgment))
            except StoreUnavailable as error:
                # Otherwise each stream would query by itself, and wait.
                for request in waiting[start:]:
                    self._cache(request, error.with_traceback(None))
                return

    async def close(self) -> None:
        """Cancel the running queries; waiters get an error."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self) -> None:
        """Start queries while there are free slots; what is queued becomes one batch."""
        while self._free and self._queue:
            batch = [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]
            self._free -= 1
            task = asyncio.get_running_loop().create_task(self._run(batch))
            self._tasks.add(task)
            task.add_done_callback(self._finish)

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._free += 1
        if not task.cancelled():
            self._start()

    async def _run(self, batch: Sequence[VerdictRequest]) -> None:
        try:
            await self._serve(batch)
        except Exception as error:
            # One monitor's defect must not fail the others of its batch.
            if len(batch) > 1 and not isinstance(error, LagscaleError):
                for request in batch:
                    await self._run([request])
                return
            self._fail(batch, error)
        except asyncio.CancelledError:
            self._fail(batch, StoreUnavailable())
            raise

    async def _serve(self, batch: Sequence[VerdictRequest]) -> None:
        judgments = await self._judge(batch)
        unknown = []
        for request, judgment in zip(batch, judgments, strict=True):
            if judgment.verdict is Verdict.UNKNOWN:
                unknown.append((request, judgment))
            else:
                self._resolve(request, Snapshot(judgment, None))
        for request, judgment in unknown:
            self._resolve(request, await self._build_snapshot(request, judgment))

    async def _judge(self, batch: Sequence[VerdictRequest]) -> list[Judgment]:
        metrics.BATCH.observe(len(batch))
        try:
            judgments = await self._store.judge(batch)
        except StoreUnavailable as error:
            metrics.STORE_ERRORS.labels(type(error).__name__).inc()
            raise
        for request, judgment in zip(batch, judgments, strict=True):
            metrics.VERDICTS.labels(judgment.verdict.value, judgment.reason.value).inc()
            self._on_judgment(request, judgment)
        return judgments

    async def _build_snapshot(self, request: VerdictRequest, judgment: Judgment) -> Snapshot:
        if judgment.verdict is not Verdict.UNKNOWN or request.policy.hold_ms == 0:
            return Snapshot(judgment, None)
        key = (request, judgment.at_ms, judgment.verdict, judgment.members)
        cached = key in self._last_known
        metrics.CACHE_LOOKUPS.labels("last_known", "hit" if cached else "miss").inc()
        last_known = self._last_known[key] if cached else await self._store.find_last_known(request, judgment)
        self._last_known[key] = last_known
        since = None if last_known is None else last_known.last_known_ms
        if since is not None and judgment.now_ms - since > request.policy.hold_ms:
            last_known = None
        return Snapshot(judgment, last_known)

    def _cache(self, request: VerdictRequest, snapshot: Snapshot | LagscaleError) -> None:
        self._snapshots[request] = self._clock(), snapshot

    def _resolve(self, request: VerdictRequest, snapshot: Snapshot) -> None:
        self._cache(request, snapshot)
        future = self._pending.pop(request, None)
        if future is not None and not future.done():
            future.set_result(snapshot)

    def _fail(self, batch: Sequence[VerdictRequest], error: Exception | StoreUnavailable) -> None:
        if not isinstance(error, LagscaleError):
            log.error("evaluation_failed", exc_info=error)
            metrics.STORE_ERRORS.labels(type(error).__name__).inc()
            error = StoreUnavailable()
        for request in batch:
            future = self._pending.pop(request, None)
            if future is not None and not future.done():
                future.set_exception(type(error)(error.message))
