"""KEDA's two streams: changes are sent at once, and every stream ends before its connection reaches its age limit.

The monitors of all open streams are read together, on each notification of new samples and at a fixed interval.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import structlog
from cachetools import TTLCache

from lagscale.domain.verdict.contract import VerdictRequest
from lagscale.errors import LagscaleError, NotFound
from services.scaler import deadlines, metrics
from services.scaler.answers.snapshots import SnapshotCache
from services.scaler.grpc.status_codes import find_code, render_status_text
from services.scaler.triggers.directory import ResolvedMonitor, ResolvedTrigger
from services.scaler.triggers.registrations import Broadcast, RegistrationsCache

log = structlog.get_logger(__name__)

TriggerResolver = Callable[[float], Awaitable[ResolvedTrigger]]
ActivityReader = Callable[[ResolvedTrigger, float], Awaitable[bool | None]]
Message = TypeVar("Message")

#: Connections whose first stream is remembered.
_CACHE_SIZE: Final = 50_000


@dataclass(frozen=True, slots=True)
class ConnectionAges:
    """The maximum age of a connection, and the grace for calls beyond it; seconds."""

    connection: float
    grace: float


class Streams:
    """All open streams of this replica."""

    def __init__(
        self,
        snapshots: SnapshotCache,
        registrations: RegistrationsCache,
        ages: ConnectionAges,
        call_seconds: float,
        *,
        is_frozen: Callable[[ResolvedMonitor], object] = lambda _: False,
    ) -> None:
        """`is_frozen` returns a true value for a monitor whose answer cannot change: it is not read."""
        self.samples = Broadcast()
        self._snapshots, self._registrations, self._is_frozen = snapshots, registrations, is_frozen
        self._ages, self._call_seconds = ages, call_seconds
        self._watched: Counter[VerdictRequest] = Counter()
        self._refreshed = Broadcast()
        self._ending = asyncio.Event()
        self._first_seen: TTLCache[str, float] = TTLCache(_CACHE_SIZE, ages.connection + ages.grace)

    def end(self) -> None:
        """End all streams with OK, and new ones at once."""
        self._ending.set()
        self._refreshed.notify()
        self._registrations.changed.notify()

    async def run(self) -> None:
        """Read the monitors of the open streams, without end."""
        while True:
            sequence = self.samples.sequence
            try:
                await self._snapshots.refresh(self._watched)
            except Exception as error:
                # Each stream queries by itself then; this loop must go on.
                log.warning("stream_refresh_failed", reason=type(error).__name__)
            self._refreshed.notify()
            await asyncio.sleep(deadlines.STREAM_MIN_INTERVAL_SECONDS)
            await self.samples.wait(deadlines.POLL_SECONDS, sequence)

    async def stream_activity(
        self,
        resolve: TriggerResolver,
        read_activity: ActivityReader,
        context: Any,
        admit: Callable[[ResolvedTrigger], object],
    ) -> AsyncIterator[bool]:
        """The activity of a trigger; nothing is sent while it is unknown and there is no last-known answer.

        `admit` is called once; an error that it raises rejects the stream.
        """
        now = asyncio.get_running_loop().time
        end = self._find_end(context)
        sent: bool | None = None
        sent_at = 0.0
        resolved: ResolvedTrigger | None = await self._resolve_first("StreamIsActive", resolve, context, admit)
        with self._track_stream("StreamIsActive") as watch:
            while resolved is not None and not self._is_over(end):
                watch(resolved)
                sequence = self._refreshed.sequence
                active = await self._read_activity(resolved, read_activity)
                if active is not None and (
                    active != sent or (active and now() - sent_at >= deadlines.STREAM_REPEAT_SECONDS)
                ):
                    sent, sent_at = active, now()
                    yield active
                await self._refreshed.wait(max(0.0, min(end - now(), deadlines.STREAM_REPEAT_SECONDS)), sequence)
                resolved = await self._resolve_again(resolve)

    async def stream_specs(
        self, resolve: TriggerResolver, build_spec: Callable[[ResolvedTrigger], Message], context: Any
    ) -> AsyncIterator[Message]:
        """The metrics of a trigger, at once and on every change; never an empty list."""
        end = self._find_end(context)
        sent: Message | None = None
        resolved: ResolvedTrigger | None = await self._resolve_first("StreamMetricSpec", resolve, context, build_spec)
        with self._track_stream("StreamMetricSpec"):
            while resolved is not None and not self._is_over(end):
                sequence = self._registrations.changed.sequence
                try:
                    current = build_spec(resolved)
                except LagscaleError:
                    return
                if current != sent:
                    sent = current
                    yield current
                await self._registrations.changed.wait(max(0.0, end - asyncio.get_running_loop().time()), sequence)
                resolved = await self._resolve_again(resolve)

    async def _resolve_first(
        self, method: str, resolve: TriggerResolver, context: Any, check: Callable[[ResolvedTrigger], object]
    ) -> ResolvedTrigger:
        """Resolve a stream's trigger; errors end the stream as they end a call."""
        try:
            resolved = await resolve(asyncio.get_running_loop().time() + self._call_seconds)
            check(resolved)
        except LagscaleError as error:
            metrics.CALLS.labels(method, find_code(error).name).inc()
            await context.abort(find_code(error), render_status_text(error))
            raise
        metrics.CALLS.labels(method, "OK").inc()
        return resolved

    async def _resolve_again(self, resolve: TriggerResolver) -> ResolvedTrigger | None:
        """Resolve it again; None if that fails: the stream ends, KEDA opens another, and gets the error from that one."""
        try:
            resolved = await resolve(asyncio.get_running_loop().time() + self._call_seconds)
            resolved.require_any()
            return resolved
        except LagscaleError as error:
            if not isinstance(error, NotFound):
                log.info("stream_closed", reason=type(error).__name__)
            return None

    async def _read_activity(self, resolved: ResolvedTrigger, read_activity: ActivityReader) -> bool | None:
        try:
            return await read_activity(resolved, asyncio.get_running_loop().time() + self._call_seconds)
        except LagscaleError:
            return None
        except Exception:
            log.exception("stream_evaluation_failed")
            return None

    def _is_over(self, end: float) -> bool:
        return self._ending.is_set() or asyncio.get_running_loop().time() >= end

    def _find_end(self, context: Any) -> float:
        """Event loop time at which a stream ends: before its connection, but not at once if that is old already."""
        now = asyncio.get_running_loop().time()
        first_seen = self._first_seen.setdefault(context.peer(), now)
        return max(first_seen + self._ages.connection * deadlines.STREAM_AGE_RATIO, now + self._ages.grace / 2)

    @contextmanager
    def _track_stream(self, method: str) -> Iterator[Callable[[ResolvedTrigger], None]]:
        """Count a stream while it is open; yields a function that sets the monitors to read for it."""
        watched: list[VerdictRequest] = []

        def watch(resolved: ResolvedTrigger) -> None:
            self._unwatch(watched)
            unfrozen = (one for one in resolved.monitors if not self._is_frozen(one))
            watched[:] = [one.request for one in unfrozen if one.request is not None]
            self._watched.update(watched)

        metrics.STREAMS.labels(method).inc()
        try:
            yield watch
        finally:
            self._unwatch(watched)
            metrics.STREAMS.labels(method).dec()

    def _unwatch(self, requests: list[VerdictRequest]) -> None:
        self._watched.subtract(requests)
        for request in requests:
            if self._watched[request] <= 0:
                del self._watched[request]
