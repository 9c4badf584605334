"""KEDA's two streams: what changed is told at once, and every stream ends well before its connection must.

All open streams' monitors are read together, on each notification of new samples and every 1.5 s as the truth.
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

from lagscale.domain.verdict.contract import Ask
from lagscale.errors import LagscaleError, NotFound
from services.scaler import metrics
from services.scaler.answers.snapshots import Snapshots
from services.scaler.broadcast import Pulse
from services.scaler.grpc.status_codes import code_of, text_of
from services.scaler.triggers.directory import Asked, Subject
from services.scaler.triggers.registrations import Known

log = structlog.get_logger(__name__)

Asking = Callable[[float], Awaitable[Asked]]
State = Callable[[Asked, float], Awaitable[bool | None]]
Message = TypeVar("Message")

_POLL_SECONDS: Final = 1.5
_LEAST_SECONDS: Final = 0.2
#: KEDA loses an early `true`, so it is said again; it wants that at least every 30 s.
_REPEAT_SECONDS: Final = 20.0
#: gRPC spreads connection ages by a tenth in both directions.
_SPREAD: Final = 0.8


@dataclass(frozen=True, slots=True)
class Ages:
    """How old connections may become, and how long calls may outlast that; seconds."""

    connection: float
    grace: float


class Streams:
    """All open streams of this replica."""

    def __init__(
        self,
        snapshots: Snapshots,
        known: Known,
        ages: Ages,
        call_seconds: float,
        *,
        frozen: Callable[[Subject], object] = lambda _: False,
    ) -> None:
        """`frozen` says of a monitor whether its answer stands still: then it is not read."""
        self.samples = Pulse()
        self._snapshots = snapshots
        self._frozen = frozen
        self._known = known
        self._ages = ages
        self._call_seconds = call_seconds
        self._watched: Counter[Ask] = Counter()
        self._looked = Pulse()
        self._ending = asyncio.Event()
        self._born: TTLCache[str, float] = TTLCache(50_000, ages.connection + ages.grace)

    def end(self) -> None:
        """End all streams with OK, and any new one at once."""
        self._ending.set()
        self._looked.beat()
        self._known.changed.beat()

    async def run(self) -> None:
        """Read what the open streams watch, for ever."""
        while True:
            seen = self.samples.beats
            try:
                await self._snapshots.refresh(self._watched)
            except Exception as error:
                # The streams ask for themselves then; this loop must go on.
                log.warning("streams_not_refreshed", error=type(error).__name__)
            self._looked.beat()
            await asyncio.sleep(_LEAST_SECONDS)
            await self.samples.wait(_POLL_SECONDS, seen)

    async def activity(
        self, asking: Asking, state: State, context: Any, opens: Callable[[Asked], object]
    ) -> AsyncIterator[bool]:
        """The activity of a trigger: nothing is said while it is unknown and nothing is held.

        `opens` is called once, and refuses the stream by an error of the family.
        """
        now = asyncio.get_running_loop().time
        end = self._end_of(context)
        said: bool | None = None
        said_at = 0.0
        asked: Asked | None = await self._first("StreamIsActive", asking, context, opens)
        with self._open("StreamIsActive") as watch:
            while asked is not None and not self._over(end):
                watch(asked)
                seen = self._looked.beats
                active = await self._state(asked, state)
                if active is not None and (active != said or (active and now() - said_at >= _REPEAT_SECONDS)):
                    said, said_at = active, now()
                    yield active
                await self._looked.wait(max(0.0, min(end - now(), _REPEAT_SECONDS)), seen)
                asked = await self._again(asking)

    async def specs(self, asking: Asking, spec: Callable[[Asked], Message], context: Any) -> AsyncIterator[Message]:
        """The metrics of a trigger, at once and whenever they change; never an empty list."""
        end = self._end_of(context)
        said: Message | None = None
        asked: Asked | None = await self._first("StreamMetricSpec", asking, context, spec)
        with self._open("StreamMetricSpec"):
            while asked is not None and not self._over(end):
                seen = self._known.changed.beats
                try:
                    present = spec(asked)
                except LagscaleError:
                    return
                if present != said:
                    said = present
                    yield present
                await self._known.changed.wait(max(0.0, end - asyncio.get_running_loop().time()), seen)
                asked = await self._again(asking)

    async def _first(self, method: str, asking: Asking, context: Any, check: Callable[[Asked], object]) -> Asked:
        """Resolve a stream's trigger; its faults end the stream with an error, as they end a call."""
        try:
            asked = await asking(asyncio.get_running_loop().time() + self._call_seconds)
            check(asked)
        except LagscaleError as error:
            metrics.CALLS.labels(method, code_of(error).name).inc()
            await context.abort(code_of(error), text_of(error))
            raise
        metrics.CALLS.labels(method, "OK").inc()
        return asked

    async def _again(self, asking: Asking) -> Asked | None:
        """Resolve it again; None where the trigger is answered no more: KEDA comes back, and a call tells it why."""
        try:
            asked = await asking(asyncio.get_running_loop().time() + self._call_seconds)
            _some(asked)
            return asked
        except LagscaleError as error:
            if not isinstance(error, NotFound):
                log.info("stream_ended", error=type(error).__name__)
            return None

    async def _state(self, asked: Asked, state: State) -> bool | None:
        try:
            return await state(asked, asyncio.get_running_loop().time() + self._call_seconds)
        except LagscaleError:
            return None
        except Exception:
            log.exception("stream_state_failed")
            return None

    def _over(self, end: float) -> bool:
        return self._ending.is_set() or asyncio.get_running_loop().time() >= end

    def _end_of(self, context: Any) -> float:
        """When a stream must end: before its connection does, but not at once where that is old already."""
        now = asyncio.get_running_loop().time()
        born = self._born.setdefault(context.peer(), now)
        return max(born + self._ages.connection * _SPREAD, now + self._ages.grace / 2)

    @contextmanager
    def _open(self, method: str) -> Iterator[Callable[[Asked], None]]:
        """Counts a stream while it is open, and watches what it last said that it asks for."""
        watched: list[Ask] = []

        def watch(asked: Asked) -> None:
            self._unwatch(watched)
            moving = [one for one in asked.entries if isinstance(one, Subject) and not self._frozen(one)]
            watched[:] = [one.ask for one in moving if one.ask is not None]
            self._watched.update(watched)

        metrics.STREAMS.labels(method).inc()
        try:
            yield watch
        finally:
            self._unwatch(watched)
            metrics.STREAMS.labels(method).dec()

    def _unwatch(self, asks: list[Ask]) -> None:
        self._watched.subtract(asks)
        for ask in asks:
            if self._watched[ask] <= 0:
                del self._watched[ask]


def _some(asked: Asked) -> None:
    """Nothing, where at least one monitor is there; else the error of the first."""
    if not any(isinstance(entry, Subject) for entry in asked.entries):
        list(asked.subjects())
